//! What a replica must be told before it shares CronJobs with others.

use clap::Parser;

use super::*;
use crate::runtime::args::{Cli, Command};

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

fn settings(flags: &[&str], own_namespace: Option<&str>) -> Result<Option<ShardingSettings>, ShardingError> {
    ShardingSettings::from_args(&args(flags).unwrap(), &kube(), own_namespace)
}

#[test]
fn one_replica_needs_no_configuration_of_shards() {
    assert!(settings(&[], Some("kube-system")).unwrap().is_none());
}

#[test]
fn a_count_that_cannot_be_is_refused_with_one_that_can() {
    for (count, fix) in [("100", "128"), ("8", "16"), ("2000", "1024"), ("some", "256")] {
        let refusal = args(&["--shards", count]).unwrap_err();
        assert!(refusal.contains("--shards") && refusal.contains(fix), "{refusal}");
    }
}

#[test]
fn who_this_replica_is_must_be_known() {
    let error = settings(&["--shards", "16", "--pod-name", "a"], None).unwrap_err();
    assert_eq!(
        error.to_string(),
        "--shards: --pod-uid is not known; give it, or set POD_UID from the pod's own fields (`valueFrom.fieldRef`: \
         metadata.uid)"
    );
    for (flag, values) in [("--pod-name", ["", "a/b"]), ("--pod-uid", ["", "a/b"])] {
        for value in values {
            let other = if flag == "--pod-uid" { "--pod-name" } else { "--pod-uid" };
            let refused = settings(&["--shards", "16", flag, value, other, "x"], None);
            assert_eq!(refused.err(), Some(ShardingError::Text { flag }));
        }
    }
}

#[test]
fn a_lease_is_owned_by_a_pod_beside_it_and_by_no_other() {
    let with = |extra: &[&str], own_namespace| {
        let flags: Vec<&str> = ["--shards", "64"].iter().chain(&POD).chain(extra).copied().collect();
        let settings = settings(&flags, own_namespace).unwrap().unwrap();
        (settings.namespace.to_string(), settings.owner.is_some())
    };
    assert_eq!(with(&[], Some("kube-system")), ("kube-system".to_owned(), true));
    assert_eq!(with(&[], None), ("kube-system".to_owned(), false));
    let elsewhere = with(&["--lease-namespace", "elsewhere"], Some("kube-system"));
    assert_eq!(elsewhere, ("elsewhere".to_owned(), false));
}

#[test]
fn each_life_has_a_number_of_its_own() {
    let flags: Vec<&str> = ["--shards", "64"].iter().chain(&POD).copied().collect();
    let settings = settings(&flags, None).unwrap().unwrap();
    let agreed = MemberSettings::of(&[crate::state::Scope::Cluster], "UTC");
    let [first, second] = [settings.election(agreed.clone()), settings.election(agreed)];
    assert_ne!(first.incarnation, second.incarnation);
}
