//! cronwheel beside the built-in controller: the admission policy keeps the built-in controller out of labelled
//! namespaces while a replica acts, and lets it in when none does.

mod conflicts;
mod report;
mod second;
mod silenced;
mod view;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
    time::Duration,
};

use anyhow::{Context as _, bail};
use clap::Args;
use jiff::{SignedDuration, Timestamp};
use testbed::{Component, ReferenceLimits, Testbed};

use self::{
    report::{BesideReport, Outage, Periods},
    second::Second,
    silenced::{LogSize, Spending},
    view::View,
};
use super::{create_between_slots, handovers::existing_jobs, progress, sleep_until, whole_audit_log};
use crate::{
    audit::Request,
    controller::{Candidate, Controller, REFERENCE_USER},
    generator::{Load, Variety},
    measure,
    slots::{Slot, Slots},
    target::Target,
};

/// The policy, as installed in production.
const POLICY: &str = include_str!("../../../deploy/manifests/built-in-policy.yaml");

/// The label of the namespaces whose CronJobs cronwheel runs.
const MANAGED: &str = "cronwheel.dev/managed";

/// The user of kube-controller-manager without service account credentials.
const SHARED_USER: &str = "system:kube-controller-manager";

/// The rights that this user has on clusters where it runs all controllers.
const SHARED_IDENTITY_RIGHTS: &str = "\
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata:
  name: load-test-shared-identity
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: ClusterRole
  name: cluster-admin
subjects:
  - apiGroup: rbac.authorization.k8s.io
    kind: User
    name: system:kube-controller-manager
";

/// Figures of a minute count from this long before its slot.
const BEFORE_SLOT: SignedDuration = SignedDuration::from_secs(5);

/// How long the built-in controller may take to stand in.
const STAND_IN_MAX: Duration = Duration::from_mins(2);

/// When a controller is killed after a slot: its creates are in flight.
const KILL_AFTER_SLOT: SignedDuration = SignedDuration::from_millis(300);

#[derive(Debug, Args)]
pub(crate) struct BesideArguments {
    /// Number of CronJobs in labelled namespaces, all due at every full minute.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..))]
    cronjobs: u32,
    /// Number of labelled namespaces.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    namespaces: u32,
    /// Number of CronJobs in two namespaces without the label.
    #[arg(long, default_value_t = 100)]
    unmanaged: u32,
    /// Minutes to measure, first of cronwheel alone and then beside the built-in controller.
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..))]
    minutes: u32,
    /// How often cronwheel is killed afterwards, and started again after the built-in controller has stood in.
    #[arg(long, default_value_t = 0)]
    outages: u32,
    /// For how many minutes a namespace loses the label and gets it back in every minute, while controllers are killed
    /// in turn.
    #[arg(long, default_value_t = 0)]
    moves: u32,
    /// Give the CronJobs in labelled namespaces all policies, Jobs of 1 to 50 s, zones, deadlines, failures, history limits
    /// and suspensions.
    #[arg(long)]
    mixed: bool,
    /// Let the built-in controller act as `system:kube-controller-manager`, as where kube-controller-manager uses no
    /// service account credentials.
    #[arg(long)]
    shared_identity: bool,
    /// Number of installations. The second one has as many CronJobs, in as many namespaces, and its own label, account and
    /// policy.
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=2))]
    installations: u32,
    /// Executable of cronwheel. By default, the release build of this workspace, which is updated first.
    #[arg(long)]
    cronwheel: Option<PathBuf>,
}

/// Runs the scenario and prints its result.
pub(crate) async fn run(
    arguments: BesideArguments,
    run_id: &str,
    build: impl FnOnce() -> anyhow::Result<PathBuf>,
    scratch: &Path,
) -> anyhow::Result<ExitCode> {
    let managed = |name: &str| managed_load(&arguments, format!("{run_id}-{name}"));
    let program = arguments.cronwheel.clone().map_or_else(build, Ok)?;
    let mut flags = vec![format!("--namespace-selector={MANAGED}=true")];
    flags.extend(built_in_policies("cronwheel"));
    let beside = Beside {
        managed: managed("managed"),
        unmanaged: Load::minutely(format!("{run_id}-other"), arguments.unmanaged, 2, 5),
        second: (arguments.installations == 2).then(|| Second::new(managed("second"), program.clone())),
        candidate: Candidate::Cronwheel {
            program,
            arguments: flags,
        },
        n_minutes: arguments.minutes,
        n_outages: arguments.outages,
        n_moves: arguments.moves,
        reference: ReferenceLimits {
            shared_identity: arguments.shared_identity,
            ..ReferenceLimits::default()
        },
    };
    let report = beside.run(&mut Target::start()?, scratch).await?;
    println!("{report}");
    Ok(ExitCode::from(u8::from(!report.is_clean())))
}

