//! What becomes of an Event before it is sent: new, a higher count of one that is there, or nothing (B-14.1).
//!
//! Pure; the lane that sends is in the shell. Bounded: each of the three memories holds
//! [`CACHE_CAPACITY`] entries and forgets the least recently used, at the price of an Event too many.

mod least_recently_used;
#[cfg(test)]
mod tests;

use std::hash::{DefaultHasher, Hash, Hasher};

use jiff::{SignedDuration, Timestamp};

use self::least_recently_used::LeastRecentlyUsed;
use super::encode::{EventTimes, event_body, event_patch};
use crate::state::{CronJobEvent, EventReason, Uid};

/// Entries of each memory, as in client-go.
pub const CACHE_CAPACITY: usize = 4096;

/// Events of one CronJob and reason with differing messages that are sent one by one.
const SIMILAR_MAX: usize = 10;

/// How long after the last of them similar events still belong together.
const SIMILAR_WINDOW: SignedDuration = SignedDuration::from_secs(600);

/// What a merged Event's message begins with.
const COMBINED_PREFIX: &str = "(combined from similar events): ";

/// Events of one CronJob that may come at once.
const BUCKET_TOKENS: u32 = 25;

/// How long one more takes.
const BUCKET_REFILL_SECONDS: i64 = 300;

/// Longest name of an object.
const NAME_MAX_BYTES: usize = 253;

/// What to do with an Event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventAction {
    /// Create it.
    Create {
        /// Where.
        namespace: Box<str>,
        /// The new Event.
        body: Vec<u8>,
    },
    /// Raise the count of one that was sent.
    Patch {
        /// Where.
        namespace: Box<str>,
        /// Its name.
        name: Box<str>,
        /// The merge patch.
        body: Vec<u8>,
        /// The whole Event, to create should it be gone.
        create_body: Vec<u8>,
    },
    /// Nothing: the CronJob had too many of late. To be counted.
    Drop,
}

/// Remembers what was sent.
#[derive(Debug)]
pub struct EventAggregator {
    similar: LeastRecentlyUsed<(Uid, EventReason), Similar>,
    sent: LeastRecentlyUsed<SentKey, Sent>,
    buckets: LeastRecentlyUsed<Uid, Bucket>,
    last_name_nanoseconds: i128,
}

impl Default for EventAggregator {
    fn default() -> EventAggregator {
        EventAggregator::new()
    }
}

/// The messages of one CronJob and reason, as fingerprints.
#[derive(Debug)]
struct Similar {
    messages: Vec<u64>,
    last: Timestamp,
}

/// CronJob, reason and the fingerprint of the message, none for the merged Event.
type SentKey = (Uid, EventReason, Option<u64>);

#[derive(Debug)]
struct Sent {
    name: Box<str>,
    first: Timestamp,
    count: u32,
}

#[derive(Debug)]
struct Bucket {
    tokens: u32,
    refilled: Timestamp,
}

impl EventAggregator {
    /// Remembers nothing yet.
    pub fn new() -> EventAggregator {
        EventAggregator {
            similar: LeastRecentlyUsed::new(CACHE_CAPACITY),
            sent: LeastRecentlyUsed::new(CACHE_CAPACITY),
            buckets: LeastRecentlyUsed::new(CACHE_CAPACITY),
            last_name_nanoseconds: 0,
        }
    }

    /// Decides what becomes of an Event that happened `now`.
    pub fn admit(&mut self, event: &CronJobEvent, now: Timestamp) -> EventAction {
        let uid = &event.cron_job.uid;
        let fingerprint = fingerprint(&event.message);
        let is_combined = self.is_one_of_too_many(uid, event.reason, fingerprint, now);
        let has_token = self.take_token(uid, now);
        let key = (uid.clone(), event.reason, (!is_combined).then_some(fingerprint));
        let message = if is_combined {
            format!("{COMBINED_PREFIX}{}", event.message)
        } else {
            event.message.clone()
        };
        if let Some(sent) = self.sent.get_mut(&key) {
            // Counted even if it is not told now, so that the next one tells the truth.
            sent.count = sent.count.saturating_add(1);
            return if has_token {
                patch(event, &message, sent, now)
            } else {
                EventAction::Drop
            };
        }
        if !has_token {
            return EventAction::Drop;
        }
        let sent = Sent {
            name: self.name(&event.cron_job.name, now),
            first: now,
            count: 1,
        };
        let body = event_body(event, &sent.name, &message, sent.times(now));
        self.sent.insert(key, sent);
        EventAction::Create {
            namespace: event.cron_job.namespace.clone(),
            body,
        }
    }

    fn is_one_of_too_many(&mut self, uid: &Uid, reason: EventReason, fingerprint: u64, now: Timestamp) -> bool {
        let similar = self.similar.get_or_insert((uid.clone(), reason), || Similar {
            messages: Vec::new(),
            last: now,
        });
        if now.duration_since(similar.last) > SIMILAR_WINDOW {
            similar.messages.clear();
        }
        similar.last = now;
        if similar.messages.contains(&fingerprint) {
            return false;
        }
        if similar.messages.len() >= SIMILAR_MAX {
            return true;
        }
        similar.messages.push(fingerprint);
        false
    }

    fn take_token(&mut self, uid: &Uid, now: Timestamp) -> bool {
        let bucket = self.buckets.get_or_insert(uid.clone(), || Bucket {
            tokens: BUCKET_TOKENS,
            refilled: now,
        });
        bucket.refill(now);
        let has_token = bucket.tokens > 0;
        bucket.tokens = bucket.tokens.saturating_sub(1);
        has_token
    }

    /// `<cronjob>.<hex of Unix nanoseconds>`, never the same twice. A name that is too long for the rest is cut.
    fn name(&mut self, cron_job: &str, now: Timestamp) -> Box<str> {
        self.last_name_nanoseconds = now.as_nanosecond().max(self.last_name_nanoseconds + 1);
        let suffix = format!(".{:x}", self.last_name_nanoseconds);
        let cut = &cron_job[..cron_job.floor_char_boundary(NAME_MAX_BYTES - suffix.len())];
        format!("{}{suffix}", cut.trim_end_matches(['.', '-'])).into()
    }
}

impl Sent {
    fn times(&self, now: Timestamp) -> EventTimes {
        EventTimes {
            first: self.first,
            last: now,
            count: self.count,
        }
    }
}

impl Bucket {
    fn refill(&mut self, now: Timestamp) {
        let n_tokens = (now.as_second() - self.refilled.as_second()) / BUCKET_REFILL_SECONDS;
        let Ok(n_tokens) = u32::try_from(n_tokens) else {
            // The clock went back: count on from here.
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

fn patch(event: &CronJobEvent, message: &str, sent: &Sent, now: Timestamp) -> EventAction {
    EventAction::Patch {
        namespace: event.cron_job.namespace.clone(),
        name: sent.name.clone(),
        body: event_patch(message, sent.times(now)),
        create_body: event_body(event, &sent.name, message, sent.times(now)),
    }
}

/// The same on every run and replica.
fn fingerprint(message: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    message.hash(&mut hasher);
    hasher.finish()
}
