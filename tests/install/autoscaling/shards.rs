//! The holders of the shards in the Leases, and the number of moves.

use std::{collections::BTreeMap, time::Duration};

use serde_json::Value;

use super::rig::{Kill, State};
use crate::{
    cluster::{Cluster, wait_for},
    release::NAMESPACE,
};

/// The maximum ratio of moves to needed moves.
const MOVES_RATIO_MAX: f64 = 1.1;

/// The longest time from a kill until other replicas, or the restarted one, hold the shards.
const RESTART_MAX: Duration = Duration::from_secs(3);

/// The term and the Pod of each shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shards(BTreeMap<String, (u64, String)>);

impl Shards {
    /// Reads the Leases of shards among these objects.
    pub(crate) fn of(leases: &[Value]) -> Shards {
        let shard = |lease: &Value| {
            let name = lease["metadata"]["name"].as_str()?;
            let spec = &lease["spec"];
            let pod = spec["holderIdentity"].as_str().unwrap_or_default().split('/').next()?;
            let term = spec["leaseTransitions"].as_u64().unwrap_or_default();
            name.starts_with("cronwheel-shard-")
                .then(|| (name.to_owned(), (term, pod.to_owned())))
        };
        Shards(leases.iter().filter_map(shard).collect())
    }

    /// The number of shards of each Pod.
    pub(crate) fn shares(&self) -> BTreeMap<&str, usize> {
        let mut shares = BTreeMap::new();
        for (_, pod) in self.0.values().filter(|(_, pod)| !pod.is_empty()) {
            *shares.entry(pod.as_str()).or_default() += 1;
        }
        shares
    }

    /// The number of shards.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether this many Pods hold all shards, and their shares differ by at most one.
    fn are_even(&self, n_pods: usize) -> bool {
        let shares = self.shares();
        let (least, most) = (shares.values().min(), shares.values().max());
        let is_even = most.zip(least).is_some_and(|(most, least)| most - least <= 1);
        shares.len() == n_pods && is_even && shares.values().sum::<usize>() == self.0.len()
    }

    /// The number of times that shards changed hands since.
    fn moves_since(&self, before: &Shards) -> u64 {
        let terms = self.0.iter();
        terms.map(|(shard, (term, _))| term - before.0[shard].0).sum()
    }

    /// Asserts that there were at most ten percent more moves since than needed.
    pub(crate) fn assert_moves(&self, what: &str, before: &Shards, n_needed: usize) {
        let n_moves = self.moves_since(before);
        eprintln!("{what}: {n_moves} moves of shards, {n_needed} needed");
        let most = f64::from(u32::try_from(n_needed).unwrap()) * MOVES_RATIO_MAX;
        let is_enough = f64::from(u32::try_from(n_moves).unwrap()) <= most;
        assert!(is_enough, "{what}: {n_moves} moves, {n_needed} needed");
    }

    /// The number of moves from one replica with all shards to equal shares of `n_pods` replicas.
    pub(crate) fn moves_needed_to_share(&self, n_pods: usize) -> usize {
        self.0.len() - self.0.len().div_ceil(n_pods)
    }
}

/// The largest share of each replica during a scale-in.
#[derive(Debug, Default)]
pub(crate) struct Shares {
    most: BTreeMap<String, usize>,
    /// The largest share of the killed replica after its restart.
    most_regained: usize,
}

impl Shares {
    pub(crate) fn note(&mut self, state: &State, kill: Option<&Kill>) {
        for (pod, share) in &state.shares {
            let most = match kill {
                Some(kill) if kill.pod == *pod && kill.at.elapsed() > RESTART_MAX => &mut self.most_regained,
                _ => self.most.entry(pod.clone()).or_default(),
            };
            *most = (*most).max(*share);
        }
    }

    /// The number of needed moves: the shards of each replica that left, and the shards of the killed replica. If the
    /// killed replica left too, the shards that it regained count again.
    pub(crate) fn moves_needed(&self, kill: &Kill, stay: &[String]) -> usize {
        eprintln!("killed a replica with {} shards", self.most[&kill.pod]);
        let left = self.most.iter().filter(|(pod, _)| !stay.contains(pod));
        let needed: usize = left.map(|(_, share)| share).sum();
        if stay.contains(&kill.pod) {
            needed + self.most[&kill.pod]
        } else {
            needed + self.most_regained
        }
    }
}

