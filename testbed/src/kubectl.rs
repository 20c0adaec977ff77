//! kubectl, bound to one control plane and one identity.

use std::{
    io::{self, Write},
    path::PathBuf,
    process::{Command, ExitStatus, Output, Stdio},
};

/// Why a call of kubectl failed.
#[derive(Debug, thiserror::Error)]
pub enum KubectlError {
    /// kubectl cannot be started, or its input cannot be written.
    #[error("cannot run kubectl")]
    Run {
        /// The cause.
        source: io::Error,
    },
    /// kubectl exited with an error.
    #[error("kubectl {arguments} failed ({status}): {message}")]
    Failed {
        /// The arguments.
        arguments: String,
        /// The exit status.
        status: ExitStatus,
        /// The standard error.
        message: String,
    },
}

/// kubectl with a kubeconfig. It does not use the home folder.
#[derive(Clone, Debug)]
pub struct Kubectl {
    program: PathBuf,
    kubeconfig: PathBuf,
    cache_folder: PathBuf,
}

impl Kubectl {
    /// Takes the program, the kubeconfig and a folder for the discovery cache.
    pub fn new(program: PathBuf, kubeconfig: PathBuf, cache_folder: PathBuf) -> Kubectl {
        Kubectl {
            program,
            kubeconfig,
            cache_folder,
        }
    }

    /// The path of the program.
    pub fn program(&self) -> &PathBuf {
        &self.program
    }

    /// Returns the same kubectl with another kubeconfig.
    #[must_use]
    pub fn with_kubeconfig(&self, kubeconfig: PathBuf) -> Kubectl {
        Kubectl {
            kubeconfig,
            ..self.clone()
        }
    }

    /// Returns a command without arguments.
    pub fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command
            .env("KUBECONFIG", &self.kubeconfig)
            .env("KUBECACHEDIR", &self.cache_folder)
            // Preferences of the user must not change the output.
            .env("KUBERC", "off");
        command
    }

    /// Runs kubectl and returns its standard output.
    pub fn run(&self, arguments: &[&str]) -> Result<String, KubectlError> {
        let output = self
            .command()
            .args(arguments)
            .stdin(Stdio::null())
            .output()
            .map_err(|source| KubectlError::Run { source })?;
        accept(arguments, output)
    }

    /// Runs kubectl with `input` on its standard input and returns its standard output.
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
        // kubectl reads all input before it prints, so writing first cannot block forever. A broken pipe means that it
        // has exited, and its own message has the cause.
        if let Some(mut stdin) = child.stdin.take() {
            match stdin.write_all(input.as_bytes()) {
                Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(run_error(error)),
                _ => {}
            }
        }
        accept(arguments, child.wait_with_output().map_err(run_error)?)
    }

    /// Applies a manifest.
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
