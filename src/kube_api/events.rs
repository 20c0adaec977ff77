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

/// An API server keeps an Event for so long by default (`--event-ttl`): an older one cannot be patched.
const MEMORY: SignedDuration = SignedDuration::from_hours(1);

/// How often what is older is looked for.
const SWEEP_INTERVAL: SignedDuration = SignedDuration::from_mins(10);

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
    /// The bucket of [`EventReason::UnexpectedJob`]: whoever may create Jobs in any namespace can make such Events, and must
    /// not use up what the CronJob's own have.
    unexpected: Option<Box<Bucket>>,
    kinds: Vec<Kind>,
}

/// The Events of one CronJob and reason.
#[derive(Debug)]
struct Kind {
    reason: EventReason,
    last: Timestamp,
    /// By message, until there are too many.
    sent: Vec<(u32, Sent)>,
    /// Too many messages differed: all are merged until the window is over.
    is_merged: bool,
    merged: Option<Sent>,
}

/// An Event that was sent, or would have been.
#[derive(Clone, Copy, Debug)]
struct Sent {
    /// Of its name: when it was first sent.
    nanoseconds: i64,
    /// None were sent where it is 0.
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
        EventAggregator::default()
    }

    /// Decides what becomes of an Event that happened `now`.
    pub fn admit(&mut self, event: &CronJobEvent, now: Timestamp) -> EventAction {
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
            return EventAction::Drop;
        }
        // Counted even if it is not told now, so that the next one tells the truth.
        sent.count = sent.count.saturating_add(1);
        if is_new {
            *last_name = now.as_nanosecond().max(*last_name + 1);
            sent.nanoseconds = i64::try_from(*last_name).unwrap_or(i64::MAX);
        }
        let sent = *sent;
        if !has_token {
            return EventAction::Drop;
        }
        let message = if kind.is_merged {
            format!("{COMBINED_PREFIX}{}", event.message)
        } else {
            event.message.clone()
        };
        action(event, &message, sent, is_new, now)
    }

    /// Whether an Event of its CronJob and reason was sent of late.
    pub fn is_repeat(&self, event: &CronJobEvent) -> bool {
        let kinds = self.recent.get(&event.cron_job.uid).map(|recent| &recent.kinds);
        kinds.is_some_and(|kinds| kinds.iter().any(|kind| kind.reason == event.reason))
    }

    /// Counts an Event that is not sent, so that the next one tells the truth.
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

    /// Forgets CronJobs whose Events are gone.
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
    /// Where a message is counted: with its equals, or with all others where too many differ.
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
    /// `<cronjob>.<hex of Unix nanoseconds>`. A name that is too long for the rest is cut.
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

fn action(event: &CronJobEvent, message: &str, sent: Sent, is_new: bool, now: Timestamp) -> EventAction {
    let (namespace, name) = (event.cron_job.namespace.clone(), sent.name(&event.cron_job.name));
    let create_body = event_body(event, &name, message, sent.times(now));
    if is_new {
        return EventAction::Create {
            namespace,
            body: create_body,
        };
    }
    EventAction::Patch {
        namespace,
        name,
        body: event_patch(message, sent.times(now)),
        create_body,
    }
}

/// The same on every run and replica. Two messages of one CronJob and reason that have the same are counted together.
fn fingerprint(message: &str) -> u32 {
    let mut hasher = DefaultHasher::new();
    message.hash(&mut hasher);
    (hasher.finish() >> 32) as u32
}
