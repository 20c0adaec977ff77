//! Compares the built-in controller with ours, object by object, on the same objects and at the same time of their
//! clocks.
//!
//! Each world of `tests/worlds` is created in two namespaces, with one controller in each. The results must be equal,
//! except for differences that the world declares. Each of these refers to the rule under which
//! `docs/reference/differences.md` lists it. By default a few worlds are compared; `make parity` compares all.

mod contender;
mod snapshot;
mod world;

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    time::Duration,
};

use jiff::Timestamp;
use kube::Client;
use libtest_mimic::{Failed, Trial};
use testbed::Kubectl;

use self::{
    contender::Contender,
    snapshot::Snapshot,
    world::{Place, World},
};
use crate::{
    account::lease_role_file,
    block_on, check,
    control_plane::{Access, Purpose, share},
    kubernetes::connect,
};

/// The duration of a world, plus the time to create it and to agree.
const DURATION_MAX: Duration = Duration::from_mins(10);

/// The time for the two results to agree after the duration of the world.
const AGREEMENT_MAX: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(500);

/// The accounts of both controllers, and of the administrator who creates the worlds.
struct Setup {
    admin: Client,
    our_kubeconfig: PathBuf,
    reference: PathBuf,
    reference_kubeconfig: PathBuf,
    /// The address of etcd, without the scheme.
    etcd_address: String,
    kubectl: Kubectl,
}

impl Setup {
    async fn on(access: &Access) -> Setup {
        Setup {
            admin: connect(&access.admin_kubeconfig).await,
            our_kubeconfig: access.controller_kubeconfig.clone(),
            reference: testbed::find_or_build_clocked_reference().expect("the built-in controller"),
            etcd_address: access.etcd_url.trim_start_matches("http://").to_owned(),
            reference_kubeconfig: access.reference_kubeconfig.clone(),
            kubectl: access.kubectl.clone(),
        }
    }

    /// Permits our controller to use Leases in this namespace.
    fn permit_leases(&self, namespace: &str) {
        let role = lease_role_file(&self.our_kubeconfig, namespace);
        let applied = self.kubectl.run(&["apply", "-f", role.to_str().expect("a path")]);
        applied.expect("kubectl says yes");
    }
}

pub(super) fn trials() -> impl Iterator<Item = Trial> {
    let checks = [
        check(
            "parity::every_difference_of_a_world_is_listed",
            every_difference_of_a_world_is_listed,
        ),
        check(
            "parity::there_are_enough_worlds_and_each_is_readable",
            there_are_enough_worlds_and_each_is_readable,
        ),
        check(
            "parity::unlisted_and_vanished_differences_are_findings",
            world::unlisted_and_vanished_differences_are_findings,
        ),
        check(
            "parity::snapshots_differ_only_in_relevant_fields",
            snapshot::snapshots_differ_only_in_relevant_fields,
        ),
    ];
    let worlds = World::read_all().into_iter().map(|world| {
        let (name, is_long) = (format!("parity::{}", world.name), !world.is_short);
        Trial::test(name, move || ends_as_under_the_built_in_controller(&world)).with_ignored_flag(is_long)
    });
    worlds.chain(checks)
}

fn ends_as_under_the_built_in_controller(world: &World) -> Result<(), Failed> {
    let mut findings = Vec::new();
    share(Purpose::Parity, |access| {
        block_on(DURATION_MAX, async {
            findings = compare(&Setup::on(access).await, world).await;
        });
    });
    if findings.is_empty() {
        Ok(())
    } else {
        Err(format!(
            "{} ({} findings):\n{}",
            world.about,
            findings.len(),
            findings.join("\n")
        )
        .into())
    }
}

/// Returns the unexpected findings of one world.
async fn compare(setup: &Setup, world: &World) -> Vec<String> {
    let begun = Timestamp::now();
    let places = ["theirs", "ours"].map(|whose| Place::new(&setup.admin, world, whose));
    for place in &places {
        place.create(world, &setup.etcd_address).await;
    }
    setup.permit_leases(&places[1].namespace);
    // Both have the same offset, so their clocks agree.
    let offset = world.from.duration_since(Timestamp::now());
    let contenders = [
        Contender::reference(
            &setup.reference,
            &setup.reference_kubeconfig,
            &places[0].namespace,
            offset,
        ),
        Contender::ours(&setup.our_kubeconfig, &places[1].namespace, offset),
    ];
    world.run(&places).await;
    let limit = tokio::time::Instant::now() + AGREEMENT_MAX;
    let (findings, left) = loop {
        let theirs = Snapshot::take(&places[0], begun).await;
        let ours = Snapshot::take(&places[1], begun).await;
        let findings = world.unexpected(&theirs.differences(&ours));
        if findings.is_empty() || tokio::time::Instant::now() >= limit {
            break (findings, theirs);
        }
        tokio::time::sleep(POLL).await;
    };
    for contender in contenders {
        contender.end().await;
    }
    if !findings.is_empty() {
        eprintln!("{}: {left}", world.name);
    }
    findings
}

/// The rules with a row in the table of differences.
fn listed_rules() -> BTreeSet<String> {
    let page = include_str!("../../docs/reference/differences.md");
    let table = page.split("\n## ").find(|part| part.starts_with("All differences"));
    let rows = table.expect("a table").lines().filter(|line| line.starts_with("| B-"));
    let rules = rows
        .filter_map(|row| row.split('|').nth(1))
        .flat_map(|cell| cell.split(','));
    rules.map(|rule| rule.trim().to_owned()).collect()
}

fn every_difference_of_a_world_is_listed() {
    let listed = listed_rules();
    assert!(listed.len() > 10, "the table was not understood: {listed:?}");
    for world in World::read_all() {
        for difference in &world.differences {
            assert!(
                listed.contains(&difference.rule),
                "{}: {} is not listed",
                world.name,
                difference.rule
            );
        }
    }
}

fn there_are_enough_worlds_and_each_is_readable() {
    let worlds = World::read_all();
    assert!(worlds.len() >= 25, "{} worlds", worlds.len());
    assert!(worlds.iter().filter(|world| world.is_short).count() >= 6);
    assert!(Path::new(world::FOLDER).is_dir());
}
