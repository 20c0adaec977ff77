//! An invented fleet.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use futures::{
    FutureExt,
    future::{BoxFuture, pending},
};
use jiff::{SignedDuration, Timestamp};

use super::super::{Heading, PageSource};
use crate::{
    kube_api::latest_value::{LatestReceiver, LatestSender},
    observe::{
        facts::{Creator, Run, RunResult},
        slot::{LossReason, Mark, Shadow, SkipCause, Slot, SlotOutcome},
        view::{
            Advice, Attention, BusyTime, Cell, ClockChange, ControllerActivity, CronJobName, Detail, Filter, Next,
            NextSlot, Overview, Peak, Row, Rows, StateFilter, Strip, StripRow, Tiles, Trouble,
        },
    },
    schedule::{ConcurrencyPolicy, Zone, after, thaw::Thaw},
    shard::Uid,
};

/// 27 November 2026, 22:04:58 in Berlin.
pub(super) const NOW: &str = "2026-11-27T21:04:58Z";

/// The page's source in tests.
pub(super) struct Fleet {
    pub(super) heading: Heading,
    pub(super) overview: Overview,
    pub(super) rows: Vec<Row>,
    pub(super) version: LatestSender<u64>,
    /// The requests for an explanation, which are never answered if there is a counter.
    pub(super) n_explaining: Option<Arc<AtomicUsize>>,
    /// Texts of every detail: a label's value, a failure's reason, an explanation.
    pub(super) text: String,
}

pub(super) fn now() -> Timestamp {
    NOW.parse().unwrap()
}

pub(super) fn name(namespace: &str, name: &str) -> CronJobName {
    CronJobName {
        namespace: namespace.into(),
        name: name.into(),
    }
}

fn zone(name: &str) -> Zone {
    Zone::load(name).unwrap()
}

/// The instant this many minutes after the start of the present minute.
fn minute(minutes: i64) -> Timestamp {
    after(
        "2026-11-27T21:04:00Z".parse().unwrap(),
        SignedDuration::from_mins(minutes),
    )
}

fn seconds(seconds: i64) -> SignedDuration {
    SignedDuration::from_secs(seconds)
}

/// A number that looks random, for the same seed the same.
fn noise(seed: i64) -> u64 {
    let mut state = seed.unsigned_abs().wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678;
    for _ in 0..3 {
        state ^= state >> 29;
        state = state.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    }
    state >> 16
}

/// The fleet of a shop.
pub(super) fn small() -> Fleet {
    let mut rows = known_rows();
    let namespaces = ["billing", "data", "kube-system", "platform", "reports", "shop"];
    rows.extend((rows.len()..296).map(|number| plain_row(namespaces[number % 6], number)));
    fleet(rows, &namespaces.map(Into::into))
}

/// The largest fleet that the page is made for, every row of which is as long as they get in practice.
pub(super) fn large() -> Fleet {
    let namespaces: Vec<Box<str>> = (0..40)
        .map(|number| format!("team-number-{number:02}").into())
        .collect();
    let rows = (0..20_000).map(|number| plain_row(&namespaces[number % 40], number));
    fleet(rows.collect(), &namespaces)
}

fn fleet(rows: Vec<Row>, namespaces: &[Box<str>]) -> Fleet {
    let tiles = Tiles {
        n_cron_jobs: rows.len(),
        n_suspended: 4,
        n_never: 1,
        n_running: 31,
        n_cron_jobs_running: 28,
        n_late_now: 7,
        n_failed: 12,
        n_lost: 5,
        n_late: 120,
        n_due_next_hour: 1_840,
    };
    Fleet {
        heading: Heading {
            cluster: "prod-eu".to_owned(),
            context: Some("prod".to_owned()),
            zone: zone("Europe/Berlin"),
            is_live: true,
            is_listed: true,
            banners: vec![],
            notes: vec![],
            unreadable_namespaces: vec![],
            namespaces: namespaces.to_vec(),
        },
        overview: Overview {
            now: now(),
            tiles,
            controllers: vec![ControllerActivity {
                creator: Creator::BuiltIn,
                n_jobs: 48_212,
                last: minute(0),
                lateness_p50: Some(seconds(12)),
                busy_time: Some(BusyTime {
                    from: minute(-197),
                    duration: seconds(58),
                    jobs_per_second: 9,
                }),
            }],
            known_since: Some("2026-11-03T10:00:00Z".parse().unwrap()),
            attention: attention(),
            advice: advice(),
        },
        rows,
        version: LatestSender::new(1),
        n_explaining: None,
        text: "storage".to_owned(),
    }
}

