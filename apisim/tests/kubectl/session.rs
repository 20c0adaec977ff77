//! A kubectl connected to one server, and a record of its commands and their output.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
};

use crate::masking;

/// The output of a command. Values that differ between runs are masked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Printed {
    pub(crate) command: String,
    pub(crate) is_success: bool,
    pub(crate) output: String,
    pub(crate) errors: String,
}

/// A kubectl connected to one server.
pub(crate) struct Session {
    program: PathBuf,
    kubeconfig: PathBuf,
    folder: PathBuf,
    pub(crate) transcript: Vec<Printed>,
}

/// A command that runs in the background.
pub(crate) struct Running {
    child: Child,
    command: String,
    lines: Vec<String>,
    reader: BufReader<std::process::ChildStdout>,
}

impl Session {
    /// Creates the folder for the files of kubectl.
    pub(crate) fn new(program: PathBuf, kubeconfig: &Path, folder: &Path) -> Session {
        fs::create_dir_all(folder).unwrap();
        Session {
            program,
            kubeconfig: kubeconfig.to_owned(),
            folder: folder.to_owned(),
            transcript: Vec::new(),
        }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(arguments)
            .env("KUBECONFIG", &self.kubeconfig)
            .env("KUBECACHEDIR", self.folder.join("cache"))
            .env("KUBERC", "off")
            .env("KUBE_EDITOR", self.folder.join("editor"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs a command, split at whitespace. Records the masked output and returns it unmasked.
    pub(crate) fn run(&mut self, command: &str) -> String {
        self.run_with(command, "")
    }

    /// Runs a command like `run`, with this standard input.
    pub(crate) fn run_with(&mut self, command: &str, input: &str) -> String {
        let arguments: Vec<&str> = command.split_whitespace().collect();
        self.run_arguments(&arguments, input)
    }

    /// Runs a command whose arguments may contain spaces.
    pub(crate) fn run_arguments(&mut self, arguments: &[&str], input: &str) -> String {
        let mut child = self.command(arguments).stdin(Stdio::piped()).spawn().unwrap();
        // kubectl reads all input before it prints. A command that reads none may have closed it.
        let _closed = child.stdin.take().unwrap().write_all(input.as_bytes());
        let printed = child.wait_with_output().unwrap();
        let output = String::from_utf8(printed.stdout).unwrap();
        self.transcript.push(Printed {
            command: arguments.join(" "),
            is_success: printed.status.success(),
            output: masking::masked(&output),
            errors: masking::masked(&String::from_utf8(printed.stderr).unwrap()),
        });
        output
    }

    /// Runs a command like `run` without a record, for output that may differ between servers.
    pub(crate) fn run_unrecorded(&mut self, command: &str) -> Printed {
        self.run(command);
        self.transcript.pop().unwrap()
    }

    /// Sets the editor that `kubectl edit` starts: a shell script with the file as its argument.
    pub(crate) fn set_editor(&self, script: &str) {
        let path = self.folder.join("editor");
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
    }

    /// Starts a command in the background.
    pub(crate) fn start(&self, command: &str) -> Running {
        let arguments: Vec<&str> = command.split_whitespace().collect();
        let mut child = self.command(&arguments).spawn().unwrap();
        let reader = BufReader::new(child.stdout.take().unwrap());
        Running {
            child,
            command: command.to_owned(),
            lines: Vec::new(),
            reader,
        }
    }

    /// Stops a background command after it has printed this many lines.
    pub(crate) fn end(&mut self, mut running: Running, n_lines: usize) {
        running.wait_for(n_lines);
        running.child.kill().unwrap();
        running.child.wait().unwrap();
        self.record(running, true);
    }

    /// Waits until a background command ends.
    pub(crate) fn wait(&mut self, mut running: Running) {
        let mut rest = String::new();
        while running.reader.read_line(&mut rest).unwrap() > 0 {}
        running.lines.push(rest);
        let is_success = running.child.wait().unwrap().success();
        self.record(running, is_success);
    }

    fn record(&mut self, running: Running, is_success: bool) {
        self.transcript.push(Printed {
            command: running.command,
            is_success,
            output: masking::masked(&running.lines.concat()),
            errors: String::new(),
        });
    }
}

impl Running {
    /// Waits until the command has printed this many lines.
    pub(crate) fn wait_for(&mut self, n_lines: usize) {
        while self.lines.len() < n_lines {
            let mut line = String::new();
            let n_bytes = self.reader.read_line(&mut line).unwrap();
            assert!(n_bytes > 0, "kubectl {} ended after {:?}", self.command, self.lines);
            self.lines.push(line);
        }
    }
}
