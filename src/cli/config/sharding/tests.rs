//! Tests of the configuration that a replica needs before it shares CronJobs with others.

use clap::Parser;

use super::*;
use crate::{
    cli::args::{Cli, Command},
    coordination::MemberSettings,
    shard::{Scope, ShardCount},
};

fn args(flags: &[&str]) -> Result<RunArgs, String> {
    let line = ["cronwheel", "run"].iter().chain(flags);
    let Command::Run(args) = Cli::try_parse_from(line).map_err(|error| error.to_string())?.command else {
        panic!("not run: {flags:?}");
    };
    Ok(args)
}

fn kube() -> kube::Config {
    let mut kube = kube::Config::new("http://127.0.0.1:1".parse().unwrap());
    kube.default_namespace = "kube-system".to_owned();
    kube
}

const POD: [&str; 4] = ["--pod-name", "cronwheel-1", "--pod-uid", "uid-1"];

fn host() -> Surroundings {
    Surroundings::Host {
        name: "worker-1".to_owned(),
    }
}

fn pod() -> Surroundings {
    Surroundings::Pod {
        namespace: "kube-system".to_owned(),
        token: None,
    }
}

fn settings(flags: &[&str], surroundings: &Surroundings) -> Result<Membership, CommandError> {
    membership_of(&args(flags).unwrap(), &kube(), surroundings)
}

#[test]
fn outside_a_pod_the_host_name_is_used_without_an_owner() {
    let shared = settings(&[], &host()).unwrap();
    assert_eq!(
        (shared.shard_count, &*shared.pod_name),
        (ShardCount::default(), "worker-1")
    );
    assert_eq!(shared.owner, None);
}

#[test]
fn in_a_pod_name_and_uid_are_required_for_sharding() {
    let error = settings(&["--pod-name", "a"], &pod()).err().unwrap().to_string();
    for part in ["--pod-name", "--pod-uid", "POD_UID", "metadata.uid", "token"] {
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn pod_name_and_uid_are_refused_if_they_fit_into_no_lease() {
    for (flag, field, values) in [
        ("--pod-name", "metadata.name", vec!["", "a/b"]),
        (
            "--pod-uid",
            "metadata.uid",
            vec!["", "a/b", "Uid", "a_b", "a b", "-a", "a-", &"a".repeat(64)],
        ),
    ] {
        for value in values {
            let refusal = args(&[&format!("{flag}={value}")]).unwrap_err();
            assert!(
                refusal.contains(flag) && refusal.contains(field),
                "{value:?}: {refusal}"
            );
        }
    }
    assert!(args(&["--pod-name=a", "--pod-uid=9f0c1a52-8d7e-4b1f-9a53-6c2d1e0b7f48"]).is_ok());
}

#[test]
fn a_lease_is_owned_only_by_a_pod_in_its_namespace() {
    let with = |extra: &[&str], surroundings: &Surroundings| {
        let flags: Vec<&str> = POD.iter().chain(extra).copied().collect();
        let settings = settings(&flags, surroundings).unwrap();
        (settings.namespace.to_string(), settings.owner.is_some())
    };
    assert_eq!(with(&[], &pod()), ("kube-system".to_owned(), true));
    assert_eq!(with(&[], &host()), ("kube-system".to_owned(), false));
    let elsewhere = with(&["--lease-namespace", "elsewhere"], &pod());
    assert_eq!(elsewhere, ("elsewhere".to_owned(), false));
}

#[test]
fn each_election_has_its_own_incarnation() {
    let settings = settings(&POD, &pod()).unwrap();
    let [first, second] = [0, 1].map(|_| settings.election(MemberSettings::of(&[Scope::Cluster], "UTC")));
    assert_ne!(first.incarnation, second.incarnation);
}
