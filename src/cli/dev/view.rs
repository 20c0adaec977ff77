//! Shows the state once a second on a screen, or every ten seconds as a line. The state comes from two watches, like
//! any client's; the lateness comes from the controller's metrics.

use std::{
    io::{self, Write, stderr, stdout},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use futures::{StreamExt, future::pending, stream};
use jiff::Timestamp;
use kube::Client;
use tokio::{
    sync::Notify,
    task::block_in_place,
    time::{MissedTickBehavior, interval},
};

use super::{
    board::Board,
    faults::Injection,
    lateness::{self, LatenessWindow},
    log_tail::LogTail,
    screen::{Guide, Picture},
    terminal::{Terminal, can_draw},
};
use crate::{
    controller::clock::Clock,
    kube_api::{Decoder, WatchItem, watch},
    shard::Scope,
    telemetry::{
        logging::{self, LogFormat, LogLevel},
        metrics::Metrics,
    },
};

/// Interval between updates of the screen and of the lateness.
const REFRESH_INTERVAL: Duration = Duration::from_secs(1);

/// Number of updates per printed line without a screen.
const REFRESHES_PER_LINE: u64 = 10;

/// Maximum number of watch items per update of the time.
const FACTS_MAX: usize = 512;

/// The form of the output.
#[derive(Clone)]
pub(super) enum OutputMode {
    /// A screen.
    Screen(Terminal, LogTail),
    /// Lines.
    Lines,
}

impl OutputMode {
    /// Begins the screen, or prints the first lines if there is no screen; and starts the log, which must not disturb a
    /// screen.
    pub(super) fn begin(guide: &Guide, log_level: LogLevel) -> io::Result<OutputMode> {
        if can_draw() {
            let log = LogTail::new();
            logging::start_to(LogFormat::Text, log_level, log.clone());
            return Ok(OutputMode::Screen(Terminal::open()?, log));
        }
        logging::start(LogFormat::Text, log_level);
        for line in guide.lines() {
            writeln!(stdout(), "{line}")?;
        }
        Ok(OutputMode::Lines)
    }

    /// From now on, never waits for a terminal that the user has stopped.
    pub(super) fn release(&self) {
        if let OutputMode::Screen(..) = self {
            Terminal::release();
        }
    }

    /// Restores the terminal, prints the last lines of the log after a failure, and prints the last line. The output
    /// may be closed.
    pub(super) fn end(&self, is_failed: bool, last_line: &str) {
        if let OutputMode::Screen(terminal, log) = self {
            terminal.close();
            let lines = if is_failed { log.last(usize::MAX) } else { Vec::new() };
            for line in lines {
                let _written = writeln!(stderr(), "{line}");
            }
        }
        let _written = writeln!(stdout(), "{last_line}");
    }
}

/// The state that the view and the last line show.
pub(super) struct SharedBoard {
    board: Mutex<Board>,
    clock: Clock,
    begun: Timestamp,
    /// The instant at which the end began. Later slots do not count.
    ended: OnceLock<Timestamp>,
    injection: Option<Injection>,
    /// Number of CronJobs that are still to be created.
    pub(super) n_to_fill: Arc<AtomicU32>,
}

impl SharedBoard {
    pub(super) fn begin(clock: Clock, injection: Option<Injection>, n_to_fill: u32) -> SharedBoard {
        SharedBoard {
            board: Mutex::default(),
            begun: clock.now(),
            clock,
            ended: OnceLock::new(),
            injection,
            n_to_fill: Arc::new(AtomicU32::new(n_to_fill)),
        }
    }

    /// From now on no slot becomes due.
    pub(super) fn end(&self) {
        let _is_first = self.ended.set(self.clock.now());
    }

    fn now(&self) -> Timestamp {
        self.ended.get().copied().unwrap_or_else(|| self.clock.now())
    }

    fn board(&self) -> MutexGuard<'_, Board> {
        self.board.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self, items: Vec<WatchItem>) {
        let (now, mut board) = (self.now(), self.board());
        for item in items {
            // An undecodable object still exists, and the controller reports it. A broken watch restarts.
            if let WatchItem::Input(input) | WatchItem::Undecodable { input: Some(input), .. } = item {
                board.take(input, now);
            }
        }
    }

    /// Returns the current state, with at most this number of entries in each list.
    pub(super) fn picture(&self, n_listed: usize) -> Picture {
        let now = self.now();
        Picture {
            now,
            up: now.duration_since(self.begun),
            is_ending: self.ended.get().is_some(),
            figures: self.board().figures(now, n_listed),
            lateness: None,
            faults: self.injection.as_ref().map(Injection::counts),
            n_to_fill: self.n_to_fill.load(Ordering::Relaxed),
            log: Vec::new(),
        }
    }
}