fn row(cron_job: CronJobName, schedule_text: &str, schedule: &str, zone_name: &str, marks: &str) -> Row {
    let mark = |letter| match letter {
        'f' => Mark::Failed,
        'l' => Mark::Late,
        'x' => Mark::Lost,
        's' => Mark::Skipped,
        'r' => Mark::Running,
        'u' => Mark::NotObserved,
        'd' => Mark::Due,
        _ => Mark::Succeeded,
    };
    Row {
        cron_job,
        schedule_text: schedule_text.to_owned(),
        schedule: schedule.into(),
        zone: zone(zone_name),
        concurrency_policy: ConcurrencyPolicy::Allow,
        starting_deadline_seconds: None,
        marks: marks.chars().map(mark).collect(),
        run_time_p50: Some(seconds(41)),
        run_time_p95: Some(seconds(58)),
        next: Next::At(minute(1)),
    }
}

/// Namespace, name, schedule in words, schedule, zone and marks.
const KNOWN: [[&str; 6]; 8] = [
    [
        "data",
        "refresh-views",
        "every 5 minutes",
        "*/5 * * * *",
        "UTC",
        "ooooooofoo",
    ],
    [
        "billing",
        "invoice-export",
        "at 02:30 every day",
        "30 2 * * *",
        "Europe/Berlin",
        "oooooooooo",
    ],
    ["reports", "hourly-margin", "hourly", "0 * * * *", "UTC", "ooolllloll"],
    [
        "reports",
        "nightly-close",
        "every minute, 18:00–18:59",
        "* 18 * * *",
        "America/New_York",
        "ooooxxxxxo",
    ],
    [
        "platform",
        "rotate-keys",
        "Sunday at 04:00",
        "0 4 * * 0",
        "Asia/Tokyo",
        "uuoooooooo",
    ],
    [
        "data",
        "compact-eu",
        "every 20 minutes",
        "*/20 * * * *",
        "UTC",
        "ooooossssr",
    ],
    [
        "shop",
        "leap-report",
        "30 February: no such day",
        "0 0 30 2 *",
        "UTC",
        "",
    ],
    [
        "shop",
        "old-import",
        "every 10 minutes",
        "*/10 * * * *",
        "UTC",
        "ssssssssss",
    ],
];

fn known_rows() -> Vec<Row> {
    let mut rows: Vec<Row> = KNOWN
        .map(|[namespace, cron_job, words, schedule, zone, marks]| {
            row(name(namespace, cron_job), words, schedule, zone, marks)
        })
        .into();
    rows[1].next = Next::At("2026-11-28T01:30:00Z".parse().unwrap());
    rows[3].next = Next::At("2026-11-28T23:00:00Z".parse().unwrap());
    rows[3].concurrency_policy = ConcurrencyPolicy::Forbid;
    rows[3].starting_deadline_seconds = Some(60);
    rows[4].next = Next::At("2026-11-28T19:00:00Z".parse().unwrap());
    rows[5].next = Next::HeldBack(minute(-104));
    rows[5].concurrency_policy = ConcurrencyPolicy::Forbid;
    (rows[5].run_time_p50, rows[5].run_time_p95) = (Some(seconds(1_320)), Some(seconds(1_860)));
    rows[6].next = Next::Never;
    (rows[6].run_time_p50, rows[6].run_time_p95) = (None, None);
    rows[7].next = Next::Suspended;
    rows
}

