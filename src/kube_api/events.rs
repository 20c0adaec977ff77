//! The decision about an Event before it is sent: a new Event, a higher count of an existing one, or none (B-14.1).
//!
//! Pure; the controller's Event task sends. The memory of a CronJob is small and is dropped after an hour without an
//! Event, so the total follows the CronJobs that have Events.

#[cfg(test)]
mod tests;

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash, Hasher},
};

use jiff::{SignedDuration, Timestamp};

use crate::{
    kube_api::objects::encode::{EventTimes, event_body, event_patch},
    shard::{CronJobEvent, EventReason, Uid},
};

/// The default lifetime of an Event in the API server (`--event-ttl`). An older Event cannot be patched.
const MEMORY: SignedDuration = SignedDuration::from_hours(1);

/// The interval between removals of expired state.
const SWEEP_INTERVAL: SignedDuration = SignedDuration::from_mins(10);

/// The maximum number of Events of one CronJob and reason that are sent separately if their messages differ.
const SIMILAR_MAX: usize = 10;

/// The maximum time between similar Events that are merged.
const SIMILAR_WINDOW: SignedDuration = SignedDuration::from_secs(600);

/// The prefix of the message of a merged Event.
const COMBINED_PREFIX: &str = "(combined from similar events): ";

/// The maximum burst of Events of one CronJob.
const BUCKET_TOKENS: u32 = 25;

/// The time after which a CronJob may emit one more Event.
const BUCKET_REFILL_SECONDS: i64 = 300;

/// The maximum length of an object's name.
const NAME_MAX_BYTES: usize = 253;

/// An Event to create, or the patch that may be sent instead.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventAction {
    /// The namespace of the Event.
    pub namespace: Box<str>,
    /// The whole Event, to create.
    pub body: Vec<u8>,
    /// The name of a sent Event and the merge patch that raises its count, to send instead.
    pub patch: Option<(Box<str>, Vec<u8>)>,
}

/// Aggregates Events, with the state of the sent ones.
#[derive(Debug, Default)]
pub struct EventAggregator {
    recent: HashMap<Uid, Recent>,
    swept: Option<Timestamp>,
    last_name_nanoseconds: i128,
}

/// The Events of one CronJob.
#[derive(Debug)]
struct Recent {
    last: Timestamp,
    bucket: Bucket,
    /// The bucket of [`EventReason::UnexpectedJob`]. Any account that may create Jobs in some namespace can cause
    /// such Events, so they must not use up the tokens of the CronJob's other Events.
    unexpected: Option<Box<Bucket>>,
    kinds: Vec<Kind>,
}

/// The Events of one CronJob and reason.
#[derive(Debug)]
struct Kind {
    reason: EventReason,
    last: Timestamp,
    /// The sent Events by message, until there are too many.
    sent: Vec<(u32, Sent)>,
    /// Whether too many messages differed: then all are merged until the window is over.
    is_merged: bool,
    merged: Option<Sent>,
}

/// An Event that was sent, or that was dropped.
#[derive(Clone, Copy, Debug)]
struct Sent {
    /// The time in its name, at which it was first sent.
    nanoseconds: i64,
    /// The number of occurrences; 0 before the first.
    count: u32,
}

#[derive(Debug)]
struct Bucket {
    tokens: u32,
    refilled: Timestamp,
}

impl EventAggregator {
    /// Creates an aggregator without state.
    pub fn new() -> EventAggregator {
        EventAggregator::default()
    }

    /// Decides how an Event that occurs at `now` is sent; `None` if the CronJob had too many Events recently.
    pub fn admit(&mut self, event: &CronJobEvent, now: Timestamp) -> Option<EventAction> {
        self.sweep(now);
        let last_name = &mut self.last_name_nanoseconds;
        let recent = self.recent.entry(event.cron_job.uid.clone()).or_insert_with(|| Recent {
            last: now,
            bucket: Bucket::full(now),
            unexpected: None,
            kinds: Vec::new(),
        });
        recent.last = now;
        let bucket = if event.reason == EventReason::UnexpectedJob {
            recent.unexpected.get_or_insert_with(|| Box::new(Bucket::full(now)))
        } else {
            &mut recent.bucket
        };
        let has_token = bucket.take(now);
        let kind = recent.kind(event.reason, now);
        let sent = kind.place(fingerprint(&event.message), now);
        let is_new = sent.count == 0;
        if is_new && !has_token {
            return None;
        }
        // Counted even if the Event is dropped, so that the next one carries the full count.
        sent.count = sent.count.saturating_add(1);
        if is_new {
            *last_name = now.as_nanosecond().max(*last_name + 1);
            sent.nanoseconds = i64::try_from(*last_name).unwrap_or(i64::MAX);
        }
        let sent = *sent;
        if !has_token {
            return None;
        }
        let message = if kind.is_merged {
            format!("{COMBINED_PREFIX}{}", event.message)
        } else {
            event.message.clone()
        };
        Some(action(event, &message, sent, is_new, now))
    }

