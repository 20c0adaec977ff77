//! The listing as text.

use std::{collections::BTreeMap, fmt::Write as _};

use jiff::Timestamp;

use super::{
    known::Known,
    listing::{Listing, MemberRow, MemberState, ShardRow},
};
use crate::{
    coordination::{Holder, ShardLease},
    explain::calendar::duration_text,
    shard::ShardId,
};

/// The text of an empty cell.
pub(super) const NOTHING: &str = "-";

type NextRuns = BTreeMap<ShardId, Timestamp>;

/// The form of a listing.
#[derive(Clone, Copy)]
pub(super) struct Form {
    /// Whether the tables have the columns from [`WIDE_FROM`] on.
    pub(super) is_wide: bool,
    /// Whether all shards are listed, and not only those that are not simply led.
    pub(super) has_all_shards: bool,
}

/// The state of a shard without trouble.
const LED: &str = "led";

/// The first column, of members and of shards, that only a wide listing has.
const WIDE_FROM: &str = "INCARNATION";

/// Formats the listing.
pub(super) fn listing(known: &Known, next_runs: &NextRuns, form: Form, now: Timestamp) -> String {
    let view = Listing::of(known);
    let count = known.installation.shard_count.get();
    let n_led = view.shards.iter().filter(|row| row.is_holder_member).count();
    let n_cron_jobs: Option<usize> = view.shards.iter().map(|row| row.n_cron_jobs).sum();
    let cron_jobs = n_cron_jobs.map(|count| format!("{count} CronJobs, "));
    let mut text = format!(
        "namespace {}: {count} shards, {n_led} of them led; {}hashed by {}\n",
        known.namespace,
        cron_jobs.unwrap_or_default(),
        known.installation.hash_scheme
    );
    for sighting in known.other_controllers.active(now) {
        let _ = writeln!(text, "trouble: {sighting}");
    }
    let members = view.members.values().map(|row| member_cells(row, now));
    let _ = write!(text, "\n{}\n", table(MEMBER_HEADS, &[], members, form));
    let is_listed = |row: &&ShardRow| form.has_all_shards || row.state() != LED;
    let rows: Vec<&ShardRow> = view.shards.iter().filter(is_listed).collect();
    if !rows.is_empty() {
        let shards = rows.iter().map(|row| shard_cells(row, next_runs, now));
        let hidden = if n_cron_jobs.is_some() {
            &[][..]
        } else {
            &CRON_JOB_HEADS
        };
        text += &table(SHARD_HEADS, hidden, shards, form);
    }
    match view.shards.len() - rows.len() {
        0 => {}
        n if rows.is_empty() => {
            let _ = writeln!(text, "all {n} shards are led; --all lists them");
        }
        1 => text += "\n1 other shard is led; --all lists it\n",
        n => {
            let _ = writeln!(text, "\n{n} other shards are led; --all lists them");
        }
    }
    text
}

const MEMBER_HEADS: [&str; 8] = [
    "MEMBER",
    "SHARDS",
    "RENEWED",
    "STATE",
    "INCARNATION",
    "REVISION",
    "PROTOCOL",
    "POD UID",
];

fn member_cells(row: &MemberRow, now: Timestamp) -> [String; 8] {
    let mut state = row.state.text().sentence;
    if row.is_silent(now) {
        state += ", silent";
    }
    let incarnation = row.lease.holder.member().map(|member| member.incarnation.to_string());
    [
        row.pod().to_owned(),
        row.n_shards.to_string(),
        age(row.lease.renewed_at, now),
        state,
        or_nothing(incarnation),
        or_nothing(Some(row.lease.revision.to_string()).filter(|revision| !revision.is_empty())),
        row.lease.protocol.to_string(),
        row.pod_uid.to_string(),
    ]
}

const SHARD_HEADS: [&str; 10] = [
    "SHARD",
    "BUCKETS",
    "HOLDER",
    "TERM",
    "CRONJOBS",
    "NEXT RUN",
    "AGE",
    "STATE",
    "INCARNATION",
    "FIRED THROUGH",
];

/// The columns that need the right to list CronJobs.
const CRON_JOB_HEADS: [&str; 2] = ["CRONJOBS", "NEXT RUN"];

