//! The processes of one contestant in one turn: measured together, replaced, killed and added.

use std::{
    collections::VecDeque,
    env, fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};

use anyhow::{Context as _, bail};
use testbed::ReferenceLimits;

use super::{
    contestant::{Contestant, floor_flags, replica_flags},
    disturbed::DisturbedNamespaces,
    samples::GroupUsage,
    scenario::Step,
};
use crate::{
    controller::{Candidate, Controller},
    target::Target,
};

/// A running contestant, which is stopped on drop.
pub(super) struct Running {
    contestant: Contestant,
    scratch: PathBuf,
    processes: Processes,
    /// The replica that was killed and not restarted.
    killed: Option<u32>,
    n_started: u32,
    /// Processor time of processes that have ended.
    ended_cpu: Duration,
}

enum Processes {
    Floor(Child),
    /// Oldest first, each with its number.
    Controllers(VecDeque<(u32, Controller)>),
}

impl Running {
    /// Starts all processes and waits until they are ready. `scratch` is an empty folder.
    pub(super) async fn start(contestant: &Contestant, target: &mut Target, scratch: &Path) -> anyhow::Result<Running> {
        let processes = match contestant {
            Contestant::Floor { in_flight } => Processes::Floor(floor(target, scratch, *in_flight)?),
            Contestant::BuiltIn | Contestant::BuiltInUnthrottled | Contestant::Cronwheel { .. } => {
                Processes::Controllers(VecDeque::new())
            }
        };
        let mut running = Running {
            contestant: contestant.clone(),
            scratch: scratch.to_owned(),
            processes,
            killed: None,
            n_started: 0,
            ended_cpu: Duration::ZERO,
        };
        let n_controllers = match contestant {
            Contestant::Floor { .. } => 0,
            Contestant::BuiltIn | Contestant::BuiltInUnthrottled => 1,
            Contestant::Cronwheel { replicas, .. } => *replicas,
        };
        for _ in 0..n_controllers {
            running.add(target).await?;
        }
        Ok(running)
    }

    /// The user that the contestant authenticates as.
    pub(super) fn user(&self) -> String {
        match self.contestant {
            Contestant::Floor { .. } | Contestant::Cronwheel { .. } => Target::candidate_user(),
            Contestant::BuiltIn | Contestant::BuiltInUnthrottled => Controller::Reference.user(),
        }
    }

    /// The combined usage of all processes, including those that have ended.
    pub(super) fn usage(&self, target: &Target) -> anyhow::Result<GroupUsage> {
        let pids: Vec<u32> = match &self.processes {
            Processes::Floor(child) => vec![child.id()],
            Processes::Controllers(all) => all
                .iter()
                .map(|(_, one)| one.pid(target))
                .collect::<anyhow::Result<_>>()?,
        };
        let mut usage = GroupUsage::of(&pids).context("the controller has ended")?;
        usage.cpu += self.ended_cpu;
        Ok(usage)
    }

    /// Executes a step of a scenario. Standby replicas of the built-in controller are idle, so it has none.
    pub(super) async fn step(
        &mut self,
        step: Step,
        disturbed: &mut DisturbedNamespaces,
        target: &mut Target,
    ) -> anyhow::Result<()> {
        let is_single = match &self.contestant {
            Contestant::Cronwheel { replicas, .. } => *replicas == 1,
            Contestant::Floor { .. } | Contestant::BuiltIn | Contestant::BuiltInUnthrottled => true,
        };
        match step {
            Step::StopApiServer => Ok(own(target)?.stop_api_server()?),
            Step::StartApiServer => Ok(own(target)?.start_api_server()?),
            Step::DelayCreates => disturbed.delay_creates(target).await,
            Step::RefuseCreates => disturbed.failing.refuse_creates(target).await,
            Step::AllowCreates => disturbed.failing.allow_creates(target),
            Step::Add | Step::Remove if is_single => Ok(()),
            Step::Add => self.add(target).await,
            Step::Remove => self.remove(target).await,
            Step::Replace if is_single => {
                self.remove(target).await?;
                self.add(target).await
            }
            Step::Replace => {
                self.add(target).await?;
                self.remove(target).await
            }
            Step::Kill => self.kill(target),
            Step::Restart => match self.killed.take() {
                Some(number) => self.begin(number, target).await,
                None => Ok(()),
            },
        }
    }

    pub(super) async fn stop(mut self, target: &mut Target) -> anyhow::Result<()> {
        match &mut self.processes {
            Processes::Floor(child) => {
                if let Some(status) = child.try_wait()? {
                    bail!("the bare creates ended ({status}) before their time");
                }
            }
            Processes::Controllers(controllers) => {
                for (_, controller) in controllers.drain(..) {
                    controller.stop(target).await?;
                }
            }
        }
        Ok(())
    }

    async fn add(&mut self, target: &mut Target) -> anyhow::Result<()> {
        let number = self.n_started;
        self.n_started += 1;
        self.begin(number, target).await
    }

    async fn begin(&mut self, number: u32, target: &mut Target) -> anyhow::Result<()> {
        let candidate = match &self.contestant {
            Contestant::Floor { .. } => bail!("bare creates have one process"),
            Contestant::BuiltIn => Candidate::Reference(ReferenceLimits::default()),
            Contestant::BuiltInUnthrottled => Candidate::Reference(super::contestant::UNTHROTTLED),
            Contestant::Cronwheel { program, arguments, .. } => {
                let mut arguments = arguments.clone();
                arguments.extend(replica_flags(number));
                Candidate::Cronwheel {
                    program: program.clone(),
                    arguments,
                }
            }
        };
        let folder = self.scratch.join(format!("replica-{number}"));
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        let controller = Controller::start(&candidate, target, &folder).await?;
        if let Processes::Controllers(controllers) = &mut self.processes {
            controllers.push_back((number, controller));
        }
        Ok(())
    }

    /// Removes the oldest replica from the list. Its usage so far is kept.
    fn take_oldest(&mut self, target: &Target) -> anyhow::Result<(u32, Controller)> {
        let Processes::Controllers(controllers) = &mut self.processes else {
            bail!("bare creates have one process");
        };
        let (number, controller) = controllers.pop_front().context("no replica is left")?;
        self.ended_cpu += GroupUsage::of(&[controller.pid(target)?])?.cpu;
        Ok((number, controller))
    }

    async fn remove(&mut self, target: &mut Target) -> anyhow::Result<()> {
        let (_, controller) = self.take_oldest(target)?;
        controller.stop(target).await
    }

    fn kill(&mut self, target: &mut Target) -> anyhow::Result<()> {
        let (number, controller) = self.take_oldest(target)?;
        if matches!(controller, Controller::Reference) {
            own(target)?.kill_reference()?;
        }
        // Dropping a replica of cronwheel kills it.
        drop(controller);
        self.killed = Some(number);
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Processes::Floor(child) = &mut self.processes {
            // Both fail only if it has exited already.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn own(target: &mut Target) -> anyhow::Result<&mut testbed::Testbed> {
    target
        .testbed_mut()
        .context("only our own control plane can be disturbed")
}

/// Starts the floor as a separate process, so that its processor time and memory are separate from those of the
/// measurement.
fn floor(target: &Target, scratch: &Path, in_flight: u32) -> anyhow::Result<Child> {
    let program = env::current_exe().context("cannot find the executable of loadtest")?;
    Command::new(program)
        .args(["bare-creates", "--kubeconfig"])
        .arg(target.candidate_kubeconfig(scratch)?)
        .args(floor_flags(in_flight))
        .stdin(Stdio::null())
        .spawn()
        .context("cannot start the bare creates")
}
