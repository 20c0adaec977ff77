//! Every command that only prints, as a process whose standard output is closed or full.

use std::{
    fs::File,
    process::{Command, Output, Stdio},
};

const COMMANDS: [&[&str]; 4] = [
    &["next", "@daily"],
    &["explain", "--rule", "B-6.3"],
    &["completions", "bash"],
    &["man"],
];

fn run(arguments: &[&str], output: impl Into<Stdio>) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cronwheel"))
        .args(arguments)
        .stdout(output)
        .stderr(Stdio::piped())
        .output()
        .expect("a process")
}

#[test]
fn a_closed_output_is_no_error() {
    for arguments in COMMANDS {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        let output = run(arguments, writer);
        assert!(
            output.status.success() && output.stderr.is_empty(),
            "{arguments:?}: {output:?}"
        );
    }
}

#[test]
fn an_output_that_cannot_be_written_is_reported() {
    for arguments in COMMANDS {
        let full = File::options().write(true).open("/dev/full").expect("a device");
        let output = run(arguments, full);
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {error}");
        assert!(error.starts_with("cronwheel: cannot write"), "{arguments:?}: {error}");
    }
}