/// The parameters of a run.
#[derive(Clone, Debug)]
struct Beside {
    managed: Load,
    unmanaged: Load,
    second: Option<Second>,
    candidate: Candidate,
    n_minutes: u32,
    n_outages: u32,
    n_moves: u32,
    reference: ReferenceLimits,
}

/// The measured minutes.
struct Minutes {
    alone: Slots,
    beside: Slots,
    after: Slots,
}

impl Beside {
    async fn run(&self, target: &mut Target, scratch: &Path) -> anyhow::Result<BesideReport> {
        let kubectl = target.kubectl().clone();
        for load in [&self.managed, &self.unmanaged] {
            kubectl.apply(&load.namespaces_manifest())?;
        }
        for namespace in self.managed.namespaces() {
            label(target, MANAGED, &namespace, true)?;
        }
        kubectl.apply(POLICY)?;
        if self.reference.shared_identity {
            kubectl.apply(SHARED_IDENTITY_RIGHTS)?;
        }
        let mut controller = Controller::start(&self.candidate, target, scratch).await?;
        let mut second = None;
        if let Some(other) = &self.second {
            second = Some(other.start(target, scratch).await?);
            create_between_slots(&other.load, target).await?;
        }
        create_between_slots(&self.unmanaged, target).await?;
        let first = create_between_slots(&self.managed, target).await?;

        progress("cronwheel alone");
        let alone = self.slots_from(first);
        sleep_until(alone.end().start() - BEFORE_SLOT).await;
        testbed(target)?.start_reference(self.reference)?;

        progress("beside the built-in controller");
        // In its first minute, the built-in controller catches up on the namespaces without the label.
        let beside = self.slots_from(Slot::at_or_after(alone.end().start() + SignedDuration::from_secs(1)));
        sleep_until(beside.first_measured().start() - BEFORE_SLOT).await;
        let built_in_log = testbed(target)?.log_path(Component::Reference);
        let log_before = LogSize::read(&built_in_log)?;
        sleep_until(beside.end().start() - BEFORE_SLOT).await;
        let log = [log_before, LogSize::read(&built_in_log)?];
        let mut outages = Vec::new();
        for number in 1..=self.n_outages {
            progress(&format!("outage {number} of {}", self.n_outages));
            let outage = self.outage(controller, target, scratch).await?;
            controller = outage.0;
            outages.push(outage.1);
        }
        let moves = self.move_namespace(&mut controller, target, scratch).await?;
        let last = Slot::at_or_after(Timestamp::now());
        sleep_until(last.start() - BEFORE_SLOT).await;

        controller.stop(target).await?;
        if let Some(second) = second {
            second.stop(target).await?;
        }
        testbed(target)?.stop_reference()?;
        let ours = whole_audit_log(target, &Target::candidate_user()).await?;
        let theirs = whole_audit_log(target, self.reference_user()).await?;
        target.check_audit_log()?;
        let after = Slots::starting_at(beside.end().start(), 0, minutes_between(beside.end(), last));
        let minutes = Minutes { alone, beside, after };
        let outages: Vec<Outage> = outages
            .into_iter()
            .map(|outage| outage.judged(&ours, &theirs))
            .collect();
        let (begin, end) = view::bounds(&minutes.beside);
        let while_silenced = theirs.iter().filter(|one| (begin..end).contains(&one.received));
        Ok(BesideReport {
            machine: measure::machine_line(target.kubectl(), self.candidate.program()),
            n_managed: self.managed.n_cron_jobs,
            n_unmanaged: self.unmanaged.n_cron_jobs,
            first: self.first(target, &minutes, &ours, &theirs)?.with_outages(&outages),
            second: self.second(target, &minutes, &theirs).await?,
            spending: Spending::of(while_silenced, end.duration_since(begin).as_secs_f64(), log),
            outages,
            moves,
        })
    }

    fn first(
        &self,
        target: &Target,
        minutes: &Minutes,
        ours: &[Request],
        theirs: &[Request],
    ) -> anyhow::Result<Periods> {
        let of_second = self.second.iter().flat_map(|second| second.load.namespaces());
        let view = View {
            load: &self.managed,
            ours,
            theirs,
            existing: existing_jobs(target.kubectl(), &self.managed)?,
            elsewhere: self.unmanaged.namespaces().into_iter().chain(of_second).collect(),
        };
        let with_others = |slots| view.period(slots).with_unmanaged(&view, &self.unmanaged, slots);
        Ok(Periods {
            alone: view.period(&minutes.alone),
            beside: with_others(&minutes.beside),
            after: with_others(&minutes.after),
        })
    }

