//! `cronwheel dev` with the `kubectl` that the test bed builds. The commands on its screen work.

use std::{
    io::Write as _,
    process::{Command, Stdio},
};

use testbed::{Binaries, Kubectl};

use super::{Dev, Folder};

/// Returns the columns of the first row below the header of a table.
fn first_row(table: &str) -> Vec<&str> {
    table.lines().nth(1).unwrap_or_default().split_whitespace().collect()
}

/// Runs a command of cronwheel with this standard input. Returns its output.
fn piped(input: &str, arguments: &[&str]) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cronwheel"));
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = command.spawn().unwrap();
    process.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = process.wait_with_output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn kubectl_applies_a_cron_job_and_sees_its_job_complete() {
    // The build may take many minutes, so it precedes the process below, which has a limited lifetime.
    let program = Binaries::find_or_build().unwrap().kubectl;
    let folder = Folder::new("kubectl");
    let dev = Dev::start(&folder, &["--port", "0"]);
    let kubectl = Kubectl::new(program, folder.kubeconfig(), folder.path().join("cache"));
    let run = |arguments: &[&str]| kubectl.run(arguments).unwrap_or_else(|error| panic!("{error}"));

    let hello = concat!(env!("CARGO_MANIFEST_DIR"), "/examples/hello.yaml");
    assert_eq!(run(&["apply", "-f", hello]), "cronjob.batch/hello created\n");
    let all = run(&["get", "cronjobs", "-A", "-o", "yaml"]);
    assert_eq!(
        piped(&all, &["explain", "--check", "-f", "-"]),
        "1 of 1 CronJobs can run\n"
    );
    let next = piped(&all, &["next", "-f", "-"]);
    assert!(
        next.starts_with("CronJob default/hello\n* * * * * in Europe/Berlin"),
        "{next}"
    );
    // The same CronJob, without the wait for a full minute.
    let sooner = r#"{"spec":{"schedule":"@every 1s","timeZone":null}}"#;
    assert_eq!(
        run(&["patch", "cronjob", "hello", "-p", sooner]),
        "cronjob.batch/hello patched\n"
    );
    let succeeded = "--for=jsonpath={.status.lastSuccessfulTime}";
    run(&["wait", succeeded, "cronjob/hello", "--timeout=300s"]);

    assert_eq!(run(&["get", "pods"]), "");
    let misspelt =
        r#"{"spec":{"jobTemplate":{"spec":{"template":{"metadata":{"annotations":{"outcome":"failure"}}}}}}}"#;
    let refusal = kubectl
        .run(&["patch", "cronjob", "hello", "-p", misspelt])
        .unwrap_err()
        .to_string();
    let expected = "cronjobs.batch \"hello\" is forbidden: \
                    spec.jobTemplate.spec.template.metadata.annotations[outcome]: \"failure\" is not one of succeed, fail and \
                    hang";
    assert!(refusal.contains(expected), "{refusal}");

    let jobs = run(&["get", "jobs"]);
    assert_eq!(
        jobs.split_whitespace().take(5).collect::<Vec<_>>(),
        ["NAME", "STATUS", "COMPLETIONS", "DURATION", "AGE"]
    );
    let row = first_row(&jobs);
    assert!(row[0].starts_with("hello-"), "{jobs}");
    assert_eq!(row[1..3], ["Complete", "1/1"], "{jobs}");
    let cron_jobs = run(&["get", "cronjobs"]);
    assert_eq!(
        first_row(&cron_jobs)[..4],
        ["hello", "@every", "1s", "<none>"],
        "{cron_jobs}"
    );
    let described = run(&["describe", "cronjob", "hello"]);
    assert!(
        described.contains("cronjob-controller  Created job hello-"),
        "{described}"
    );
    assert_eq!(
        run(&["create", "job", "--from=cronjob/hello", "manual"]),
        "job.batch/manual created\n"
    );
    run(&["wait", "--for=condition=complete", "job/manual", "--timeout=300s"]);
    run(&["delete", "cronjob", "hello", "--wait=true"]);
    assert_eq!(run(&["get", "cronjobs,jobs"]), "");
    dev.end(rustix::process::Signal::TERM);
}
