//! The report in words: paragraphs, tables and commands, without a form. Texts of objects stand in it as they are; each
//! form makes them harmless.

mod changes;
mod summary;

use jiff::{SignedDuration, Timestamp};

use super::{LatenessEntry, LostEntry, Report, SlotCounts};
use crate::observe::words::{instant_text, lateness_text, thousands};

/// Maximum number of lost and failed entries, and of slots of one entry. JSON has more.
const ENTRIES_SHOWN: usize = 20;
const SLOTS_SHOWN: usize = 20;

/// Maximum number of CronJobs named below a piece of advice.
const NAMES_SHOWN: usize = 5;

/// The place of the section about slots with more than one Job: after the lost runs.
const DOUBLED_PLACE: usize = 3;

/// The whole report.
pub(super) struct Document {
    pub(super) title: String,
    /// The blocks before the first section.
    pub(super) opening: Vec<Block>,
    pub(super) sections: Vec<Section>,
}

/// A part with a title.
pub(super) struct Section {
    pub(super) title: &'static str,
    pub(super) blocks: Vec<Block>,
}

/// A part of a section.
pub(super) enum Block {
    Paragraph(String),
    /// Points, each with a second line or none.
    List(Vec<(String, Option<String>)>),
    Table {
        heads: Vec<Head>,
        rows: Vec<Vec<String>>,
    },
    /// A value for each second of the minute.
    Bars(Vec<u64>),
    /// The title of what follows.
    Entry(String),
    /// The words of a shell command, each of which stays on one line.
    Command(Vec<String>),
}

