//! The control planes that cases run on. In each lane, only one runs at a time. It is started for the first case of its kind
//! and shared by the others.
//!
//! [`run`](libtest_mimic::run) starts cases in order, each on a thread. A case that needs another control plane waits
//! until the cases on the current one of its lane have ended, and replaces it.

use std::{
    path::PathBuf,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    thread,
};

use testbed::{JobLife, Kubectl, Options, Testbed, TestbedError};

use super::account::rules;

/// The purpose of a control plane. Cases with the same purpose share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Beside,
    Cases,
    Outages,
    Parity,
    Replicas,
    /// Replicas, in cases that stop the API server.
    ReplicasOutage,
}

impl Purpose {
    fn options(self) -> Options {
        match self {
            Purpose::Parity => Options::default(),
            Purpose::Outages => Options {
                jobs: JobLife::None,
                audit: true,
                ..Options::default()
            },
            Purpose::Beside | Purpose::Cases | Purpose::Replicas | Purpose::ReplicasOutage => Options {
                audit: true,
                ..Options::default()
            },
        }
    }

    /// The lane of its cases. Those of the second lane wait for full minutes and need little processor time, so they run
    /// beside the others.
    fn lane(self) -> &'static Lane {
        match self {
            Purpose::Beside | Purpose::Parity => &LANES[1],
            Purpose::Cases | Purpose::Outages | Purpose::Replicas | Purpose::ReplicasOutage => &LANES[0],
        }
    }

    fn n_at_once(self) -> usize {
        match self {
            // Cases mostly wait, but each has a process.
            Purpose::Cases => super::N_AT_ONCE,
            // Each case has two processes.
            Purpose::Parity => 4,
            // The cores of a small machine suffice for the replicas of this many cases.
            Purpose::Replicas => 3,
            Purpose::Beside | Purpose::Outages | Purpose::ReplicasOutage => 1,
        }
    }
}

/// How to connect to a control plane.
#[derive(Clone)]
pub(super) struct Access {
    pub(super) admin_kubeconfig: PathBuf,
    /// With the service account of an installation.
    pub(super) controller_kubeconfig: PathBuf,
    /// With the service account of the built-in controller.
    pub(super) reference_kubeconfig: PathBuf,
    pub(super) kubectl: Kubectl,
    pub(super) etcd_url: String,
    /// The audit log, if enabled.
    pub(super) audit_log: Option<PathBuf>,
}

struct Running {
    purpose: Purpose,
    testbed: Testbed,
    access: Access,
}

impl Running {
    fn start(purpose: Purpose) -> Result<Running, TestbedError> {
        let testbed = Testbed::start(purpose.options())?;
        let account = |name, rules: &str| testbed.service_account_kubeconfig("kube-system", name, rules);
        let access = Access {
            admin_kubeconfig: testbed.kubeconfig(),
            controller_kubeconfig: account("cronwheel", &rules())?,
            // Kubernetes defines its role.
            reference_kubeconfig: account("cronjob-controller", "")?,
            kubectl: testbed.kubectl(),
            etcd_url: testbed.etcd_url(),
            audit_log: testbed.audit_log_path(),
        };
        Ok(Running {
            purpose,
            testbed,
            access,
        })
    }
}

#[derive(Default)]
struct Present {
    /// Also `None` while a case has exclusive use of it.
    running: Option<Running>,
    /// The number of cases on the running control plane.
    n_cases: usize,
    /// The reason why no control plane could be started. Another attempt would fail in the same way.
    broken: Option<String>,
}

impl Present {
    fn has_room_for(&self, purpose: Purpose) -> bool {
        let is_joined = self.running.as_ref().is_some_and(|running| running.purpose == purpose);
        self.n_cases == 0 || is_joined && self.n_cases < purpose.n_at_once()
    }

    /// Replaces the running control plane unless it has this purpose.
    fn provide(&mut self, purpose: Purpose) {
        if self.running.as_ref().is_some_and(|running| running.purpose == purpose) {
            return;
        }
        self.running = None;
        if let Some(reason) = &self.broken {
            panic!("no control plane: {reason}");
        }
        match Running::start(purpose) {
            Ok(running) => self.running = Some(running),
            Err(error) => {
                self.broken = Some(error.to_string());
                panic!("no control plane: {error}");
            }
        }
    }
}

/// Cases that wait for each other.
struct Lane {
    present: Mutex<Present>,
    changed: Condvar,
}

impl Lane {
    const fn new() -> Lane {
        let present = Present {
            running: None,
            n_cases: 0,
            broken: None,
        };
        Lane {
            present: Mutex::new(present),
            changed: Condvar::new(),
        }
    }

    fn present(&self) -> MutexGuard<'_, Present> {
        self.present.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

static LANES: [Lane; 2] = [Lane::new(), Lane::new()];

/// The presence of a case on a control plane. It ends on drop.
struct Visit {
    lane: &'static Lane,
    /// The control plane that the case has exclusively.
    taken: Option<Running>,
}

impl Visit {
    fn begin(purpose: Purpose) -> (Visit, MutexGuard<'static, Present>) {
        let lane = purpose.lane();
        let mut present = lane
            .changed
            .wait_while(lane.present(), |present| !present.has_room_for(purpose))
            .unwrap_or_else(PoisonError::into_inner);
        present.provide(purpose);
        present.n_cases += 1;
        (Visit { lane, taken: None }, present)
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        let taken = self.taken.take();
        // A failed case may have left the control plane unusable. It is stopped before another one is started.
        let fit = if thread::panicking() { None } else { taken };
        let mut present = self.lane.present();
        present.running = present.running.take().or(fit);
        present.n_cases -= 1;
        self.lane.changed.notify_all();
    }
}

/// Runs a case in parallel with others of the same purpose.
pub(super) fn share(purpose: Purpose, case: impl FnOnce(&Access)) {
    let (_visit, present) = Visit::begin(purpose);
    let access = present.running.as_ref().expect("it was provided").access.clone();
    drop(present);
    case(&access);
}

/// Runs a case alone, because it changes the control plane. The purpose must allow only one case at a time. Unless it
/// fails, the case must restore the control plane.
pub(super) fn take(purpose: Purpose, case: impl FnOnce(&mut Testbed, &Access)) {
    assert_eq!(purpose.n_at_once(), 1, "others may run beside a case of {purpose:?}");
    let (mut visit, mut present) = Visit::begin(purpose);
    visit.taken = present.running.take();
    drop(present);
    let running = visit.taken.as_mut().expect("it was provided");
    case(&mut running.testbed, &running.access);
}

/// Stops the running control planes, after the last case.
pub(super) fn stop() -> Result<(), TestbedError> {
    LANES.iter().try_for_each(|lane| {
        let running = lane.present().running.take();
        running.map_or(Ok(()), |running| running.testbed.stop())
    })
}
