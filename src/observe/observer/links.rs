//! The state of the watches. Pure: signals go in, orders for the fleet come out.
//!
//! A namespace whose objects may not be read is left out: what its other watch delivers is ignored, and both list again
//! when the permission is back.

pub(super) mod optional;

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use super::source::{NotLive, Unreadable};
use crate::{
    observe::{
        facts::Kind,
        watch::{
            Object, Seen,
            signals::{Failure, Signal},
        },
    },
    shard::{Scope, Uid},
};

/// A watch that fails for less than this time is as good as current: a restarting API server is back within it, and a run
/// is not late yet.
const GRACE: SignedDuration = SignedDuration::from_secs(5);

/// Which watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LinkId {
    /// The position of the scope.
    pub(super) scope: usize,
    pub(super) kind: Kind,
}

/// What is to be done with the fleet.
#[derive(Clone, Debug)]
pub(super) enum Order {
    Nothing,
    Apply(Object),
    Remove(Uid),
    /// All other objects of the kind in the scope are gone.
    Retain(BTreeSet<Uid>),
    /// The objects of both kinds in the scope may not be read any more.
    Forget,
}

/// One watch.
#[derive(Debug, Default)]
struct Link {
    /// Whether the last list is complete.
    is_listed: bool,
    /// Whether any list was complete.
    was_listed: bool,
    /// The objects of the list that is under way.
    listed: BTreeSet<Uid>,
    /// Since when requests fail, and why.
    failing: Option<(Timestamp, String)>,
    is_forbidden: bool,
}

/// The watches of some scopes.
#[derive(Debug)]
pub(super) struct Links {
    scopes: Vec<ScopeLinks>,
    /// Watches that must list again.
    relists: Vec<LinkId>,
    /// Number of objects with a member that could not be decoded, and the last one.
    n_problems: u64,
    last_problem: Option<String>,
}

#[derive(Debug)]
struct ScopeLinks {
    scope: Scope,
    cron_jobs: Link,
    jobs: Link,
}

impl ScopeLinks {
    fn link(&mut self, kind: Kind) -> &mut Link {
        match kind {
            Kind::CronJob => &mut self.cron_jobs,
            Kind::Job => &mut self.jobs,
        }
    }

    fn both(&self) -> [&Link; 2] {
        [&self.cron_jobs, &self.jobs]
    }

    /// Whether a namespace is left out. A cluster is not, since nothing would be left.
    fn is_left_out(&self) -> bool {
        self.scope != Scope::Cluster && self.both().iter().any(|link| link.is_forbidden)
    }
}

impl Links {
    pub(super) fn new(scopes: &[Scope]) -> Links {
        let scopes = scopes.iter().map(|scope| ScopeLinks {
            scope: scope.clone(),
            cron_jobs: Link::default(),
            jobs: Link::default(),
        });
        Links {
            scopes: scopes.collect(),
            relists: Vec::new(),
            n_problems: 0,
            last_problem: None,
        }
    }

    pub(super) fn n_scopes(&self) -> usize {
        self.scopes.len()
    }

    /// The namespace of the scope at a position; `None` for the cluster.
    pub(super) fn namespace(&self, scope: usize) -> Option<&str> {
        match &self.scopes[scope].scope {
            Scope::Cluster => None,
            Scope::Namespace(name) => Some(&**name),
        }
    }

    /// Takes a signal of a watch.
    pub(super) fn take(&mut self, id: LinkId, signal: Signal, now: Timestamp) -> Order {
        if let Signal::Failed(failure) = signal {
            return self.fail(id, failure, now);
        }
        if !matches!(signal, Signal::ListBegun) {
            self.permit(id);
        }
        let scope = &mut self.scopes[id.scope];
        let is_left_out = scope.is_left_out();
        let link = scope.link(id.kind);
        match signal {
            Signal::ListBegun => {
                link.is_listed = false;
                link.listed.clear();
                Order::Nothing
            }
            _ if is_left_out => Order::Nothing,
            Signal::Listed(seen) => {
                if let (Some(uid), Ok(Some(_)) | Err(())) = (&seen.uid, &seen.object) {
                    link.listed.insert(uid.clone());
                }
                self.apply(seen)
            }
            Signal::ListDone => {
                link.is_listed = true;
                link.was_listed = true;
                link.failing = None;
                Order::Retain(std::mem::take(&mut link.listed))
            }
            Signal::Opened => {
                if link.is_listed {
                    link.failing = None;
                }
                Order::Nothing
            }
            Signal::Applied(seen) => {
                link.failing = None;
                self.apply(seen)
            }
            Signal::Deleted(seen) => {
                link.failing = None;
                seen.uid.map_or(Order::Nothing, Order::Remove)
            }
            Signal::Failed(_) => Order::Nothing,
        }
    }

    /// An object that cannot be decoded stays as it was known. A Job that its CronJob no longer controls is gone.
    fn apply(&mut self, seen: Seen) -> Order {
        if let Some(problem) = seen.problems.into_iter().next() {
            self.n_problems += 1;
            self.last_problem = Some(problem);
        }
        match seen.object {
            Ok(Some(object)) => Order::Apply(object),
            Ok(None) => seen.uid.map_or(Order::Nothing, Order::Remove),
            Err(()) => Order::Nothing,
        }
    }

