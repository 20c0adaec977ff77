//! kubectl, bound to one control plane and one identity.

use std::{
    io::{self, Write},
    path::PathBuf,
    process::{Command, ExitStatus, Output, Stdio},
};

/// What went wrong with a call of kubectl.
#[derive(Debug, thiserror::Error)]
pub enum KubectlError {
    /// It does not start, or its input cannot be written.
    #[error("cannot run kubectl")]
    Run {
        /// Why.
        source: io::Error,
    },
    /// It says no.
    #[error("kubectl {arguments} failed ({status}): {message}")]
    Failed {
        /// What it was called with.
        arguments: String,
        /// How it ended.
        status: ExitStatus,
        /// Its standard error.
        message: String,
    },
}

/// kubectl with a kubeconfig. It reads and writes nothing in the home folder.
#[derive(Clone, Debug)]
pub struct Kubectl {
    program: PathBuf,
    kubeconfig: PathBuf,
    cache_folder: PathBuf,
}

impl Kubectl {
    /// The program, the kubeconfig of who it acts as, and a folder for what it learns about the API server.
    pub fn new(program: PathBuf, kubeconfig: PathBuf, cache_folder: PathBuf) -> Kubectl {
        Kubectl {
            program,
            kubeconfig,
            cache_folder,
        }
    }

    /// Where the program is.
    pub fn program(&self) -> &PathBuf {
        &self.program
    }

    /// The same with another identity.
    #[must_use]
    pub fn with_kubeconfig(&self, kubeconfig: PathBuf) -> Kubectl {
        Kubectl {
            kubeconfig,
            ..self.clone()
        }
    }

    /// A command that lacks only its arguments.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command
            .env("KUBECONFIG", &self.kubeconfig)
            .env("KUBECACHEDIR", &self.cache_folder)
            // Preferences of whoever runs this must not change what it prints.
            .env("KUBERC", "off");
        command
    }

    /// Runs it and returns its standard output.
    pub fn run(&self, arguments: &[&str]) -> Result<String, KubectlError> {
        let output = self
            .command()
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .map_err(|source| KubectlError::Run { source })?;
        accept(arguments, output)
    }

    /// Runs it with `input` on its standard input and returns its standard output.
    pub fn run_with_input(&self, arguments: &[&str], input: &str) -> Result<String, KubectlError> {
        let run_error = |source| KubectlError::Run { source };
        let mut child = self
            .command()
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(run_error)?;
        // It reads all input before it prints, so writing first cannot block for ever. A broken pipe means that it has
        // ended, and its own message says why.
        if let Some(mut stdin) = child.stdin.take() {
            match stdin.write_all(input.as_bytes()) {
                Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(run_error(error)),
                _ => {}
            }
        }
        accept(arguments, child.wait_with_output().map_err(run_error)?)
    }

    /// Creates or changes the objects of a manifest.
    pub fn apply(&self, manifest: &str) -> Result<(), KubectlError> {
        self.run_with_input(&["apply", "--filename=-"], manifest).map(drop)
    }
}

fn accept(arguments: &[&str], output: Output) -> Result<String, KubectlError> {
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(KubectlError::Failed {
        arguments: arguments.join(" "),
        status: output.status,
        message: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
    })
}
