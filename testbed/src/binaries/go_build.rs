//! The pinned Go modules and how to build them.
//!
//! There are several modules, because in a single one minimal version selection would raise libraries above the
//! versions that each project was tested with. Their files are embedded in this program, so a build never writes into
//! the repository.

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Instant,
};

use ring::digest;

use super::{BinariesError, GoVersion};

/// The Go version that the modules require.
const GO_MINIMUM: GoVersion = GoVersion(1, 26);

/// One Go module.
#[derive(Debug)]
pub(super) struct Module {
    name: &'static str,
    go_mod: &'static str,
    go_sum: &'static str,
    /// Our own Go files: path and content.
    sources: &'static [(&'static str, &'static str)],
    /// The linker flags set the version. Without it `/version` returns v0.0.0-master, and clients that compare versions
    /// misbehave.
    ldflags: &'static str,
    /// Build tags; empty for none.
    tags: &'static str,
    pub(super) programs: &'static [Program],
}

/// One program of a module.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) file_name: &'static str,
    package: &'static str,
}

macro_rules! module_text {
    ($module:literal, $file:literal) => {
        include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/modules/", $module, "/", $file))
    };
}

/// In build order. The quick ones come first, so that a broken setup fails early.
pub(super) const CONTROL_PLANE: [Module; 3] = [
    Module {
        name: "etcd",
        go_mod: module_text!("etcd", "go.mod"),
        go_sum: module_text!("etcd", "go.sum"),
        sources: &[],
        ldflags: "-s -w",
        tags: "",
        programs: &[Program {
            file_name: "etcd",
            package: "go.etcd.io/etcd/server/v3",
        }],
    },
    Module {
        name: "kwok",
        go_mod: module_text!("kwok", "go.mod"),
        go_sum: module_text!("kwok", "go.sum"),
        sources: &[],
        ldflags: "-s -w -X sigs.k8s.io/kwok/pkg/consts.Version=v0.8.0",
        tags: "",
        programs: &[Program {
            file_name: "kwok",
            package: "sigs.k8s.io/kwok/cmd/kwok",
        }],
    },
    Module {
        name: "k8s",
        go_mod: module_text!("k8s", "go.mod"),
        go_sum: module_text!("k8s", "go.sum"),
        sources: &[],
        ldflags: "-s -w -X k8s.io/component-base/version.gitVersion=v1.36.3 \
                  -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=36 \
                  -X k8s.io/component-base/version.gitTreeState=clean -X k8s.io/component-base/version.gitCommit=unknown",
        tags: "",
        programs: &[
            Program {
                file_name: "kube-apiserver",
                package: "k8s.io/kubernetes/cmd/kube-apiserver",
            },
            Program {
                file_name: "kube-controller-manager",
                package: "k8s.io/kubernetes/cmd/kube-controller-manager",
            },
            Program {
                file_name: "kubectl",
                package: "k8s.io/kubernetes/cmd/kubectl",
            },
        ],
    },
];

/// Binds Pods to nodes. It is a separate module with the same versions as Kubernetes, since few tests need it.
pub(super) const SCHEDULER: Module = Module {
    name: "k8s/scheduler",
    programs: &[Program {
        file_name: "kube-scheduler",
        package: "k8s.io/kubernetes/cmd/kube-scheduler",
    }],
    ..CONTROL_PLANE[2]
};

/// Answers queries about schedules with the library that Kubernetes uses.
pub(super) const SCHEDULE_ORACLE: Module = Module {
    name: "schedule-oracle",
    go_mod: module_text!("schedule-oracle", "go.mod"),
    go_sum: module_text!("schedule-oracle", "go.sum"),
    sources: &[("main.go", module_text!("schedule-oracle", "main.go"))],
    ldflags: "-s -w",
    tags: "",
    programs: &[Program {
        file_name: "schedule-oracle",
        package: "cronwheel.dev/testbed/schedule-oracle",
    }],
};

/// The built-in CronJob controller alone, with a clock that can run ahead. It is a separate module with the same
/// versions as Kubernetes, so that changes to it do not rebuild the whole control plane.
pub(super) const CLOCKED_REFERENCE: Module = Module {
    name: "k8s/reference",
    go_mod: module_text!("k8s", "go.mod"),
    go_sum: module_text!("k8s", "go.sum"),
    sources: &[("reference/main.go", module_text!("k8s", "reference/main.go"))],
    ldflags: "-s -w",
    tags: "",
    programs: &[Program {
        file_name: "clocked-reference",
        package: "cronwheel.dev/testbed/k8s/reference",
    }],
};

/// Renders the chart in `deploy/helm`.
pub(super) const HELM: Module = Module {
    name: "helm",
    go_mod: module_text!("helm", "go.mod"),
    go_sum: module_text!("helm", "go.sum"),
    sources: &[],
    ldflags: "-s -w -X helm.sh/helm/v4/internal/version.version=v4.3.1",
    tags: "",
    programs: &[Program {
        file_name: "helm",
        package: "helm.sh/helm/v4/cmd/helm",
    }],
};

