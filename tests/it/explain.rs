//! `cronwheel explain` as a process: input, output and exit code.

use std::{
    io::Write as _,
    process::{Command, Output, Stdio},
};

use serde_json::Value;

const HELLO: &str = "
apiVersion: batch/v1
kind: CronJob
metadata: {name: hello, creationTimestamp: 2026-05-01T00:00:00Z}
spec:
  schedule: 0 10 * * *
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: b}]}}}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
";

fn explain(arguments: &[&str], input: &str) -> Output {
    let mut process = Command::new(env!("CARGO_BIN_EXE_cronwheel"))
        .arg("explain")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a process");
    // The process may exit without reading its input, for instance because of an invalid flag.
    let _ = process
        .stdin
        .take()
        .expect("standard input")
        .write_all(input.as_bytes());
    process.wait_with_output().expect("an exit status")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn answers_go_to_standard_output_and_notes_to_standard_error() {
    let output = explain(&["-f", "-", "-o", "json", "--now", "2026-05-05T10:00:00Z"], HELLO);
    assert!(output.status.success(), "{}", stderr(&output));
    let answer: Value = serde_json::from_slice(&output.stdout).expect("JSON alone");
    assert_eq!(answer["slot"], "2026-05-05T10:00:00Z");
    assert!(
        stderr(&output).contains("v1 ConfigMap left out (1)"),
        "{}",
        stderr(&output)
    );
}

#[test]
fn explain_reads_a_file_at_the_current_time() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/hello.yaml");
    let output = explain(&["-f", file], "");
    assert!(output.status.success(), "{}", stderr(&output));
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("in Europe/Berlin: every minute"), "{text}");
    assert!(text.contains("NotDue"), "{text}");
}

#[test]
fn files_directories_and_standard_input_are_read_together() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/examples");
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/explain.rs");
    let output = explain(
        &["-f", directory, "-f", "-", "-o", "json"],
        &HELLO.replace("hello", "given"),
    );
    assert!(output.status.success(), "{}", stderr(&output));
    let answers: Value = serde_json::from_slice(&output.stdout).expect("JSON alone");
    let names: Vec<&str> = answers
        .as_array()
        .expect("several")
        .iter()
        .filter_map(|answer| answer["name"].as_str())
        .collect();
    assert_eq!(names, ["hello", "report", "given"]);
    assert!(!explain(&["-f", directory, "-f", file], "").status.success());
}

#[test]
fn check_flag_sets_the_exit_code_and_rule_flag_prints_the_rule() {
    let refused = HELLO.replace("  jobTemplate:", "  timezone: UTC\n  jobTemplate:");
    assert!(explain(&["-f", "-"], &refused).status.success());
    assert!(explain(&["-f", "-", "--check"], HELLO).status.success());
    let output = explain(&["-f", "-", "--check"], &refused);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(
        text,
        "CronJob default/hello: refused by the API server: spec.timezone: unknown field; did you mean timeZone?\n\
         0 of 1 CronJobs can run\n"
    );
    assert!(
        stderr(&output).contains("1 of 1 CronJobs can never run"),
        "{}",
        stderr(&output)
    );
    let output = explain(&["--rule", "B-6.3"], "");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "**B-6.3** `spec.suspend` true: stop. No event.\n"
    );
}

#[test]
fn errors_name_the_bad_input_and_the_fix() {
    #[track_caller]
    fn check(arguments: &[&str], input: &str, what: &str, fix: &str) {
        let output = explain(arguments, input);
        let error = stderr(&output);
        assert!(!output.status.success(), "{arguments:?}");
        assert!(output.stdout.is_empty(), "{arguments:?}");
        assert!(error.contains(what) && error.contains(fix), "{arguments:?}: {error}");
    }
    check(&["-f", "/no/such/file"], "", "-f /no/such/file", "give a file");
    check(&["-f", "-"], "a: [", "standard input: not YAML", "correct it");
    check(&["-f", "-"], "\u{1}", "standard input: not YAML", "correct it");
    check(&["-f", "-"], "", "no batch/v1 CronJob", "give at least one");
    check(&["-f", "-", "--now", "noon"], HELLO, "--now", "2026-11-21T10:30:00Z");
    check(&["-f", "-", "--assume", "exists"], HELLO, "--assume", "create=exists");
    check(&[], "", "--file", "NAME");
    check(&["other", "-f", "-"], HELLO, "no CronJob other", "check the name");
    check(&["hello.yaml"], "", "NAME", "write -f hello.yaml");
    check(&["Hello"], "", "NAME", "lower-case");
}

#[test]
fn a_broken_kubeconfig_is_not_called_missing() {
    let broken = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    for arguments in [&["hello"][..], &["hello", "--context", "red"]] {
        for (file, expected) in [
            (
                broken,
                format!("the kubeconfig in KUBECONFIG={broken} cannot be used; correct it"),
            ),
            ("/does/not/exist", "no kubeconfig".to_owned()),
        ] {
            let output = Command::new(env!("CARGO_BIN_EXE_cronwheel"))
                .arg("explain")
                .args(arguments)
                .env("KUBECONFIG", file)
                .env_remove("KUBERNETES_SERVICE_HOST")
                .output()
                .expect("a process");
            let error = stderr(&output);
            assert_eq!(output.status.code(), Some(1), "{error}");
            assert!(error.contains(&expected), "{arguments:?} {file}: {error}");
        }
    }
}