fn plain_row(namespace: &str, number: usize) -> Row {
    let seed = i64::try_from(number).unwrap();
    let letters = ["oooooooooo", "ooooooooof", "oooolooooo", "oooooooorr", "xooooooooo"];
    let marks = letters[usize::try_from(noise(seed) % 24).unwrap().min(4) % 5];
    let marks = if noise(seed) % 24 > 4 { letters[0] } else { marks };
    let mut row = row(
        name(namespace, &format!("synchronise-partner-{number:05}")),
        "at minute 7 of every hour, Monday to Friday",
        "7 * * * 1-5",
        "Europe/Berlin",
        marks,
    );
    row.next = Next::At(minute(seed % 600 + 1));
    row.run_time_p50 = Some(seconds(seed % 300));
    row.run_time_p95 = Some(seconds(seed % 900 + 300));
    row
}

fn attention() -> Vec<Attention> {
    let one = |cron_job, trouble, since: i64, last_success: i64, reason: &str| Attention {
        cron_job,
        trouble,
        since: Some(minute(since)),
        last_success: (last_success != 0).then(|| minute(last_success)),
        reason: reason.to_owned(),
    };
    vec![
        one(
            name("shop", "leap-report"),
            Trouble::Never,
            -22_000,
            0,
            "0 0 30 2 *: no such day; it never runs",
        ),
        one(
            name("reports", "nightly-close"),
            Trouble::Lost,
            -192,
            -199,
            "lost 5 runs: kube-controller-manager started nothing between 18:47 and 18:52",
        ),
        one(
            name("reports", "hourly-margin"),
            Trouble::Late,
            -190,
            -60,
            "started 4 m 12 s late at p99; the built-in controller is at its limit of 20 requests a second",
        ),
        one(
            name("billing", "dunning"),
            Trouble::Failed,
            -121,
            -244,
            "the last 3 runs failed: BackoffLimitExceeded",
        ),
        one(
            name("data", "compact-eu"),
            Trouble::Blocked,
            -100,
            -104,
            "Forbid: Job compact-eu-29928700 is being deleted and held by finalizer foregroundDeletion",
        ),
        one(
            name("data", "import-prices"),
            Trouble::NoSuccess,
            -60,
            -300,
            "no run succeeded for 3 periods",
        ),
    ]
}

fn advice() -> Vec<Advice> {
    let one = |kind, sentence: &str, cron_jobs: &[CronJobName], n_cron_jobs| Advice {
        kind,
        sentence: sentence.to_owned(),
        cron_jobs: cron_jobs.to_vec(),
        n_cron_jobs,
    };
    let some: Vec<CronJobName> = (0..9).map(|number| name("data", &format!("load-{number}"))).collect();
    vec![
        one(
            "peak",
            "02:00 starts 412 Jobs in one minute. 74 of them run hourly or less often and could be spread over ten minutes.",
            &[],
            0,
        ),
        one(
            "duration",
            "data/compact-eu takes 22 minutes and is due every 20.",
            &[name("data", "compact-eu")],
            1,
        ),
        one("forbid", "9 CronJobs use Forbid without a deadline.", &some, 9),
        one(
            "clocks",
            "billing/invoice-export runs twice on 25 October: clocks go back at 03:00.",
            &[name("billing", "invoice-export")],
            1,
        ),
        one(
            "suspended",
            "3 CronJobs never succeeded; 2 have been suspended for more than a month.",
            &[],
            0,
        ),
    ]
}

