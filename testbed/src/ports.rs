//! The ports of a control plane.
//!
//! They are below the kernel's range for outgoing connections. The port of a stopped API server must stay free until
//! its restart, and a client that connects in the meantime must not connect to itself.

use std::{collections::BTreeSet, net::TcpListener, ops::Range};

use serde::{Deserialize, Serialize};

/// Below 32768, where the ephemeral port range of Linux starts.
const PORT_RANGE: Range<u16> = 20_000..30_000;

/// One port for each listener.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Ports {
    pub(crate) etcd_client: u16,
    pub(crate) etcd_peer: u16,
    pub(crate) api_server: u16,
    pub(crate) controller_manager: u16,
    pub(crate) reference: u16,
    #[serde(default)]
    pub(crate) scheduler: u16,
}

impl Ports {
    /// Picks free ports that no other control plane has. The search starts at an offset that depends on `seed`. Returns
    /// `None` if too few ports are left.
    pub(crate) fn choose(taken: &BTreeSet<u16>, seed: u32) -> Option<Ports> {
        Ports::choose_by(taken, seed, |port| TcpListener::bind(("127.0.0.1", port)).is_ok())
    }

    fn choose_by(taken: &BTreeSet<u16>, seed: u32, is_free: impl Fn(u16) -> bool) -> Option<Ports> {
        let n_ports = u32::from(PORT_RANGE.end - PORT_RANGE.start);
        let mut free = (0..n_ports)
            // Seeds are ten ports apart, so that control planes that start at the same time rarely collide.
            .filter_map(|step| u16::try_from((seed.wrapping_mul(10) + step) % n_ports).ok())
            .map(|offset| PORT_RANGE.start + offset)
            .filter(|port| !taken.contains(port) && is_free(*port));
        Some(Ports {
            etcd_client: free.next()?,
            etcd_peer: free.next()?,
            api_server: free.next()?,
            controller_manager: free.next()?,
            reference: free.next()?,
            scheduler: free.next()?,
        })
    }

    pub(crate) fn all(&self) -> [u16; 6] {
        [
            self.etcd_client,
            self.etcd_peer,
            self.api_server,
            self.controller_manager,
            self.reference,
            self.scheduler,
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_distinct_and_neither_taken_nor_in_use() {
        let taken = BTreeSet::from([20_010, 20_012]);
        let ports = Ports::choose_by(&taken, 1, |port| port != 20_013).unwrap();
        assert_eq!(ports.all(), [20_011, 20_014, 20_015, 20_016, 20_017, 20_018]);
    }

    #[test]
    fn the_search_wraps_around_and_stays_in_the_range() {
        for seed in [0, 999, 1_000, u32::MAX / 10, u32::MAX] {
            let ports = Ports::choose_by(&BTreeSet::new(), seed, |_| true).unwrap();
            assert!(
                ports.all().iter().all(|port| PORT_RANGE.contains(port)),
                "seed {seed}: {ports:?}"
            );
        }
    }

    #[test]
    fn no_ports_are_chosen_if_none_is_free() {
        assert_eq!(Ports::choose_by(&BTreeSet::new(), 7, |_| false), None);
    }
}