    fn fail(&mut self, id: LinkId, Failure { text, is_forbidden }: Failure, now: Timestamp) -> Order {
        let scope = &mut self.scopes[id.scope];
        let was_left_out = scope.is_left_out();
        let link = scope.link(id.kind);
        let since = link.failing.take().map_or(now, |(since, _)| since);
        link.failing = Some((since, text));
        link.is_forbidden = is_forbidden;
        if is_forbidden {
            link.is_listed = false;
        }
        if scope.is_left_out() && !was_left_out {
            Order::Forget
        } else {
            Order::Nothing
        }
    }

    /// Notes that a request of a watch succeeded. If the scope is no longer left out, the other watch lists again.
    fn permit(&mut self, id: LinkId) {
        let scope = &mut self.scopes[id.scope];
        let was_left_out = scope.is_left_out();
        scope.link(id.kind).is_forbidden = false;
        if was_left_out && !scope.is_left_out() {
            let other = match id.kind {
                Kind::CronJob => Kind::Job,
                Kind::Job => Kind::CronJob,
            };
            scope.link(other).is_listed = false;
            self.relists.push(LinkId { kind: other, ..id });
        }
    }

    /// Lets all watches list again: nothing was received for long.
    pub(super) fn relist_all(&mut self) {
        for (scope, links) in self.scopes.iter_mut().enumerate() {
            for kind in Kind::ALL {
                links.link(kind).is_listed = false;
                self.relists.push(LinkId { scope, kind });
            }
        }
    }

    /// Takes the watches that must list again.
    pub(super) fn take_relists(&mut self) -> Vec<LinkId> {
        std::mem::take(&mut self.relists)
    }

    fn readable(&self) -> impl Iterator<Item = &Link> {
        let readable = self.scopes.iter().filter(|scope| !scope.is_left_out());
        readable.flat_map(ScopeLinks::both)
    }

    /// Whether every Job and CronJob of the readable scopes is known.
    pub(super) fn is_current(&self, now: Timestamp) -> bool {
        let is_current = |link: &Link| link.is_listed && link.failing_at(now).is_none();
        self.readable().next().is_some() && self.readable().all(is_current)
    }

    /// Whether every scope was listed, or may not be read.
    pub(super) fn is_complete(&self) -> bool {
        self.readable().all(|link| link.is_listed)
    }

    /// The answer to a list of all namespaces that the account may not make and never made.
    pub(super) fn refusal(&self) -> Option<&str> {
        let clusters = self.scopes.iter().filter(|scope| scope.scope == Scope::Cluster);
        let refused = clusters.flat_map(ScopeLinks::both);
        let mut refused = refused.filter(|link| link.is_forbidden && !link.was_listed);
        refused.find_map(|link| link.failing.as_ref().map(|(_, text)| &**text))
    }

    /// The oldest failure of a readable scope.
    pub(super) fn failure(&self) -> Option<(Timestamp, &str)> {
        let failing = self.readable().filter_map(|link| link.failing.as_ref());
        let oldest = failing.min_by_key(|(since, _)| *since);
        oldest.map(|(since, text)| (*since, &**text))
    }

    /// The failure that the page shows. It is not live either if nothing is readable.
    pub(super) fn not_live(&self, now: Timestamp) -> Option<NotLive> {
        if self.readable().next().is_none() {
            let forbidden = self.scopes.iter().flat_map(ScopeLinks::both);
            let failing = forbidden.filter_map(|link| link.failing.as_ref());
            let (since, problem) = failing.min_by_key(|(since, _)| *since)?;
            return Some(NotLive {
                since: *since,
                problem: format!("none of the namespaces can be read: {problem}"),
            });
        }
        let failing = self.readable().filter_map(|link| link.failing_at(now));
        let (since, problem) = failing.min_by_key(|(since, _)| *since)?;
        Some(NotLive {
            since,
            problem: problem.to_owned(),
        })
    }

    /// The namespaces that are left out.
    pub(super) fn unreadable(&self) -> Vec<Unreadable> {
        let left_out = self.scopes.iter().filter(|scope| scope.is_left_out());
        left_out
            .filter_map(|scope| {
                let Scope::Namespace(namespace) = &scope.scope else {
                    return None;
                };
                let forbidden = scope.both().into_iter().find(|link| link.is_forbidden)?;
                let problem = forbidden.failing.as_ref().map(|(_, text)| text.clone());
                Some(Unreadable {
                    namespace: (&**namespace).into(),
                    problem: problem.unwrap_or_default(),
                })
            })
            .collect()
    }

    /// When a failure begins to count.
    pub(super) fn next_change(&self, now: Timestamp) -> Option<Timestamp> {
        let failing = self.readable().filter_map(|link| link.failing.as_ref());
        let counts_from = failing.filter_map(|(since, _)| since.checked_add(GRACE).ok());
        counts_from.filter(|at| *at > now).min()
    }

    /// Number of objects with members that could not be decoded, and the last of them.
    pub(super) fn problems(&self) -> (u64, Option<&str>) {
        (self.n_problems, self.last_problem.as_deref())
    }
}

impl Link {
    /// The failure, if it lasts for long enough.
    fn failing_at(&self, now: Timestamp) -> Option<(Timestamp, &str)> {
        let (since, text) = self.failing.as_ref()?;
        (now.duration_since(*since) >= GRACE).then_some((*since, &**text))
    }
}

#[cfg(test)]
mod tests;