/// A cell of a row. Its appearance depends on the time before now, in quarters of an hour.
fn cell(row: i64, at: i64, cell_minutes: i64) -> Cell {
    let second_of_hour = at.rem_euclid(3_600);
    let hour = at.div_euclid(3_600).rem_euclid(24);
    let scale = [5, 40, 6, 5, 6, 1][usize::try_from(row).unwrap() % 6];
    let peak = if second_of_hour == 0 { 4 } else { 1 } + if hour == 1 { 3 } else { 0 };
    let n_runs = scale * peak * cell_minutes / 15 + i64::try_from(noise(row * 7_919 + at) % 5).unwrap();
    let mut cell = Cell {
        n_runs: u32::try_from(n_runs).unwrap(),
        ..Cell::default()
    };
    let back = (now().as_second() - at) / 900;
    match (row % 6, back) {
        (3, 50..=57) => cell.n_late = 3,
        (0, 49 | 9) | (1, 14) | (2, 51) => cell.n_failed = 1,
        (0 | 5, 36 | 37) => cell.n_lost = 2,
        _ => {}
    }
    cell
}

impl PageSource for Fleet {
    fn heading(&self) -> Heading {
        self.heading.clone()
    }

    fn overview(&self) -> Overview {
        self.overview.clone()
    }

    fn strip(&self, from: Timestamp, to: Timestamp) -> Strip {
        let length_minutes = to.duration_since(from).as_mins();
        let cell_minutes: i64 = if length_minutes <= 180 { 1 } else { 15 };
        let n_cells = (length_minutes / cell_minutes).max(1);
        let rows = self
            .heading
            .namespaces
            .iter()
            .enumerate()
            .map(|(index, namespace)| StripRow {
                namespace: Some(namespace.clone()),
                cells: (0..n_cells)
                    .map(|number| {
                        let at = from.as_second() + number * cell_minutes * 60;
                        cell(i64::try_from(index).unwrap(), at, cell_minutes)
                    })
                    .collect(),
            });
        Strip {
            from,
            to,
            cell_minutes: u32::try_from(cell_minutes).unwrap(),
            now: minute(1),
            rows: rows.collect(),
            peak: Some(Peak {
                at: "2026-11-28T01:00:00Z".parse().unwrap(),
                n_starts: 412,
                namespace: "data".into(),
                n_starts_in_namespace: 118,
            }),
            clock_changes: vec![ClockChange {
                at: "2026-11-28T14:00:00Z".parse().unwrap(),
                zone: "America/Invented".into(),
                forward_seconds: -3_600,
            }],
        }
    }

    fn rows(&self, filter: &Filter) -> Rows {
        let is_wanted = |row: &&Row| {
            let name = format!("{}/{}", row.cron_job.namespace, row.cron_job.name);
            let is_namespace = filter
                .namespace
                .as_ref()
                .is_none_or(|namespace| *namespace == row.cron_job.namespace);
            let is_state = match filter.state {
                None => true,
                Some(StateFilter::Failed) => row.marks.contains(&Mark::Failed),
                Some(StateFilter::Lost) => row.marks.contains(&Mark::Lost),
                Some(StateFilter::Late) => row.marks.contains(&Mark::Late),
                Some(StateFilter::Running) => row.marks.contains(&Mark::Running),
                Some(StateFilter::Suspended) => row.next == Next::Suspended,
                Some(StateFilter::Never) => row.next == Next::Never,
                Some(StateFilter::Blocked) => matches!(row.next, Next::HeldBack(_)),
                Some(StateFilter::Frozen) => matches!(row.next, Next::Frozen(_)),
                Some(StateFilter::Due) => matches!(row.next, Next::At(at) if at < minute(60)),
            };
            is_namespace && is_state && filter.text.split(' ').all(|word| name.contains(word))
        };
        let matching: Vec<&Row> = self.rows.iter().filter(is_wanted).collect();
        let shown = matching.iter().skip(filter.offset).take(filter.limit);
        Rows {
            rows: shown.map(|row| (*row).clone()).collect(),
            n_matching: matching.len(),
            n_all: self.rows.len(),
        }
    }

