//! The tasks of a run: their start, supervision, and the order in which the shutdown ends them. No other file spawns tasks.
//!
//! Invariant: no task outlives its run, however the run ends.

use futures::future::select_all;
use tokio::task::JoinHandle;

use super::{
    RuntimeError,
    shutdown::{Phase, PhaseSender},
};
use crate::kube_api::latest_value::LatestReceiver;

/// A running task. Dropping it aborts the task.
pub(super) struct Task {
    pub(super) name: &'static str,
    /// The phase of the shutdown in which the task ends.
    pub(super) ends_in: Phase,
    pub(super) handle: JoinHandle<()>,
}

impl Task {
    /// Starts a task. Nothing else starts one.
    pub(super) fn spawn(name: &'static str, ends_in: Phase, task: impl Future<Output = ()> + Send + 'static) -> Task {
        Task {
            name,
            ends_in,
            handle: tokio::spawn(task),
        }
    }
}

impl Drop for Task {
    fn drop(&mut self) {
        self.handle.abort();
    }
}

/// Runs the tasks until a signal arrives, which takes the process through the phases of the shutdown, or until the
/// history of the API server goes back, which ends it at once.
pub(super) async fn supervise(
    mut tasks: Vec<Task>,
    phases: &PhaseSender,
    went_back: &mut LatestReceiver<bool>,
    mut next_signal: impl AsyncFnMut() -> &'static str,
) -> Result<(), RuntimeError> {
    let signal = tokio::select! {
        biased;
        error = first_to_end(&mut tasks) => return Err(error),
        signal = next_signal() => signal,
        () = went_back.wait_for(|went_back| *went_back) => return Err(RuntimeError::HistoryWentBack),
    };
    tracing::info!(signal, "going down");
    tokio::select! {
        biased;
        result = wind_down(tasks, phases) => result,
        signal = next_signal() => Err(RuntimeError::Interrupted { signal }),
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