fn shard_cells(row: &ShardRow, next_runs: &NextRuns, now: Timestamp) -> [String; 10] {
    let lease = row.lease.as_ref();
    let member = lease.and_then(|lease| lease.holder.member());
    let fired_through = lease.and_then(|lease| lease.fired_through);
    [
        row.shard.0.to_string(),
        format!("{}-{}", row.buckets.0, row.buckets.1),
        holder(lease),
        term(lease),
        or_nothing(row.n_cron_jobs.map(|count| count.to_string())),
        or_nothing(next_runs.get(&row.shard).map(Timestamp::to_string)),
        age(lease.and_then(|lease| lease.acquired_at), now),
        row.state(),
        or_nothing(member.map(|member| member.incarnation.to_string())),
        or_nothing(fired_through.map(|at| at.to_string())),
    ]
}

/// Returns the holder of a shard.
pub(super) fn holder(lease: Option<&ShardLease>) -> String {
    match lease.map(|lease| &lease.holder) {
        None | Some(Holder::Nobody) => NOTHING.to_owned(),
        Some(Holder::Member(member)) => member.pod_name.to_string(),
        Some(Holder::NotAMember(text)) => text.to_string(),
    }
}

/// Returns the term of a shard.
pub(super) fn term(lease: Option<&ShardLease>) -> String {
    lease.map_or_else(|| NOTHING.to_owned(), |lease| lease.term.0.to_string())
}

impl ShardRow {
    /// Returns whether the shard is led, and anything unusual.
    pub(super) fn state(&self) -> String {
        let Some(lease) = &self.lease else {
            return "no Lease".to_owned();
        };
        let state = match &lease.holder {
            Holder::Nobody => "no holder",
            Holder::NotAMember(_) => "held by no member",
            Holder::Member(_) if self.is_holder_member => LED,
            Holder::Member(_) => "holder gone",
        };
        state.to_owned()
    }
}

/// The texts of a member's state.
pub(in crate::cli) struct StateText {
    /// A fixed word for programs.
    pub(in crate::cli) word: &'static str,
    /// A sentence for people.
    pub(in crate::cli) sentence: String,
}

impl MemberState {
    pub(in crate::cli) fn text(&self) -> StateText {
        let (word, sentence) = match self {
            MemberState::Takes => ("Takes", "takes shards".to_owned()),
            MemberState::Starts => ("Starts", "starts".to_owned()),
            MemberState::Drains => ("Drains", "drains".to_owned()),
            MemberState::SettingsDiffer { others } => (
                "SettingsDiffer",
                format!("takes none: waits until members with {others} stop"),
            ),
            MemberState::ProtocolDiffers { others } => (
                "ProtocolDiffers",
                format!("takes none: others follow protocol {others}"),
            ),
            MemberState::Declines => ("Declines", "takes none: its /readyz says why".to_owned()),
            MemberState::Left => ("Left", "left".to_owned()),
            MemberState::Evicted { by } => ("Evicted", format!("evicted by {by}")),
            MemberState::Usurped { by } => ("Usurped", format!("its Lease is held by {by}")),
        };
        StateText { word, sentence }
    }
}

pub(super) fn or_nothing(cell: Option<String>) -> String {
    cell.unwrap_or_else(|| NOTHING.to_owned())
}

/// Formats the time since an instant as one word, so that programs can split a row at its spaces.
fn age(at: Option<Timestamp>, now: Timestamp) -> String {
    // The clock of a replica may be ahead.
    let seconds = |at| u64::try_from(now.duration_since(at).as_secs()).unwrap_or(0);
    or_nothing(at.map(|at| duration_text(seconds(at)).replace(' ', "")))
}

/// Formats a table with columns separated by three spaces, without the hidden ones.
fn table<const N: usize>(
    heads: [&str; N],
    hidden: &[&str],
    rows: impl Iterator<Item = [String; N]>,
    form: Form,
) -> String {
    let first_wide = heads.iter().position(|head| *head == WIDE_FROM);
    let n_columns = first_wide.filter(|_| !form.is_wide).unwrap_or(N);
    let rows: Vec<[String; N]> = std::iter::once(heads.map(str::to_owned)).chain(rows).collect();
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max();
    let shown = (0..n_columns).filter(|column| !hidden.contains(&heads[*column]));
    let widths: Vec<(usize, usize)> = shown.map(|column| (column, width(column).unwrap_or(0))).collect();
    let mut text = String::new();
    for row in &rows {
        let cells = widths.iter().map(|(column, width)| format!("{:width$}", row[*column]));
        let line = cells.collect::<Vec<_>>().join("   ");
        text += line.trim_end();
        text.push('\n');
    }
    text
}