/// The head of a column.
#[derive(Clone, Copy)]
pub(super) enum Head {
    Text(&'static str),
    Number(&'static str),
}

impl Head {
    pub(super) fn text(self) -> &'static str {
        match self {
            Head::Text(text) | Head::Number(text) => text,
        }
    }

    pub(super) fn is_number(self) -> bool {
        matches!(self, Head::Number(_))
    }
}

pub(super) fn document(report: &Report) -> Document {
    let title = if report.cluster.is_empty() {
        "CronJobs".to_owned()
    } else {
        format!("CronJobs of {}", report.cluster)
    };
    let opening = summary::opening(report);
    if report.n_cron_jobs == 0 {
        return Document {
            title,
            opening,
            sections: Vec::new(),
        };
    }
    let mut sections = vec![
        section("Lateness", lateness(report)),
        section("By second of the minute", seconds(report)),
        section("Lost runs", lost(report)),
        section("Late now", late_now(report)),
        section("Latest runs", latest_runs(report)),
        section("Failed runs", failures(report)),
        section("What would change with cronwheel", changes::blocks(report)),
        section("Ahead", summary::ahead(report)),
    ];
    if !report.doubled.is_empty() {
        sections.insert(DOUBLED_PLACE, section("Doubled runs", doubled(report)));
    }
    if !report.options.is_empty() {
        sections.push(section("Options", options(report)));
    }
    sections.push(section("Advice", advice(report)));
    Document {
        title,
        opening,
        sections,
    }
}

fn section(title: &'static str, blocks: Vec<Block>) -> Section {
    Section { title, blocks }
}

fn paragraph(text: impl Into<String>) -> Block {
    Block::Paragraph(text.into())
}

fn lateness(report: &Report) -> Vec<Block> {
    if report.lateness.is_none() {
        return vec![paragraph("No slot of this time is known to have a Job.")];
    }
    let head = Head::Number;
    let heads = vec![
        Head::Text("Namespace"),
        head("Runs"),
        head("p50"),
        head("p90"),
        head("p99"),
        head("Max"),
        head("Late"),
        head("Failed"),
        head("Lost"),
    ];
    let mut rows = vec![lateness_row("all", &report.slots, report.lateness)];
    let namespaces = report.namespaces.iter();
    rows.extend(namespaces.map(|entry| lateness_row(&entry.namespace, &entry.slots, entry.lateness)));
    let mut blocks = vec![
        paragraph(
            "From the slot to the creation of its Job, without the time for which Forbid or suspend held it back. \
             Creation times have whole seconds. Late is more than 5 seconds.",
        ),
        Block::Table { heads, rows },
    ];
    blocks.extend(left_out(report.n_namespaces - report.namespaces.len(), "namespace"));
    blocks
}

fn lateness_row(name: &str, slots: &SlotCounts, lateness: Option<LatenessEntry>) -> Vec<String> {
    let figures = lateness.map(|lateness| {
        let LatenessEntry {
            p50_seconds,
            p90_seconds,
            p99_seconds,
            max_seconds,
        } = lateness;
        [p50_seconds, p90_seconds, p99_seconds, max_seconds]
    });
    let texts = figures.map_or_else(
        || ["–"; 4].map(str::to_owned),
        |figures| figures.map(|seconds| lateness_text(SignedDuration::from_secs(seconds))),
    );
    let mut row = vec![name.to_owned(), thousands(slots.n_started)];
    row.extend(texts);
    row.extend([slots.n_late, slots.n_failed, slots.n_lost].map(thousands));
    row
}

fn seconds(report: &Report) -> Vec<Block> {
    let counts = &report.creations_by_second;
    let n_all: u64 = counts.iter().sum();
    if n_all == 0 {
        return vec![paragraph("No Job of a slot at a whole minute is known.")];
    }
    let second_of = |percent: u64| {
        let rank = (n_all * percent).div_ceil(100);
        let sums = counts.iter().scan(0, |sum, count| {
            *sum += count;
            Some(*sum)
        });
        sums.take_while(|sum| *sum < rank).count()
    };
    vec![
        paragraph(format!(
            "The seconds at which the Jobs of whole minutes were created: half of them by second {}, 90 % by second {}, \
             the last at second {}. A controller that works through a queue fills the minute.",
            second_of(50),
            second_of(90),
            second_of(100),
        )),
        Block::Bars(counts.clone()),
    ]
}

fn lost(report: &Report) -> Vec<Block> {
    if report.lost.is_empty() {
        return vec![paragraph("None is known.")];
    }
    let mut blocks = vec![paragraph(
        "Each command starts the slots from the first to the last lost run that have no Job, one after the other, with \
         the present Job template. Their Jobs have the names that the slots would have had, so no run starts twice.",
    )];
    for entry in report.lost.iter().take(ENTRIES_SHOWN) {
        let slots = &entry.slots[entry.slots.len().saturating_sub(SLOTS_SHOWN)..];
        blocks.push(Block::Entry(format!("{}/{}", entry.namespace, entry.name)));
        blocks.push(paragraph(lost_sentence(entry, slots)));
        blocks.push(Block::Command(entry.start_command(&report.command, slots)));
    }
    let n_shown = report.lost.len().min(ENTRIES_SHOWN);
    blocks.extend(left_out(report.n_lost_entries - n_shown, "CronJob"));
    blocks
}

fn lost_sentence(entry: &LostEntry, slots: &[Timestamp]) -> String {
    let runs = if entry.n_slots == 1 { "run" } else { "runs" };
    let n_slots = thousands(entry.n_slots);
    let latest = if slots.len() as u64 == entry.n_slots {
        String::new()
    } else {
        format!("the latest {} at ", slots.len())
    };
    format!(
        "{n_slots} {runs} lost: {}. Slots: {latest}{}.",
        entry.sentence,
        slots_text(slots)
    )
}

/// Formats instants with each date once: `26 Nov 18:47, 18:48; 27 Nov 18:47 UTC`.
fn slots_text(slots: &[Timestamp]) -> String {
    let mut text = String::new();
    let mut last_date = String::new();
    for slot in slots {
        let date = slot.strftime("%-d %b").to_string();
        let form = if slot.as_second() % 60 == 0 {
            "%H:%M"
        } else {
            "%H:%M:%S"
        };
        let separator = match (text.is_empty(), date == last_date) {
            (true, _) => "",
            (false, true) => ", ",
            (false, false) => "; ",
        };
        text += separator;
        if date != last_date {
            text += &date;
            text.push(' ');
        }
        text += &slot.strftime(form).to_string();
        last_date = date;
    }
    text + " UTC"
}

/// Slots with more than one Job.
fn doubled(report: &Report) -> Vec<Block> {
    let row = |entry: &super::DoubledEntry| {
        vec![
            format!("{}/{}", entry.namespace, entry.name),
            instant_text(entry.slot),
            entry.job_names.join(", "),
        ]
    };
    let heads = vec![Head::Text("CronJob"), Head::Number("Slot"), Head::Text("Jobs")];
    let rows: Vec<Vec<String>> = report.doubled.iter().take(ENTRIES_SHOWN).map(row).collect();
    let n_all = usize::try_from(report.slots.n_doubled).unwrap_or(usize::MAX);
    let n_shown = rows.len();
    let mut blocks = vec![
        paragraph(
            "These slots have more than one Job. Two controllers may act, or somebody created a Job for the slot.",
        ),
        Block::Table { heads, rows },
    ];
    blocks.extend(left_out(n_all.saturating_sub(n_shown), "slot"));
    blocks
}

/// Slots that may still start.
fn late_now(report: &Report) -> Vec<Block> {
    if report.late_now.is_empty() {
        return vec![paragraph("No slot is known to be late and without a Job.")];
    }
    let row = |entry: &super::LateNowEntry| {
        vec![
            format!("{}/{}", entry.namespace, entry.name),
            instant_text(entry.slot),
            lateness_text(SignedDuration::from_secs(entry.late_seconds)),
        ]
    };
    let heads = vec![Head::Text("CronJob"), Head::Number("Slot"), Head::Number("Late by")];
    let rows: Vec<Vec<String>> = report.late_now.iter().take(ENTRIES_SHOWN).map(row).collect();
    let n_shown = rows.len();
    let mut blocks = vec![
        paragraph("These slots have no Job yet. Each can start until its deadline passes or the next slot is due."),
        Block::Table { heads, rows },
    ];
    blocks.extend(left_out(report.n_late_now - n_shown, "slot"));
    blocks
}

fn latest_runs(report: &Report) -> Vec<Block> {
    if report.latest_runs.is_empty() {
        return vec![paragraph(
            "No run is known to have started more than 5 seconds after its slot.",
        )];
    }
    let row = |run: &super::LateRunEntry| {
        vec![
            format!("{}/{}", run.namespace, run.name),
            instant_text(run.slot),
            instant_text(run.created),
            lateness_text(SignedDuration::from_secs(run.lateness_seconds)),
        ]
    };
    let heads = vec![
        Head::Text("CronJob"),
        Head::Number("Slot"),
        Head::Number("Job created"),
        Head::Number("Late by"),
    ];
    vec![Block::Table {
        heads,
        rows: report.latest_runs.iter().map(row).collect(),
    }]
}

fn failures(report: &Report) -> Vec<Block> {
    if report.failures.is_empty() {
        return vec![paragraph("None is known.")];
    }
    let row = |entry: &super::FailureEntry| {
        vec![
            entry.namespace.to_string(),
            entry.last_job_name.to_string(),
            entry.reason.to_string(),
            thousands(entry.n_runs),
        ]
    };
    let heads = vec![
        Head::Text("Namespace"),
        Head::Text("Last Job"),
        Head::Text("Reason"),
        Head::Number("Failed"),
    ];
    let rows: Vec<Vec<String>> = report.failures.iter().take(ENTRIES_SHOWN).map(row).collect();
    let n_shown = rows.len();
    let mut blocks = vec![Block::Table { heads, rows }];
    blocks.extend(left_out(report.n_failure_entries - n_shown, "CronJob"));
    blocks.push(paragraph(
        "The log of a Job, while its Pods exist: kubectl -n NAMESPACE logs job/JOB",
    ));
    blocks
}

fn options(report: &Report) -> Vec<Block> {
    let point = |entry: &super::OptionsEntry| {
        let title = format!("{}/{}", entry.namespace, entry.name);
        (title, Some(entry.sentences.join("; ")))
    };
    let points: Vec<(String, Option<String>)> = report.options.iter().take(ENTRIES_SHOWN).map(point).collect();
    let n_shown = points.len();
    let mut blocks = vec![
        paragraph("What the options of a CronJob change where cronwheel runs it."),
        Block::List(points),
    ];
    blocks.extend(left_out(report.n_options_entries - n_shown, "CronJob"));
    blocks
}

fn advice(report: &Report) -> Vec<Block> {
    if report.advice.is_empty() {
        return vec![paragraph("None.")];
    }
    let point = |entry: &super::AdviceEntry| {
        let names = entry.cron_jobs.iter().take(NAMES_SHOWN);
        let names: Vec<String> = names.map(|name| format!("{}/{}", name.namespace, name.name)).collect();
        let rest = match entry.n_cron_jobs - names.len() {
            0 => String::new(),
            n_rest => format!(" and {} more", thousands(n_rest as u64)),
        };
        // The sentence names a single CronJob.
        let names = (entry.n_cron_jobs > 1).then(|| names.join(", ") + &rest);
        (entry.sentence.clone(), names)
    };
    vec![Block::List(report.advice.iter().map(point).collect())]
}

/// A sentence about entries that only JSON has.
fn left_out(n_entries: usize, of: &str) -> Option<Block> {
    match n_entries {
        0 => None,
        1 => Some(paragraph(format!("1 more {of} is not listed."))),
        n => Some(paragraph(format!("{} more {of}s are not listed.", thousands(n as u64)))),
    }
}