impl Cluster {
    /// The present Leases of shards.
    pub(crate) fn shards(&self) -> Shards {
        Shards::of(&self.list(&["leases", "--namespace", NAMESPACE]))
    }

    /// Waits until this many replicas hold equal shares.
    pub(crate) fn wait_until_even(&self, n_pods: usize) -> Shards {
        wait_for("equal shares", || {
            let shards = self.shards();
            shards.are_even(n_pods).then_some(shards)
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use serde_json::json;

    use super::*;

    /// Four shards with these terms and Pods.
    fn shards(held: [(u64, &str); 4]) -> Shards {
        let lease = |(number, (term, pod)): (usize, &(u64, &str))| {
            let holder = if pod.is_empty() {
                String::new()
            } else {
                format!("{pod}/uid/1")
            };
            json!({
                "metadata": {"name": format!("cronwheel-shard-{number}")},
                "spec": {"holderIdentity": holder, "leaseTransitions": term},
            })
        };
        let mut leases: Vec<Value> = held.iter().enumerate().map(lease).collect();
        leases.push(json!({"metadata": {"name": "cronwheel-member-a"}, "spec": {"holderIdentity": "a/uid/1"}}));
        Shards::of(&leases)
    }

    #[test]
    fn shares_are_even_if_they_differ_by_at_most_one_shard() {
        let even = shards([(1, "a"), (1, "a"), (1, "b"), (1, "c")]);
        assert_eq!(even.shares(), BTreeMap::from([("a", 2), ("b", 1), ("c", 1)]));
        assert!(even.are_even(3) && !even.are_even(2));
        assert!(!shards([(1, "a"), (1, "a"), (1, "a"), (1, "b")]).are_even(2));
        assert!(!shards([(1, "a"), (1, "a"), (1, "b"), (1, "")]).are_even(2));
    }

    #[test]
    fn every_new_term_is_a_move() {
        let before = shards([(1, "a"), (1, "a"), (1, "a"), (1, "a")]);
        let after = shards([(1, "a"), (1, "a"), (2, "b"), (4, "b")]);
        assert_eq!(before.moves_needed_to_share(2), 2);
        assert_eq!(before.moves_needed_to_share(3), 2);
        assert_eq!(after.moves_since(&before), 4);
        after.assert_moves("", &before, 4);
    }

    #[test]
    #[should_panic(expected = "4 moves, 3 needed")]
    fn too_many_moves_fail_the_assertion() {
        let before = shards([(1, "a"), (1, "a"), (1, "a"), (1, "a")]);
        shards([(1, "a"), (1, "a"), (2, "b"), (4, "b")]).assert_moves("", &before, 3);
    }

    #[test]
    fn shards_of_leaving_and_killed_replicas_must_move() {
        let state = |held: &[(&str, usize)]| State {
            n_replicas: 4,
            shares: held.iter().map(|(pod, share)| ((*pod).to_owned(), *share)).collect(),
        };
        let kill = Kill {
            at: Instant::now().checked_sub(2 * RESTART_MAX).unwrap(),
            pod: "c".to_owned(),
        };
        let mut shares = Shares::default();
        shares.note(&state(&[("a", 12), ("b", 13), ("c", 14)]), None);
        shares.note(&state(&[("a", 16), ("b", 1), ("c", 16)]), None);
        shares.note(&state(&[("a", 22), ("c", 2)]), Some(&kill));
        let needed = |stay: &[&str]| {
            let stay: Vec<String> = stay.iter().map(|&pod| pod.to_owned()).collect();
            shares.moves_needed(&kill, &stay)
        };
        assert_eq!(needed(&["a"]), 13 + 16 + 2, "b and c left");
        assert_eq!(needed(&["a", "c"]), 13 + 16, "c was killed and stays");
    }
}
