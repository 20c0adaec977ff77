//! The control plane that cases run on: one at a time, started for the first case of its kind and shared by the others.
//!
//! [`run`](libtest_mimic::run) starts cases in their order, each on a thread. A case that needs another control plane waits
//! until the cases on the present one have ended, and replaces it.

use std::{
    path::PathBuf,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    thread,
};

use testbed::{JobLife, Kubectl, Options, Testbed, TestbedError};

use super::account::rules;

/// What a control plane is for. Cases of the same purpose share one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Cases,
    Outages,
    Parity,
    Replicas,
}

impl Purpose {
    fn options(self) -> Options {
        match self {
            Purpose::Cases | Purpose::Parity => Options::default(),
            Purpose::Outages => Options {
                jobs: JobLife::None,
                audit: true,
                ..Options::default()
            },
            Purpose::Replicas => Options {
                audit: true,
                ..Options::default()
            },
        }
    }

    fn n_at_once(self) -> usize {
        match self {
            // Most of a case is waiting, but each has a process.
            Purpose::Cases => super::N_AT_ONCE,
            // Two processes each.
            Purpose::Parity => 4,
            // The machine's cores are for the replicas of so many cases.
            Purpose::Replicas => 3,
            Purpose::Outages => 1,
        }
    }
}

/// How to reach a control plane, and as whom.
#[derive(Clone)]
pub(super) struct Access {
    pub(super) admin_kubeconfig: PathBuf,
    /// Of the account that cronwheel is installed with.
    pub(super) controller_kubeconfig: PathBuf,
    /// Of the account of the built-in controller.
    pub(super) reference_kubeconfig: PathBuf,
    pub(super) kubectl: Kubectl,
    pub(super) etcd_url: String,
    /// Where it has one.
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
            // Its role comes with Kubernetes.
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
    /// None also while a case has it for itself.
    running: Option<Running>,
    /// On the one that runs.
    n_cases: usize,
    /// Why none could be started; another attempt would fail in the same way.
    broken: Option<String>,
}

impl Present {
    fn has_room_for(&self, purpose: Option<Purpose>) -> bool {
        let running = self.running.as_ref().map(|running| running.purpose);
        let is_joined = running.is_some() && running == purpose;
        self.n_cases == 0 || is_joined && purpose.is_some_and(|purpose| self.n_cases < purpose.n_at_once())
    }

    /// Replaces what runs unless it is for this purpose.
    fn provide(&mut self, purpose: Option<Purpose>) {
        if self.running.as_ref().map(|running| running.purpose) == purpose {
            return;
        }
        self.running = None;
        if let Some(reason) = &self.broken {
            panic!("no control plane: {reason}");
        }
        match purpose.map(Running::start).transpose() {
            Ok(running) => self.running = running,
            Err(error) => {
                self.broken = Some(error.to_string());
                panic!("no control plane: {error}");
            }
        }
    }
}

static PRESENT: Mutex<Present> = Mutex::new(Present {
    running: None,
    n_cases: 0,
    broken: None,
});
static CHANGED: Condvar = Condvar::new();

fn present() -> MutexGuard<'static, Present> {
    PRESENT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A case's time on the stage; ends when it is dropped.
struct Visit {
    /// What the case has for itself.
    taken: Option<Running>,
}

impl Visit {
    fn begin(purpose: Option<Purpose>) -> (Visit, MutexGuard<'static, Present>) {
        let mut present = CHANGED
            .wait_while(present(), |present| !present.has_room_for(purpose))
            .unwrap_or_else(PoisonError::into_inner);
        present.provide(purpose);
        present.n_cases += 1;
        (Visit { taken: None }, present)
    }
}

impl Drop for Visit {
    fn drop(&mut self) {
        let taken = self.taken.take();
        // A failed case may have left it unfit for others; it is stopped before another is started.
        let fit = if thread::panicking() { None } else { taken };
        let mut present = present();
        present.running = present.running.take().or(fit);
        present.n_cases -= 1;
        CHANGED.notify_all();
    }
}

/// Runs a case beside others of its purpose.
pub(super) fn share(purpose: Purpose, case: impl FnOnce(&Access)) {
    let (_visit, present) = Visit::begin(Some(purpose));
    let access = present.running.as_ref().expect("it was provided").access.clone();
    drop(present);
    case(&access);
}

/// Runs a case that changes the control plane, alone. Its purpose must admit one case at a time. The case must leave it as it found it, unless it fails.
pub(super) fn take(purpose: Purpose, case: impl FnOnce(&mut Testbed, &Access)) {
    assert_eq!(purpose.n_at_once(), 1, "others may run beside a case of {purpose:?}");
    let (mut visit, mut present) = Visit::begin(Some(purpose));
    visit.taken = present.running.take();
    drop(present);
    let running = visit.taken.as_mut().expect("it was provided");
    case(&mut running.testbed, &running.access);
}

/// Runs a case that starts control planes itself, alone.
pub(super) fn without(case: impl FnOnce()) {
    let (_visit, present) = Visit::begin(None);
    drop(present);
    case();
}

/// Stops what runs, after the last case.
pub(super) fn stop() -> Result<(), TestbedError> {
    let running = present().running.take();
    running.map_or(Ok(()), |running| running.testbed.stop())
}
