//! The Leases and CronJobs of an installation that were read.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use super::cron_job_name::CronJobName;
use crate::{
    cli::plan::Plan,
    coordination::{Installation, LeaseKey, LeaseRecord, MemberLease, MemberSettings},
    kube_api::{NamespaceSelector, other_controllers::OtherControllers},
    shard::{Bucket, CronJobIdentity, ManagedNamespaces, Scope, ShardId, Uid},
};

/// The data of a listing.
pub(in crate::cli) struct Known {
    pub(in crate::cli) namespace: Box<str>,
    pub(super) installation: Installation,
    pub(super) leases: BTreeMap<LeaseKey, LeaseRecord>,
    /// The evidence of other controllers in the CronJobs.
    pub(super) other_controllers: OtherControllers,
    /// The managed namespaces, as they were when the command began.
    pub(super) namespaces: ManagedNamespaces,
    /// The CronJobs by scope; `None` if the account may not list them.
    pub(super) cron_jobs: Option<BTreeMap<Scope, CronJobs>>,
}

/// The CronJobs of a scope.
#[derive(Default)]
pub(super) struct CronJobs {
    /// The CronJobs, without a plan if they cannot be decoded.
    plans: BTreeMap<Uid, Option<Plan>>,
    /// CronJobs of a list that is not complete yet.
    relisted: Option<BTreeSet<Uid>>,
}

impl CronJobs {
    /// Adds a CronJob; without a plan if it cannot be decoded.
    pub(super) fn put(&mut self, uid: &Uid, plan: Option<Plan>) {
        if let Some(relisted) = &mut self.relisted {
            relisted.insert(uid.clone());
        }
        self.plans.insert(uid.clone(), plan);
    }

    pub(super) fn remove(&mut self, uid: &Uid) {
        self.plans.remove(uid);
    }

    /// Begins a list; CronJobs that are not in it are removed.
    pub(super) fn begin_relist(&mut self) {
        self.relisted = Some(BTreeSet::new());
    }

    pub(super) fn end_relist(&mut self) {
        if let Some(relisted) = self.relisted.take() {
            self.plans.retain(|uid, _| relisted.contains(uid));
        }
    }
}

impl Known {
    pub(in crate::cli) fn new(namespace: &str, installation: Installation) -> Known {
        Known {
            namespace: namespace.into(),
            installation,
            leases: BTreeMap::new(),
            other_controllers: OtherControllers::default(),
            namespaces: ManagedNamespaces::default(),
            cron_jobs: Some(BTreeMap::new()),
        }
    }

    pub(in crate::cli) fn list_leases(&mut self, leases: Vec<LeaseRecord>) {
        self.leases = leases.into_iter().map(|record| (record.key.clone(), record)).collect();
    }

    /// Returns the settings of the members that take shards or, if none does, of all members.
    fn settings(&self) -> Vec<Option<MemberSettings>> {
        let is_member = |(key, _): &(&LeaseKey, &LeaseRecord)| matches!(key, LeaseKey::Member(_));
        let members = self.leases.iter().filter(is_member);
        let members: Vec<MemberLease> = members.map(|(_, record)| MemberLease::read(record)).collect();
        let has_taker = members.iter().any(MemberLease::takes_shards);
        let settings = members.into_iter().filter(|member| !has_taker || member.takes_shards());
        settings.map(|member| member.settings).collect()
    }

    /// Returns the selector of the managed namespaces, if every member has the same.
    pub(super) fn namespace_selector(&self) -> Option<NamespaceSelector> {
        let settings = self.settings();
        let mut selectors = settings.iter().map(|settings| settings.as_ref()?.namespace_selector());
        let selector = selectors.next()??;
        let is_shared = selectors.all(|other| other == Some(selector));
        is_shared.then(|| selector.parse().ok())?
    }

    /// Returns the scopes in which the members work that take shards or, if none does, all members: the whole cluster
    /// unless each of them publishes its namespaces.
    pub(super) fn scopes(&self) -> BTreeSet<Scope> {
        let settings = self.settings();
        let scopes: Option<Vec<Vec<Scope>>> = settings.iter().map(|settings| settings.as_ref()?.scopes()).collect();
        let scopes: BTreeSet<Scope> = scopes.into_iter().flatten().flatten().collect();
        if scopes.is_empty() || scopes.contains(&Scope::Cluster) {
            [Scope::Cluster].into()
        } else {
            scopes
        }
    }

    fn shard_of(&self, uid: &Uid) -> ShardId {
        Bucket::of(uid).shard(self.installation.shard_count)
    }

    fn plans(&self) -> impl Iterator<Item = (&Uid, Option<&Plan>)> {
        let scopes = self.cron_jobs.iter().flat_map(BTreeMap::values);
        scopes.flat_map(|scope| scope.plans.iter().map(|(uid, plan)| (uid, plan.as_ref())))
    }

    /// Returns the shard and the plan of a CronJob; `None` if it is not known.
    pub(super) fn place_of(&self, wanted: &CronJobName) -> Option<(ShardId, &Plan)> {
        self.plans().find_map(|(uid, plan)| {
            let CronJobIdentity { namespace, name, .. } = &*plan?.identity;
            let is_wanted = **namespace == *wanted.namespace && **name == *wanted.name;
            is_wanted.then_some((self.shard_of(uid), plan?))
        })
    }

    /// Returns the number of CronJobs by shard; `None` if the account may not list them.
    pub(super) fn n_cron_jobs(&self) -> Option<BTreeMap<ShardId, usize>> {
        self.cron_jobs.as_ref()?;
        let mut counts = BTreeMap::new();
        for (uid, _) in self.plans() {
            *counts.entry(self.shard_of(uid)).or_default() += 1;
        }
        Some(counts)
    }

    /// Returns the next activation by shard.
    pub(super) fn next_runs(&self, now: Timestamp) -> BTreeMap<ShardId, Timestamp> {
        let mut next = BTreeMap::new();
        for (uid, plan) in self.plans() {
            if let Some(at) = plan.and_then(|plan| plan.next_run(now)) {
                let earliest = next.entry(self.shard_of(uid)).or_insert(at);
                *earliest = at.min(*earliest);
            }
        }
        next
    }
}
