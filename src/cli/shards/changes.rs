//! Changes between two listings, except for renewals, ages and next activations, which change constantly.

use std::collections::BTreeSet;

use jiff::Timestamp;
use serde_json::json;

use super::{
    listing::{Listing, MemberRow, ShardRow},
    text,
};

/// A change of one member or shard.
pub(super) struct Change {
    /// `member NAME` or `shard NUMBER`.
    kind: &'static str,
    name: String,
    fields: Vec<ChangedField>,
}

/// A field with its former and its new value, each of which may be [`text::NOTHING`].
struct ChangedField {
    name: &'static str,
    from: String,
    to: String,
}

/// Returns the changes between two listings, in the order of the listing.
pub(super) fn between(before: &Listing, after: &Listing) -> Vec<Change> {
    let pod_uids: BTreeSet<_> = before.members.keys().chain(after.members.keys()).collect();
    let members = pod_uids.into_iter().map(|pod_uid| {
        let (from, to) = (before.members.get(pod_uid), after.members.get(pod_uid));
        Change {
            kind: "member",
            name: to.or(from).map_or(&**pod_uid, MemberRow::pod).to_owned(),
            fields: differing(member_fields(from), member_fields(to)),
        }
    });
    let shards = before.shards.iter().zip(&after.shards).map(|(from, to)| Change {
        kind: "shard",
        name: to.shard.0.to_string(),
        fields: differing(shard_fields(from), shard_fields(to)),
    });
    members
        .chain(shards)
        .filter(|change| !change.fields.is_empty())
        .collect()
}

type Fields<const N: usize> = [(&'static str, String); N];

fn member_fields(row: Option<&MemberRow>) -> Fields<3> {
    let life = row.and_then(|row| row.lease.holder.member());
    let state = row.map(|row| row.state.text().sentence);
    let revision = row.map(|row| row.lease.revision.to_string());
    [
        ("state", state),
        ("incarnation", life.map(|life| life.incarnation.to_string())),
        ("revision", revision.filter(|revision| !revision.is_empty())),
    ]
    .map(|(name, text)| (name, text.unwrap_or_else(|| text::NOTHING.to_owned())))
}

fn shard_fields(row: &ShardRow) -> Fields<4> {
    let lease = row.lease.as_ref();
    [
        ("holder", text::holder(lease)),
        ("term", text::term(lease)),
        ("state", row.state()),
        (
            "cronJobs",
            text::or_nothing(row.n_cron_jobs.map(|count| count.to_string())),
        ),
    ]
}

fn differing<const N: usize>(from: Fields<N>, to: Fields<N>) -> Vec<ChangedField> {
    let pairs = from.into_iter().zip(to).filter(|(from, to)| from != to);
    pairs
        .map(|((name, from), (_, to))| ChangedField { name, from, to })
        .collect()
}

impl Change {
    /// Formats the change as one line of text.
    pub(super) fn to_text(&self, now: Timestamp) -> String {
        let fields = self.fields.iter();
        let fields: Vec<String> = fields
            .map(|ChangedField { name, from, to }| format!("{name} {from} -> {to}"))
            .collect();
        format!("{now:.3}  {} {}: {}\n", self.kind, self.name, fields.join("; "))
    }

    /// Formats the change as one line of JSON.
    pub(super) fn to_json(&self, now: Timestamp) -> String {
        let fields = self.fields.iter();
        let fields: Vec<_> = fields
            .map(|ChangedField { name, from, to }| json!({"field": name, "from": from, "to": to}))
            .collect();
        let line = json!({"at": format!("{now:.3}"), "kind": self.kind, "name": self.name, "changes": fields});
        format!("{line}\n")
    }
}