    fn detail(&self, cron_job: &CronJobName) -> Option<Detail> {
        let row = self.rows.iter().find(|row| row.cron_job == *cron_job)?;
        let attention = self.overview.attention.iter().filter(|one| one.cron_job == *cron_job);
        Some(Detail {
            row: row.clone(),
            labels: vec![
                ("app".into(), self.text.as_str().into()),
                ("team".into(), "platform-services".into()),
            ],
            slots: (0..50).map(|number| slot(number, &self.text)).collect(),
            other_runs: vec![other_run(&self.text)],
            thaw: Some(Thaw {
                until: minute(10),
                n_held_back: 3,
                starts: vec![minute(5)],
            }),
            next_slots: (1..11).map(|number| next_slot(minute(number * 20))).collect(),
            clock_changes: vec![ClockChange {
                at: minute(50),
                zone: row.zone.name().into(),
                forward_seconds: 3_600,
            }],
            attention: attention.cloned().collect(),
            differences: vec![
                "cronwheel would have started the 5 lost slots: it starts one slot after the other".to_owned(),
            ],
            options: vec!["spread: starts 1m after each slot, in a window of 10m".to_owned()],
            option_warnings: vec![format!("annotation cronwheel.dev/missed-runs is {:?}", self.text)],
        })
    }

    fn explain(&self, cron_job: &CronJobName) -> BoxFuture<'static, Result<String, String>> {
        let text = format!(
            "CronJob {}/{}: {}\n\nnext    start a Job at 22:05",
            cron_job.namespace, cron_job.name, self.text
        );
        if let Some(n_explaining) = &self.n_explaining {
            n_explaining.fetch_add(1, Ordering::Relaxed);
            return pending().boxed();
        }
        async move { Ok(text) }.boxed()
    }

    fn changes(&self) -> LatestReceiver<u64> {
        self.version.subscribe()
    }

    fn now(&self) -> Timestamp {
        now()
    }
}

fn next_slot(at: Timestamp) -> NextSlot {
    let start = at + SignedDuration::from_mins(1);
    NextSlot { at, start }
}

fn slot(number: i64, text: &str) -> Slot {
    let at = minute((number - 49) * 20 - 4);
    let started = |lateness, run_seconds: Option<i64>, result| {
        let created = after(at, SignedDuration::from_secs(lateness));
        SlotOutcome::Started {
            job_uid: Uid::new(&format!("{number}")),
            job_name: format!("job-{}", at.as_second() / 60).into(),
            created,
            finished: run_seconds.map(|run| after(created, SignedDuration::from_secs(run))),
            result,
            is_backfilled: false,
            replaced_by: None,
        }
    };
    let run_seconds = 600 + i64::try_from(noise(number) % 900).unwrap();
    let outcome = match number {
        0..3 => SlotOutcome::NotObserved,
        30..35 => SlotOutcome::Lost(LossReason::DeadlineExceeded),
        35..37 => started(252 - (number - 35) * 190, Some(run_seconds), RunResult::Succeeded),
        40 => started(2, Some(30), RunResult::Failed(text.into())),
        44..46 => SlotOutcome::Skipped(SkipCause::HeldByForbid { job_name: text.into() }),
        49 => started(1, None, RunResult::Running),
        _ => started(
            i64::try_from(noise(number) % 3).unwrap(),
            Some(run_seconds),
            RunResult::Succeeded,
        ),
    };
    let with_cronwheel = match number {
        0..3 => None,
        44..46 => Some(Shadow::Holds("Forbid, and the earlier Job still runs (B-10.3)")),
        _ => Some(Shadow::Starts),
    };
    Slot {
        other_jobs: Vec::new(),
        at,
        held_until: None,
        outcome,
        with_cronwheel,
    }
}

fn other_run(text: &str) -> Run {
    Run {
        job_uid: Uid::new("other"),
        job_name: "by-hand".into(),
        cron_job: Uid::new("cron-job"),
        slot: None,
        created: minute(-130),
        started: None,
        finished: Some(minute(-90)),
        result: RunResult::Succeeded,
        creator: Creator::Other(text.into()),
        hindrance: None,
    }
}
