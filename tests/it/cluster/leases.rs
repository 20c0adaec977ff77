//! Leases as the in-memory API is asked for them, over the very connection that a run has for them.

use cronwheel::cluster::lease_client;
use kube::config::{KubeConfigOptions, Kubeconfig};

use super::kubernetes::Namespace;
use crate::leases::told;

/// A client for Leases, as an administrator.
async fn client(namespace: &Namespace) -> kube::Client {
    let kubeconfig = Kubeconfig::read_from(&namespace.control_plane.admin_kubeconfig).expect("a kubeconfig");
    let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
    lease_client(&config.expect("a configuration")).expect("a client")
}

macro_rules! as_in_memory {
    ($($case:ident),* $(,)?) => {$(
        pub(super) async fn $case(namespace: Namespace) {
            told::$case(client(&namespace).await, &namespace.name).await;
        }
    )*};
}

as_in_memory![
    a_lease_is_made_renewed_and_read,
    a_write_based_on_what_was_is_a_conflict,
    what_a_server_cannot_store_is_refused,
    a_list_and_a_watch_from_it_miss_nothing,
    a_lease_without_our_label_is_gone_until_it_is_written_again,
    whoever_comes_first_makes_the_installation,
    an_installation_that_cannot_be_is_told_with_the_fix,
];