/// The sources of the view.
pub(super) struct View {
    pub(super) output_mode: OutputMode,
    pub(super) guide: Guide,
    pub(super) client: Client,
    pub(super) shared_board: Arc<SharedBoard>,
    /// Notified when the output is closed.
    pub(super) output_is_gone: Arc<Notify>,
}

impl View {
    /// Shows the state until it is dropped.
    pub(super) async fn run(self, metrics: Metrics) {
        let mut window = LatenessWindow::default();
        let decoder = Arc::<Decoder>::default();
        let cron_jobs = watch::cron_jobs(self.client.clone(), Scope::Cluster, decoder, None).boxed();
        let jobs = watch::jobs(self.client.clone(), Scope::Cluster, None).boxed();
        let mut facts = stream::select(cron_jobs, jobs).ready_chunks(FACTS_MAX);
        let mut refreshes = interval(REFRESH_INTERVAL);
        refreshes.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut n_refreshes = 0;
        loop {
            tokio::select! {
                biased;
                _ = refreshes.tick() => {
                    window.add(self.shared_board.now(), lateness::read(&metrics.dispatch.lateness));
                    if self.show(&window, n_refreshes).is_err() {
                        self.output_is_gone.notify_one();
                        return pending().await;
                    }
                    n_refreshes += 1;
                }
                Some(items) = facts.next() => self.shared_board.take(items),
            }
        }
    }

    fn show(&self, window: &LatenessWindow, n_refreshes: u64) -> io::Result<()> {
        let picture = |n_listed| Picture {
            lateness: window.lateness(),
            ..self.shared_board.picture(n_listed)
        };
        match &self.output_mode {
            OutputMode::Screen(terminal, log) => {
                let size = Terminal::size();
                let picture = Picture {
                    log: log.last(size.rows),
                    ..picture(size.rows)
                };
                let lines = picture.screen(&self.guide, size);
                // The user may stop a terminal with Ctrl-S, and the write then blocks.
                block_in_place(|| terminal.draw(&lines))
            }
            OutputMode::Lines if n_refreshes > 0 && n_refreshes.is_multiple_of(REFRESHES_PER_LINE) => {
                let line = picture(1).log_line();
                block_in_place(|| writeln!(stdout(), "{line}"))
            }
            OutputMode::Lines => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        kube_api::DecodeError,
        shard::{Input, WatchedResource, state::test_record},
    };

    #[test]
    fn an_undecodable_cron_job_stays_on_the_board_after_a_relist() {
        let now = "2026-05-05T10:00:00Z".parse().unwrap();
        let shared_board = SharedBoard::begin(Clock::simulated(now), None, 0);
        let record = test_record("a");
        let undecodable = WatchItem::Undecodable {
            error: DecodeError {
                kind: "CronJob",
                namespace: "default".into(),
                name: "a".into(),
                field: "spec.suspend".into(),
                problem: "not a boolean".into(),
            },
            cron_job: None,
            input: Some(Input::CronJobUndecodable(record.identity.uid.clone())),
        };
        let list = |item| {
            let begun = Input::list_begun(WatchedResource::CronJobs, Scope::Cluster);
            let done = Input::list_done(WatchedResource::CronJobs, Scope::Cluster);
            shared_board.take(vec![WatchItem::Input(begun), item, WatchItem::Input(done)]);
            shared_board.picture(1).figures.n_cron_jobs
        };
        assert_eq!(list(WatchItem::Input(Input::CronJobApplied(Box::new(record)))), 1);
        assert_eq!(list(undecodable), 1);
    }
}