    async fn second(&self, target: &Target, minutes: &Minutes, theirs: &[Request]) -> anyhow::Result<Option<Periods>> {
        let Some(Second { load, .. }) = &self.second else {
            return Ok(None);
        };
        let view = View {
            load,
            ours: &whole_audit_log(target, &Second::user()).await?,
            theirs,
            existing: existing_jobs(target.kubectl(), load)?,
            elsewhere: [self.unmanaged.namespaces(), self.managed.namespaces()].concat(),
        };
        Ok(Some(Periods {
            alone: view.period(&minutes.alone),
            beside: view.period(&minutes.beside),
            after: view.period(&minutes.after),
        }))
    }

    /// The user that the built-in controller acts as.
    fn reference_user(&self) -> &'static str {
        if self.reference.shared_identity {
            SHARED_USER
        } else {
            REFERENCE_USER
        }
    }

    fn slots_from(&self, first: Slot) -> Slots {
        Slots::starting_at(first.start(), 1, self.n_minutes)
    }

    /// Kills cronwheel, waits until the built-in controller has stood in for a minute, and starts cronwheel again.
    async fn outage(
        &self,
        controller: Controller,
        target: &mut Target,
        scratch: &Path,
    ) -> anyhow::Result<(Controller, Outage)> {
        let slot = Slot::at_or_after(Timestamp::now());
        sleep_until(slot.start() + KILL_AFTER_SLOT).await;
        let killed = Timestamp::now();
        // A drop kills it.
        drop(controller);
        let stood_in = self.first_create_by_built_in(target, killed).await?;
        sleep_until(stood_in + SignedDuration::from_secs(75)).await;
        let controller = Controller::start(&self.candidate, target, scratch).await?;
        let back = Timestamp::now();
        sleep_until(back + SignedDuration::from_secs(75)).await;
        let outage = Outage {
            killed,
            stood_in,
            back,
            late_conflicts: Vec::new(),
        };
        Ok((controller, outage))
    }

    async fn first_create_by_built_in(&self, target: &Target, since: Timestamp) -> anyhow::Result<Timestamp> {
        let managed = self.managed.namespaces();
        while Timestamp::now().duration_since(since) < SignedDuration::try_from(STAND_IN_MAX)? {
            let requests = target.requests(self.reference_user())?;
            let mut creates = requests
                .iter()
                .filter(|one| one.is_job_create() && one.received > since);
            if let Some(first) = creates.find(|one| managed.contains(&one.namespace)) {
                return Ok(first.received);
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        bail!(
            "the built-in controller does not stand in within {} s",
            STAND_IN_MAX.as_secs()
        )
    }

    /// Moves a namespace to the built-in controller and back in every minute. Kills one of the controllers in each, and
    /// starts it again. Returns how often the namespace moved.
    async fn move_namespace(
        &self,
        controller: &mut Controller,
        target: &mut Target,
        scratch: &Path,
    ) -> anyhow::Result<u32> {
        let namespace = self.managed.namespace(0);
        for number in 0..self.n_moves {
            let slot = Slot::at_or_after(Timestamp::now());
            sleep_until(slot.start() + KILL_AFTER_SLOT).await;
            if number % 2 == 0 {
                controller.kill();
                *controller = Controller::start(&self.candidate, target, scratch).await?;
            } else {
                let testbed = testbed(target)?;
                testbed.stop_reference()?;
                testbed.start_reference(self.reference)?;
            }
            sleep_until(slot.start() + SignedDuration::from_secs(20)).await;
            label(target, MANAGED, &namespace, false)?;
            sleep_until(slot.start() + SignedDuration::from_secs(45)).await;
            label(target, MANAGED, &namespace, true)?;
        }
        Ok(2 * self.n_moves)
    }
}

fn managed_load(arguments: &BesideArguments, name: String) -> Load {
    let mut load = Load::minutely(name, arguments.cronjobs, arguments.namespaces, 5);
    if arguments.mixed {
        load.variety = Variety::MinutelyMixed;
    }
    load
}

fn testbed(target: &mut Target) -> anyhow::Result<&mut Testbed> {
    target
        .testbed_mut()
        .context("the built-in controller runs on our own API server only")
}

/// The flags with the names of the policies of a release.
fn built_in_policies(release: &str) -> [String; 2] {
    ["writes", "deletes"].map(|policy| format!("--built-in-policy={release}-built-in-{policy}"))
}

fn label(target: &Target, key: &str, namespace: &str, is_managed: bool) -> anyhow::Result<()> {
    let change = if is_managed {
        format!("{key}=true")
    } else {
        format!("{key}-")
    };
    target
        .kubectl()
        .run(&["label", "--overwrite", "namespace", namespace, &change])?;
    Ok(())
}

fn minutes_between(first: Slot, last: Slot) -> u32 {
    let minutes = last.start().duration_since(first.start()).as_mins();
    u32::try_from(minutes).unwrap_or_default()
}
