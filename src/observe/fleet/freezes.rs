//! The freezes of namespaces, as far as they were observed. The built-in controller ignores them.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::second::Second;
use crate::{
    observe::{facts::FreezeSpan, slot::LATE_AFTER},
    schedule::options::Freeze,
};

/// Maximum number of freezes of a namespace that are kept. Older ones lie before all slots that matter.
const SPANS_MAX: usize = 32;

/// The freezes, by namespace.
#[derive(Debug, Default)]
pub(super) struct Freezes {
    spans: BTreeMap<Box<str>, Vec<Span>>,
}

/// One freeze. Where an end of it was not observed, it is known between two instants only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Span {
    /// It did not begin earlier.
    earliest_begin: Second,
    /// It had begun by then.
    from: Second,
    /// It still held until then.
    until: Second,
    /// It did not end later.
    latest_end: Second,
    pub(super) reason: Box<str>,
}

/// What is known of the freeze of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Frozen<'a> {
    /// The namespace was frozen at the start of the slot.
    Yes(&'a Span),
    /// It may have been.
    Perhaps(&'a Span),
}

impl<'a> Frozen<'a> {
    /// The freeze.
    pub(super) fn span(self) -> &'a Span {
        match self {
            Frozen::Yes(span) | Frozen::Perhaps(span) => span,
        }
    }
}

impl Span {
    /// The end of the freeze, as far as it is known.
    pub(super) fn end(&self) -> Second {
        self.latest_end
    }

    /// Until when it held for certain.
    pub(super) fn held_until(&self) -> Second {
        self.until
    }

    /// [`Span::end`] as an instant. One that a [`Second`] cannot hold is taken as the latest of all, as users write it for a
    /// freeze without an end.
    pub(super) fn end_timestamp(&self) -> Timestamp {
        if self.latest_end == Second::MAX {
            Timestamp::from_second(Timestamp::MAX.as_second()).unwrap_or(Timestamp::MAX)
        } else {
            self.latest_end.timestamp()
        }
    }

    /// The form that the history stores.
    fn stored(&self, namespace: &str) -> FreezeSpan {
        FreezeSpan {
            namespace: namespace.into(),
            earliest_begin: self.earliest_begin.timestamp(),
            from: self.from.timestamp(),
            until: self.until.timestamp(),
            latest_end: self.latest_end.timestamp(),
            reason: self.reason.clone(),
        }
    }

    fn is_sure_at(&self, start: Second) -> bool {
        // A freeze that is observed shortly after the slot may have come before it.
        self.from <= start.plus_duration(LATE_AFTER) && start < self.until
    }

    fn is_possible_at(&self, start: Second) -> bool {
        self.earliest_begin <= start && start < self.latest_end
    }
}

impl Freezes {
    /// What is known of a slot with this start.
    pub(super) fn at(&self, namespace: &str, start: Second) -> Option<Frozen<'_>> {
        let spans = self.spans.get(namespace)?;
        let sure = spans.iter().rfind(|span| span.is_sure_at(start)).map(Frozen::Yes);
        let possible = || spans.iter().rfind(|span| span.is_possible_at(start));
        sure.or_else(|| possible().map(Frozen::Perhaps))
    }

    /// The end of the last freeze that ended until an instant.
    pub(super) fn ended_before(&self, namespace: &str, at: Second) -> Option<Second> {
        let ends = self.spans.get(namespace)?.iter().map(Span::end);
        ends.filter(|end| *end <= at).max()
    }

    /// The end of the last freeze, also if it has passed.
    pub(super) fn last_end(&self, namespace: &str) -> Option<Second> {
        self.spans.get(namespace)?.last().map(Span::end)
    }

    /// The freeze that holds at an instant.
    pub(super) fn present(&self, namespace: &str, now: Second) -> Option<&Span> {
        let spans = self.spans.get(namespace)?;
        spans.iter().rfind(|span| span.from <= now && now < span.until)
    }

    /// Follows the annotations of a namespace. `changed` is the time of their last change, as far as the object tells it.
    /// `seen` is the last instant at which they were known. Returns the freeze that began or changed.
    pub(super) fn follow(
        &mut self,
        namespace: &str,
        freeze: Option<&Freeze>,
        changed: Option<Timestamp>,
        (seen, now): (Option<Second>, Second),
    ) -> Option<FreezeSpan> {
        let until = freeze.map(|freeze| Second::ceil(freeze.until));
        // One that was over when the annotations were last known is no change.
        let until = until.filter(|until| seen.is_none_or(|seen| seen < *until));
        let spans = self.spans.get_mut(namespace);
        let last = spans.and_then(|spans| spans.last_mut());
        let last = last.filter(|span| seen.unwrap_or(Second::MIN) < span.latest_end);
        let span = match (last, freeze.zip(until)) {
            (None, None) => return None,
            (Some(last), None) => {
                last.until = seen.unwrap_or(last.from).clamp(last.from, last.until.max(last.from));
                last.latest_end = last.latest_end.min(now);
                last.clone()
            }
            (Some(last), Some((freeze, until))) => {
                if last.latest_end == until && last.reason == freeze.reason {
                    return None;
                }
                (last.until, last.latest_end) = (until, until);
                last.reason = freeze.reason.clone();
                last.clone()
            }
            (None, Some((freeze, until))) => {
                let from = changed.map_or(now, Second::floor).min(now);
                let span = Span {
                    earliest_begin: seen.unwrap_or(Second::MIN).min(from),
                    from,
                    until,
                    latest_end: until,
                    reason: freeze.reason.clone(),
                };
                self.add(namespace, span.clone());
                span
            }
        };
        Some(span.stored(namespace))
    }

    fn add(&mut self, namespace: &str, span: Span) {
        let spans = self.spans.entry(namespace.into()).or_default();
        match spans.iter_mut().find(|other| other.from == span.from) {
            Some(other) => *other = span,
            None => spans.push(span),
        }
        spans.sort_by_key(|span| span.from);
        let n_excess = spans.len().saturating_sub(SPANS_MAX);
        spans.drain(..n_excess);
    }

    /// Adds a freeze of the history, or its later form.
    pub(super) fn load(&mut self, loaded: &FreezeSpan) {
        let span = Span {
            earliest_begin: Second::floor(loaded.earliest_begin),
            from: Second::floor(loaded.from),
            until: Second::ceil(loaded.until),
            latest_end: Second::ceil(loaded.latest_end),
            reason: loaded.reason.clone(),
        };
        self.add(&loaded.namespace, span);
    }

    /// Whether a freeze of a namespace is known, also one that has passed.
    pub(super) fn has(&self, namespace: &str) -> bool {
        self.spans.contains_key(namespace)
    }

    /// The namespaces that are frozen at an instant, each with its freeze.
    pub(super) fn all_present(&self, now: Second) -> impl Iterator<Item = (&str, &Span)> {
        let names = self.spans.keys().map(AsRef::as_ref);
        names.filter_map(move |name| Some((name, self.present(name, now)?)))
    }
}
