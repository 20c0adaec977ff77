//! The state of the watches that the account need not be able to read: namespaces and calendars. Pure.
//!
//! What they last said stays while they fail.

use std::collections::BTreeSet;

use crate::{
    observe::{
        facts::OptionalKind,
        watch::{
            Object,
            signals::{Failure, Signal},
        },
    },
    shard::{Scope, Uid},
};

/// Namespaces that are named in a note.
const NAMED_MAX: usize = 5;

/// Which watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::observe::observer) struct OptionalId {
    /// The position of the scope.
    pub(in crate::observe::observer) scope: usize,
    pub(in crate::observe::observer) kind: OptionalKind,
}

/// What is to be done with the fleet.
#[derive(Clone, Debug)]
pub(in crate::observe::observer) enum OptionalOrder {
    Nothing,
    /// A list begins.
    Begin,
    Apply(Object),
    Remove(Uid),
    /// All other objects of the kind in the scope are gone.
    Retain(BTreeSet<Uid>),
    /// The objects cannot be read any more.
    Lose,
    /// The watch continues where it was.
    Regain,
}

#[derive(Debug, Default)]
struct Link {
    is_listed: bool,
    listed: BTreeSet<Uid>,
    /// Number of objects of the list that is under way, or of the last one.
    n_listed: usize,
    failing: Option<Failure>,
}

/// The watches of some scopes.
#[derive(Debug)]
pub(in crate::observe::observer) struct OptionalLinks {
    scopes: Vec<(Scope, Link, Link)>,
}

impl OptionalLinks {
    pub(in crate::observe::observer) fn new(scopes: &[Scope]) -> OptionalLinks {
        let links = |scope: &Scope| (scope.clone(), Link::default(), Link::default());
        OptionalLinks {
            scopes: scopes.iter().map(links).collect(),
        }
    }

    /// Takes a signal of a watch.
    pub(in crate::observe::observer) fn take(&mut self, id: OptionalId, signal: Signal) -> OptionalOrder {
        let (_, namespaces, calendars) = &mut self.scopes[id.scope];
        let link = match id.kind {
            OptionalKind::Namespace => namespaces,
            OptionalKind::Calendar => calendars,
        };
        match signal {
            Signal::ListBegun => {
                link.listed.clear();
                link.n_listed = 0;
                OptionalOrder::Begin
            }
            Signal::Listed(seen) => {
                link.listed.extend(seen.uid);
                link.n_listed += 1;
                seen.object
                    .ok()
                    .flatten()
                    .map_or(OptionalOrder::Nothing, OptionalOrder::Apply)
            }
            Signal::ListDone => {
                (link.is_listed, link.failing) = (true, None);
                OptionalOrder::Retain(std::mem::take(&mut link.listed))
            }
            Signal::Opened if link.is_listed => {
                link.failing = None;
                OptionalOrder::Regain
            }
            Signal::Opened => OptionalOrder::Nothing,
            Signal::Applied(seen) => {
                let object = seen.object.ok().flatten();
                object.map_or(OptionalOrder::Nothing, OptionalOrder::Apply)
            }
            Signal::Deleted(seen) => seen.uid.map_or(OptionalOrder::Nothing, OptionalOrder::Remove),
            Signal::Failed(failure) => {
                link.is_listed &= !failure.is_forbidden;
                link.failing = Some(failure);
                OptionalOrder::Lose
            }
        }
    }

    fn links(&self, kind: OptionalKind) -> impl Iterator<Item = (&Scope, &Link)> {
        self.scopes.iter().map(move |(scope, namespaces, calendars)| {
            let link = match kind {
                OptionalKind::Namespace => namespaces,
                OptionalKind::Calendar => calendars,
            };
            (scope, link)
        })
    }

    /// Whether everything of a kind was listed, or cannot be.
    pub(in crate::observe::observer) fn is_settled(&self, kind: OptionalKind) -> bool {
        self.links(kind)
            .all(|(_, link)| link.is_listed || link.failing.is_some())
    }

    /// What is not known, in sentences: who lacks which right. Calendars count if a CronJob names one.
    pub(in crate::observe::observer) fn notes(&self, needs_calendars: bool) -> Vec<String> {
        let kinds = [
            (OptionalKind::Namespace, true),
            (OptionalKind::Calendar, needs_calendars),
        ];
        let kinds = kinds.into_iter().filter(|(_, is_needed)| *is_needed);
        let unknown = kinds.filter_map(|(kind, _)| self.note(kind));
        self.missing().into_iter().chain(unknown).collect()
    }

    /// Which of the namespaces do not exist: an empty one would look the same.
    fn missing(&self) -> Option<String> {
        let missing = self
            .links(OptionalKind::Namespace)
            .filter_map(|(scope, link)| match scope {
                Scope::Namespace(name) if link.is_listed && link.n_listed == 0 => Some(&**name),
                Scope::Namespace(_) | Scope::Cluster => None,
            });
        let names: Vec<&str> = missing.collect();
        let (first, rest) = names.split_first()?;
        Some(if rest.is_empty() {
            format!("Namespace {first} does not exist.")
        } else {
            format!("The namespaces {} do not exist.", names.join(", "))
        })
    }

