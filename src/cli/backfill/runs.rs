//! Starts the Jobs of a plan one after the other, some at a time, and waits for their ends.

use std::{collections::VecDeque, fmt::Write as _, io::Write, pin::Pin, time::Duration};

use futures::FutureExt as _;

use super::{
    console::Console,
    plan::{Plan, Start, counted},
    target::{FoundJob, Started, Target},
};
use crate::{
    cli::error::CommandError,
    observe::words::harmless,
    shard::{Finish, Uid},
};

/// Pause between two looks at the Jobs that run.
const PAUSE: Duration = Duration::from_secs(1);

/// The numbers of slots and Jobs so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally {
    pub(super) started: usize,
    /// Slots whose Job existed before.
    pub(super) there: usize,
    /// Slots whose Job's name belongs to another owner.
    pub(super) foreign: usize,
    /// Slots that a controller has reached meanwhile.
    pub(super) reached: usize,
    pub(super) succeeded: usize,
    pub(super) failed: usize,
    /// Jobs that were deleted before their end was seen.
    pub(super) deleted: usize,
}

impl Tally {
    /// The slots that need nothing more.
    fn n_done(&self) -> usize {
        self.there + self.foreign + self.reached + self.succeeded + self.failed + self.deleted
    }

    /// One line about all slots.
    pub(super) fn summary(&self) -> String {
        let ends = [
            (self.succeeded, "succeeded"),
            (self.failed, "failed"),
            (self.deleted, "deleted before the end was seen"),
        ];
        let ends = ends.iter().filter(|(n, _)| *n > 0);
        let ends: Vec<String> = ends.map(|(n, end)| format!("{n} {end}")).collect();
        let mut text = format!("{} started", counted(self.started, "Job"));
        if !ends.is_empty() {
            let _ = write!(text, ": {}", ends.join(", "));
        }
        if self.there > 0 {
            let _ = write!(text, "; {} already there", self.there);
        }
        if self.reached > 0 {
            let _ = write!(text, "; {} left to the controller", self.reached);
        }
        if self.foreign > 0 {
            let _ = write!(text, "; {} not started, because another Job has the name", self.foreign);
        }
        text
    }
}

/// How a backfill ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    Done(Tally),
    /// The number of the first slot that was not started.
    Interrupted(Tally, usize),
}

/// A Job that counts towards `--parallel`.
struct Running {
    name: Box<str>,
    /// `None` for one that ran before.
    uid: Option<Uid>,
    is_of_plan: bool,
}

/// A backfill in progress.
pub(super) struct Runs<'a, 'b, W, F> {
    pub(super) target: &'a Target,
    pub(super) n_parallel: usize,
    pub(super) console: &'a mut Console<'b, W>,
    pub(super) interrupted: Pin<&'a mut F>,
}

impl<W: Write, F: Future<Output = ()>> Runs<'_, '_, W, F> {
    /// Starts every slot of the plan and waits until the last Job ends. What runs goes on after an interruption.
    pub(super) async fn perform(mut self, plan: &Plan) -> Result<Ending, CommandError> {
        let mut tally = Tally::default();
        let mut running = self.running_before(plan)?;
        let mut next = 0;
        loop {
            while running.len() < self.n_parallel
                && let Some(start) = plan.start.get(next)
            {
                if self.interrupted.as_mut().now_or_never().is_some() {
                    return Ok(Ending::Interrupted(tally, next));
                }
                running.extend(self.start(start, &mut tally).await?);
                next += 1;
                self.console.progress(tally.n_done(), plan.start.len())?;
            }
            let is_waiting = running.iter().any(|job| job.is_of_plan) || next < plan.start.len();
            if !is_waiting {
                return Ok(Ending::Done(tally));
            }
            tokio::select! {
                biased;
                () = self.interrupted.as_mut() => return Ok(Ending::Interrupted(tally, next)),
                () = tokio::time::sleep(PAUSE) => {}
            }
            running = self.still_running(running, &mut tally).await?;
            self.console.progress(tally.n_done(), plan.start.len())?;
        }
    }

    fn running_before(&mut self, plan: &Plan) -> Result<VecDeque<Running>, CommandError> {
        for name in &plan.running {
            self.console.line(&format!(
                "Job {} runs already and counts towards --parallel",
                harmless(name)
            ))?;
        }
        let before = plan.running.iter().map(|name| Running {
            name: name.clone(),
            uid: None,
            is_of_plan: false,
        });
        Ok(before.collect())
    }

    /// Starts a slot. Returns its Job if that runs.
    async fn start(&mut self, start: &Start, tally: &mut Tally) -> Result<Option<Running>, CommandError> {
        let (name, slot) = (harmless(&start.job_name), start.slot);
        let job = |uid: Uid| Running {
            name: start.job_name.clone(),
            uid: Some(uid),
            is_of_plan: true,
        };
        Ok(match self.target.start(start).await? {
            Started::Created(uid) => {
                tally.started += 1;
                self.console.line(&format!("started {name} for {slot}"))?;
                Some(job(uid))
            }
            Started::Exists(FoundJob { uid, finish }) => {
                tally.there += 1;
                self.console.line(&format!("{name} for {slot} is already there"))?;
                // It counts as done, and its place is taken while it runs.
                finish.is_none().then(|| Running {
                    is_of_plan: false,
                    ..job(uid)
                })
            }
            Started::Reached => {
                tally.reached += 1;
                self.console.line(&format!(
                    "{name} for {slot} is left to the controller, which has reached the slot"
                ))?;
                None
            }
            Started::Foreign => {
                tally.foreign += 1;
                self.console
                    .line(&format!("{name} for {slot} is not started: another Job has the name"))?;
                None
            }
        })
    }

    /// Looks at each Job, and counts those that have ended.
    async fn still_running(
        &mut self,
        running: VecDeque<Running>,
        tally: &mut Tally,
    ) -> Result<VecDeque<Running>, CommandError> {
        let mut remaining = VecDeque::new();
        for job in running {
            let found = self.target.find(&job.name).await?;
            // Another Job may have the name by now.
            let found = found.filter(|found| job.uid.as_ref().is_none_or(|uid| *uid == found.uid));
            let (end, count) = match found {
                Some(FoundJob { finish: None, .. }) => {
                    remaining.push_back(job);
                    continue;
                }
                Some(FoundJob {
                    finish: Some(Finish::Complete),
                    ..
                }) => ("succeeded", &mut tally.succeeded),
                Some(FoundJob {
                    finish: Some(Finish::Failed),
                    ..
                }) => ("failed", &mut tally.failed),
                None => ("is gone", &mut tally.deleted),
            };
            *count += usize::from(job.is_of_plan);
            self.console.line(&format!("{} {end}", harmless(&job.name)))?;
        }
        Ok(remaining)
    }
}
