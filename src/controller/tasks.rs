//! The tasks of a run: supervision, and the order in which the shutdown ends them.
//!
//! Invariant: no task outlives its run, however the run ends.

use futures::future::select_all;
use tokio::task::JoinHandle;

use super::{
    RuntimeError,
    shutdown::{Phase, PhaseSender},
};
use crate::kube_api::ordered_watch::OrderedReceiver;

/// A running task. Dropping it aborts the task.
pub(super) struct Task {
    pub(super) name: &'static str,
    /// The phase of the shutdown in which the task ends.
    pub(super) ends_in: Phase,
    pub(super) handle: JoinHandle<()>,
}

impl Drop for Task {
    fn drop(&mut self) {
        self.handle.abort();
    }
}

/// A regular end, of the process or of a session.
pub(super) enum Ended {
    /// The process ended after a signal.
    Process,
    /// The session ended. The next session starts beside the lasting tasks.
    Session { lasting: Vec<Task>, ended: Vec<Task> },
}

/// Waits until the session ends or a signal arrives. A signal takes the process through the phases of the shutdown.
pub(super) async fn supervise(
    lasting: Vec<Task>,
    mut tasks: Vec<Task>,
    phases: &PhaseSender,
    went_back: &mut OrderedReceiver<bool>,
    mut next_signal: impl AsyncFnMut() -> &'static str,
) -> Result<Ended, RuntimeError> {
    let n_of_session = tasks.len();
    tasks.extend(lasting);
    let signal = tokio::select! {
        biased;
        error = first_to_end(&mut tasks) => return Err(error),
        signal = next_signal() => signal,
        () = went_back.wait_for(|went_back| *went_back) => {
            let lasting = tasks.split_off(n_of_session);
            return Ok(Ended::Session { lasting, ended: tasks });
        }
    };
    tracing::info!(signal, "going down");
    tokio::select! {
        biased;
        result = wind_down(tasks, phases) => result.map(|()| Ended::Process),
        signal = next_signal() => Err(RuntimeError::Interrupted { signal }),
    }
}

/// Aborts tasks as a crash would, and returns when none of them runs any more.
pub(super) async fn end_at_once(tasks: Vec<Task>) {
    for task in &tasks {
        task.handle.abort();
    }
    for mut task in tasks {
        // The result is ignored: the task was aborted, or it failed at the same instant.
        let _ = (&mut task.handle).await;
    }
}

async fn first_to_end(tasks: &mut [Task]) -> RuntimeError {
    let (result, position, _) = select_all(tasks.iter_mut().map(|task| &mut task.handle)).await;
    let task = tasks[position].name;
    match result {
        Ok(()) => RuntimeError::TaskEnded { task },
        Err(source) => RuntimeError::TaskFailed { task, source },
    }
}

/// Ends the tasks phase by phase. Every task bounds the time of its own end.
async fn wind_down(tasks: Vec<Task>, phases: &PhaseSender) -> Result<(), RuntimeError> {
    let mut left = tasks;
    let all = [
        Phase::HandOver,
        Phase::StopIntake,
        Phase::EndShards,
        Phase::FlushStatuses,
        Phase::FlushEvents,
        Phase::End,
    ];
    for phase in all {
        phases.advance(phase);
        let (ending, later): (Vec<Task>, Vec<Task>) = left.into_iter().partition(|task| task.ends_in == phase);
        for mut task in ending {
            let name = task.name;
            (&mut task.handle)
                .await
                .map_err(|source| RuntimeError::TaskFailed { task: name, source })?;
            tracing::debug!(task = name, "ended");
        }
        left = later;
    }
    tracing::info!("ended");
    Ok(())
}

#[cfg(test)]
mod tests;