/// Prometheus and promtool, without the service discovery clients of cloud providers.
pub(super) const PROMETHEUS: Module = Module {
    name: "prometheus",
    go_mod: module_text!("prometheus", "go.mod"),
    go_sum: module_text!("prometheus", "go.sum"),
    sources: &[],
    ldflags: "-s -w -X github.com/prometheus/common/version.Version=3.16.0",
    tags: "remove_all_sd,netgo",
    programs: &[
        Program {
            file_name: "promtool",
            package: "github.com/prometheus/prometheus/cmd/promtool",
        },
        Program {
            file_name: "prometheus",
            package: "github.com/prometheus/prometheus/cmd/prometheus",
        },
    ],
};

/// The Go installation of this machine.
#[derive(Debug)]
pub(super) struct Go {
    /// The output of `go version`: release, operating system, architecture.
    version_line: String,
}

impl Go {
    /// Finds Go in the path and checks its version.
    pub(super) fn find() -> Result<Go, BinariesError> {
        let output = go_command()
            .arg("version")
            .output()
            .map_err(|source| BinariesError::GoMissing {
                minimum: GO_MINIMUM,
                source,
            })?;
        let version_line = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        // A development build has no release number and is accepted.
        if parse_version(&version_line).is_some_and(|version| version < GO_MINIMUM) {
            return Err(BinariesError::GoTooOld {
                found: version_line,
                minimum: GO_MINIMUM,
            });
        }
        Ok(Go { version_line })
    }

    /// A key for everything that the programs of a module depend on: Go release, platform, module and flags.
    pub(super) fn cache_key(&self, module: &Module) -> String {
        cache_key(&self.version_line, module)
    }
}

/// Builds programs of a module into `folder`. Each program appears there completely or not at all.
pub(super) fn build(module: &Module, programs: &[&Program], folder: &Path) -> Result<(), BinariesError> {
    let begin = Instant::now();
    let names: Vec<_> = programs.iter().map(|program| program.file_name).collect();
    eprintln!("testbed: building {} into {}", names.join(", "), folder.display());
    // All builds use the same folder, under the caller's lock. The next build removes the files of a crashed one.
    let workshop = folder.join(".building");
    prepare(&workshop, module).map_err(|source| BinariesError::Cache {
        path: workshop.clone(),
        source,
    })?;
    for program in programs {
        let status = build_command(&workshop, module, program)
            .status()
            .map_err(|source| BinariesError::RunBuild { source })?;
        if !status.success() {
            return Err(BinariesError::Build {
                module: module.name,
                status,
            });
        }
        let built = workshop.join(program.file_name);
        fs::rename(&built, folder.join(program.file_name))
            .map_err(|source| BinariesError::Cache { path: built, source })?;
    }
    fs::remove_dir_all(&workshop).map_err(|source| BinariesError::Cache { path: workshop, source })?;
    eprintln!(
        "testbed: built {} in {:.0} s",
        names.join(", "),
        begin.elapsed().as_secs_f64()
    );
    Ok(())
}

/// The `go` command, with an environment that makes builds reproducible.
fn go_command() -> Command {
    let mut command = Command::new("go");
    command
        .env("CGO_ENABLED", "0")
        .env("GOTOOLCHAIN", "local")
        .env("GOFLAGS", "")
        .env("GOWORK", "off");
    command
}

fn build_command(workshop: &Path, module: &Module, program: &Program) -> Command {
    let mut command = go_command();
    command
        .args(build_arguments(module))
        .arg("-o")
        .arg(workshop.join(program.file_name))
        .arg(program.package)
        .current_dir(workshop)
        .stdin(Stdio::null())
        // Standard output is reserved for the results of the caller.
        .stdout(Stdio::null());
    command
}

fn build_arguments(module: &Module) -> Vec<&'static str> {
    let mut arguments = vec!["build", "-trimpath", "-ldflags", module.ldflags];
    if !module.tags.is_empty() {
        arguments.extend(["-tags", module.tags]);
    }
    arguments
}

fn prepare(workshop: &PathBuf, module: &Module) -> std::io::Result<()> {
    if workshop.exists() {
        fs::remove_dir_all(workshop)?;
    }
    fs::create_dir_all(workshop)?;
    fs::write(workshop.join("go.mod"), module.go_mod)?;
    fs::write(workshop.join("go.sum"), module.go_sum)?;
    for (path, text) in module.sources {
        let path = workshop.join(path);
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::write(path, text)?;
    }
    Ok(())
}

fn cache_key(version_line: &str, module: &Module) -> String {
    let mut context = digest::Context::new(&digest::SHA256);
    let mut add = |part: &str| {
        // The length prefix separates the parts.
        context.update(&part.len().to_le_bytes());
        context.update(part.as_bytes());
    };
    add(version_line);
    add(module.go_mod);
    add(module.go_sum);
    build_arguments(module).into_iter().for_each(&mut add);
    for (path, text) in module.sources {
        add(path);
        add(text);
    }
    let digest = context.finish();
    digest
        .as_ref()
        .iter()
        .take(8)
        .fold(String::new(), |key, byte| key + &format!("{byte:02x}"))
}

/// Parses the release in a line such as `go version go1.26.8 linux/amd64`.
fn parse_version(version_line: &str) -> Option<GoVersion> {
    let release = version_line
        .strip_prefix("go version go")?
        .split_ascii_whitespace()
        .next()?;
    let (major, rest) = release.split_once('.')?;
    let minor: String = rest.chars().take_while(char::is_ascii_digit).collect();
    Some(GoVersion(major.parse().ok()?, minor.parse().ok()?))
}

#[cfg(test)]
mod tests;
