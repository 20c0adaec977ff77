//! The built-in controller and ours on the same objects at the same time of their clocks, compared object by object.
//!
//! Each world of `tests/worlds` is made twice, in two namespaces, and each controller works in one of them. What they
//! leave must be equal, but for differences that the world names, each with the rule under which `docs/differences.md` lists it.
//! A few worlds are compared unless `CRONWHEEL_PARITY=all` or `CRONWHEEL_PARITY=<name>`; `make parity` compares all.

mod contender;
mod snapshot;
mod world;

use std::{
    collections::BTreeSet,
    path::{Path, PathBuf},
    time::Duration,
};

use futures::stream::{self, StreamExt as _};
use jiff::Timestamp;
use kube::Client;
use testbed::{Options, Testbed};

use self::{
    contender::Contender,
    snapshot::Snapshot,
    world::{Place, World},
};
use super::{ONE_CONTROL_PLANE, kubernetes::connect, rules};

/// Two processes each.
const N_AT_ONCE: usize = 4;

/// How long the two may take to agree once the world's own time is over.
const AGREEMENT_MAX: Duration = Duration::from_secs(10);
const POLL: Duration = Duration::from_millis(500);

/// The accounts of both, and who makes the worlds.
struct Stage {
    admin: Client,
    our_kubeconfig: PathBuf,
    reference: PathBuf,
    reference_kubeconfig: PathBuf,
    /// Of etcd, without the protocol.
    etcd_address: String,
}

#[test]
fn worlds_end_as_under_the_built_in_controller() {
    let _alone = ONE_CONTROL_PLANE.lock();
    let selection = std::env::var("CRONWHEEL_PARITY").unwrap_or_default();
    let mut worlds = World::read_all();
    worlds.retain(|world| match selection.as_str() {
        "" => world.is_short,
        "all" => true,
        name => world.name.contains(name),
    });
    assert!(!worlds.is_empty(), "no world is named {selection}");
    let testbed = Testbed::start(Options::default()).expect("a control plane");
    let account = |name, rules: &str| testbed.service_account_kubeconfig("kube-system", name, rules);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let findings: Vec<String> = runtime.expect("a runtime").block_on(async {
        let stage = Stage {
            admin: connect(&testbed.kubeconfig()).await,
            our_kubeconfig: account("cronwheel", &rules()).expect("an account"),
            reference: testbed::find_or_build_clocked_reference().expect("the built-in controller"),
            etcd_address: testbed.etcd_url().trim_start_matches("http://").to_owned(),
            // Its role comes with Kubernetes.
            reference_kubeconfig: account("cronjob-controller", "").expect("an account"),
        };
        let compared = worlds.iter().map(|world| compare(&stage, world));
        stream::iter(compared).buffer_unordered(N_AT_ONCE).concat().await
    });
    testbed.stop().expect("everything stops");
    eprintln!("{} worlds compared", worlds.len());
    assert!(
        findings.is_empty(),
        "{} findings:\n{}",
        findings.len(),
        findings.join("\n")
    );
}

/// What is not as it should be in one world.
async fn compare(stage: &Stage, world: &World) -> Vec<String> {
    let begun = Timestamp::now();
    let places = ["theirs", "ours"].map(|whose| Place::new(&stage.admin, world, whose));
    for place in &places {
        place.make(world, &stage.etcd_address).await;
    }
    // One offset for both: they see the same time.
    let offset = world.from.duration_since(Timestamp::now());
    let contenders = [
        Contender::reference(
            &stage.reference,
            &stage.reference_kubeconfig,
            &places[0].namespace,
            offset,
        ),
        Contender::ours(&stage.our_kubeconfig, &places[1].namespace, offset),
    ];
    world.live(&places).await;
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
    let verdict = if findings.is_empty() { "ok    " } else { "DIFFER" };
    eprintln!("{verdict}  {}: {} ({left})", world.name, world.about);
    findings
        .into_iter()
        .map(|finding| format!("{}: {finding}", world.name))
        .collect()
}

/// The rules that have a row in the table of differences.
fn listed_rules() -> BTreeSet<String> {
    let page = include_str!("../../../docs/differences.md");
    let table = page.split("\n## ").find(|part| part.starts_with("All differences"));
    let rows = table.expect("a table").lines().filter(|line| line.starts_with("| B-"));
    let rules = rows
        .filter_map(|row| row.split('|').nth(1))
        .flat_map(|cell| cell.split(','));
    rules.map(|rule| rule.trim().to_owned()).collect()
}

#[test]
fn every_difference_of_a_world_is_a_listed_one() {
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

#[test]
fn worlds_are_enough_and_each_is_whole() {
    let worlds = World::read_all();
    assert!(worlds.len() >= 25, "{} worlds", worlds.len());
    assert!(worlds.iter().filter(|world| world.is_short).count() >= 6);
    assert!(Path::new(world::FOLDER).is_dir());
}