    fn note(&self, kind: OptionalKind) -> Option<String> {
        // What was listed once is known until the watch continues, and the head of the page says that it fails.
        let unlisted = self.links(kind).filter(|(_, link)| !link.is_listed);
        let failing = unlisted.filter_map(|(scope, link)| Some((scope, link.failing.as_ref()?)));
        let failing: Vec<(&Scope, &Failure)> = failing.collect();
        let (_, failure) = failing.first()?;
        let of = of_scopes(&failing);
        let (what, fix) = match kind {
            OptionalKind::Namespace => (
                "Freezes and defaults of namespaces",
                "get, list and watch on namespaces, a resource of the core group",
            ),
            OptionalKind::Calendar => (
                "Calendars",
                "list and watch on configmaps, a resource of the core group",
            ),
        };
        let effect = match kind {
            OptionalKind::Namespace => "slots of a freeze count as lost",
            OptionalKind::Calendar => "slots without a Job of CronJobs with not-on are unknown",
        };
        let what = format!("{what}{of} are not known here, so {effect}");
        Some(if failure.is_forbidden {
            format!("{what}: the account may not read them. Grant it {fix}.")
        } else {
            format!("{what}: {}.", failure.text)
        })
    }
}

/// The namespaces of a note: ` in shop and ops`. Nothing for the cluster.
fn of_scopes(failing: &[(&Scope, &Failure)]) -> String {
    let names = failing.iter().filter_map(|(scope, _)| match scope {
        Scope::Cluster => None,
        Scope::Namespace(name) => Some(&**name),
    });
    let names: Vec<&str> = names.collect();
    let first = names[..names.len().min(NAMED_MAX)].join(", ");
    match names.len().saturating_sub(NAMED_MAX) {
        0 if names.is_empty() => String::new(),
        0 => format!(" in {first}"),
        n_more => format!(" in {first} and {n_more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observe::watch::Seen;

    fn failed(text: &str, is_forbidden: bool) -> Signal {
        Signal::Failed(Failure {
            text: text.to_owned(),
            is_forbidden,
        })
    }

    /// The watch lists the namespace.
    fn listed(links: &mut OptionalLinks, id: OptionalId) {
        links.take(id, Signal::ListBegun);
        let seen = Seen {
            uid: Some(Uid::new("a")),
            object: Ok(None),
            problems: Vec::new(),
        };
        links.take(id, Signal::Listed(seen));
        links.take(id, Signal::ListDone);
    }

    #[test]
    fn a_namespace_that_does_not_exist_is_named() {
        let scopes = ["shop", "nosuch", "ops"].map(|name| Scope::Namespace(name.into()));
        let mut links = OptionalLinks::new(&scopes);
        let id = |scope| OptionalId {
            scope,
            kind: OptionalKind::Namespace,
        };
        let is_missing = |links: &mut OptionalLinks, scope| {
            links.take(id(scope), Signal::ListBegun);
            links.take(id(scope), Signal::ListDone);
        };
        listed(&mut links, id(0));
        links.take(id(2), failed("no", true));
        assert_eq!(
            links.notes(false).len(),
            1,
            "nothing is said of one that may not be read"
        );
        is_missing(&mut links, 1);
        assert_eq!(links.notes(false)[0], "Namespace nosuch does not exist.");
        is_missing(&mut links, 2);
        assert_eq!(links.notes(false), ["The namespaces nosuch, ops do not exist."]);
        listed(&mut links, id(1));
        assert_eq!(links.notes(false), ["Namespace ops does not exist."]);
        // A cluster without namespaces is none.
        let mut links = OptionalLinks::new(&[Scope::Cluster]);
        is_missing(&mut links, 0);
        assert!(links.notes(false).is_empty());
    }

    #[test]
    fn what_is_not_known_is_said_with_the_right_that_is_needed() {
        let scopes = [Scope::Namespace("shop".into()), Scope::Namespace("ops".into())];
        let mut links = OptionalLinks::new(&scopes);
        let namespace = |scope| OptionalId {
            scope,
            kind: OptionalKind::Namespace,
        };
        let calendar = OptionalId {
            scope: 0,
            kind: OptionalKind::Calendar,
        };
        assert!(!links.is_settled(OptionalKind::Namespace) && links.notes(true).is_empty());
        listed(&mut links, namespace(0));
        links.take(namespace(1), failed("no", true));
        assert!(links.is_settled(OptionalKind::Namespace) && !links.is_settled(OptionalKind::Calendar));
        let expected = "Freezes and defaults of namespaces in ops are not known here, so slots of a freeze count as lost: the \
                        account may not read them. Grant it get, list and watch on namespaces, a resource of the core \
                        group.";
        assert_eq!(links.notes(true), [expected]);
        listed(&mut links, namespace(1));
        links.take(namespace(1), failed("timed out", false));
        links.take(calendar, failed("timed out", false));
        let expected = "Calendars in shop are not known here, so slots without a Job of CronJobs with not-on are unknown: \
                        timed out.";
        assert_eq!(links.notes(true), [expected]);
        assert!(links.notes(false).is_empty(), "no CronJob names one");
        links.take(namespace(1), failed("no", true));
        assert_eq!(links.notes(false).len(), 1, "the right was taken away");
    }
}