    /// Whether an Event of its CronJob and reason was sent recently.
    pub fn is_repeat(&self, event: &CronJobEvent) -> bool {
        let kinds = self.recent.get(&event.cron_job.uid).map(|recent| &recent.kinds);
        kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind.reason == event.reason))
    }

    /// Counts an Event that is not sent, so that the next one carries the full count.
    pub fn count(&mut self, event: &CronJobEvent) {
        let kinds = self.recent.get_mut(&event.cron_job.uid).map(|recent| &mut recent.kinds);
        let mut kinds = kinds.into_iter().flatten();
        let Some(kind) = kinds.find(|kind| kind.reason == event.reason) else {
            return;
        };
        let fingerprint = fingerprint(&event.message);
        let known = kind.sent.iter_mut().find(|(known, _)| *known == fingerprint);
        let sent = known.map(|(_, sent)| sent).or(kind.merged.as_mut());
        if let Some(sent) = sent.filter(|sent| sent.count > 0) {
            sent.count = sent.count.saturating_add(1);
        }
    }

    /// Removes the CronJobs whose Events have expired.
    fn sweep(&mut self, now: Timestamp) {
        if self
            .swept
            .is_some_and(|swept| now.duration_since(swept) < SWEEP_INTERVAL)
        {
            return;
        }
        self.swept = Some(now);
        self.recent.retain(|_, recent| now.duration_since(recent.last) < MEMORY);
        self.recent.shrink_to_fit();
    }
}

impl Recent {
    fn kind(&mut self, reason: EventReason, now: Timestamp) -> &mut Kind {
        let known = self.kinds.iter().position(|kind| kind.reason == reason);
        let place = known.unwrap_or_else(|| {
            self.kinds.reserve_exact(1);
            self.kinds.push(Kind {
                reason,
                last: now,
                sent: Vec::new(),
                is_merged: false,
                merged: None,
            });
            self.kinds.len() - 1
        });
        &mut self.kinds[place]
    }
}

impl Kind {
    /// The record that counts a message: that of equal messages, or that of all messages if too many differ.
    fn place(&mut self, fingerprint: u32, now: Timestamp) -> &mut Sent {
        let is_over = now.duration_since(self.last) > SIMILAR_WINDOW;
        self.last = now;
        self.is_merged &= !is_over;
        let known = self.sent.iter().position(|(known, _)| *known == fingerprint);
        if known.is_none() && !self.is_merged {
            if is_over {
                self.sent = Vec::new();
            } else if self.sent.len() >= SIMILAR_MAX {
                self.is_merged = true;
                self.sent = Vec::new();
            }
        }
        let new = Sent {
            nanoseconds: 0,
            count: 0,
        };
        if self.is_merged {
            return self.merged.get_or_insert(new);
        }
        let place = known.unwrap_or_else(|| {
            self.sent.reserve_exact(1);
            self.sent.push((fingerprint, new));
            self.sent.len() - 1
        });
        &mut self.sent[place].1
    }
}

impl Sent {
    /// `<cronjob>.<hex of Unix nanoseconds>`. A CronJob name that is too long is truncated.
    fn name(self, cron_job: &str) -> Box<str> {
        let suffix = format!(".{:x}", self.nanoseconds);
        let cut = &cron_job[..cron_job.floor_char_boundary(NAME_MAX_BYTES - suffix.len())];
        format!("{}{suffix}", cut.trim_end_matches(['.', '-'])).into()
    }

    fn times(self, now: Timestamp) -> EventTimes {
        EventTimes {
            first: Timestamp::from_nanosecond(self.nanoseconds.into()).unwrap_or(now),
            last: now,
            count: self.count,
        }
    }
}

impl Bucket {
    fn full(now: Timestamp) -> Bucket {
        Bucket {
            tokens: BUCKET_TOKENS,
            refilled: now,
        }
    }

    fn take(&mut self, now: Timestamp) -> bool {
        self.refill(now);
        let has_token = self.tokens > 0;
        self.tokens = self.tokens.saturating_sub(1);
        has_token
    }

    fn refill(&mut self, now: Timestamp) {
        let n_tokens = (now.as_second() - self.refilled.as_second()) / BUCKET_REFILL_SECONDS;
        let Ok(n_tokens) = u32::try_from(n_tokens) else {
            // The clock was set back, so refills count from here.
            self.refilled = now;
            return;
        };
        if n_tokens == 0 {
            return;
        }
        self.tokens = self.tokens.saturating_add(n_tokens).min(BUCKET_TOKENS);
        let elapsed = SignedDuration::from_secs(i64::from(n_tokens) * BUCKET_REFILL_SECONDS);
        self.refilled = self.refilled.saturating_add(elapsed).unwrap_or(now);
    }
}

fn action(event: &CronJobEvent, message: &str, sent: Sent, is_new: bool, now: Timestamp) -> EventAction {
    let name = sent.name(&event.cron_job.name);
    EventAction {
        namespace: event.cron_job.namespace.clone(),
        body: event_body(event, &name, message, sent.times(now)),
        patch: (!is_new).then(|| (name, event_patch(message, sent.times(now)))),
    }
}

/// The fingerprint of a message, the same in every run and replica. Messages of one CronJob and reason with the same
/// fingerprint are counted together.
fn fingerprint(message: &str) -> u32 {
    let mut hasher = DefaultHasher::new();
    message.hash(&mut hasher);
    (hasher.finish() >> 32) as u32
}
