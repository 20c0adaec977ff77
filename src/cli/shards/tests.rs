//! Tests of listings and changes, from hand-written Leases.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{
    changes, json,
    known::Known,
    listing::Listing,
    text::{self, Form},
};
use crate::{
    coordination::{Installation, LeaseKey, LeaseRecord, annotation},
    kube_api::other_controllers::StatusWriter,
    shard::{CronJobIdentity, ResourceVersion, Scope, ShardCount, ShardId, Uid},
};

const ALL: Form = Form {
    is_wide: false,
    has_all_shards: true,
};

const IN_TROUBLE: Form = Form {
    is_wide: false,
    has_all_shards: false,
};

fn now() -> Timestamp {
    "2026-03-01T10:00:00Z".parse().unwrap()
}

fn ago(seconds: i64) -> Timestamp {
    now() - jiff::SignedDuration::from_secs(seconds)
}

fn holder(pod: &str, incarnation: u8) -> String {
    format!("cronwheel-{pod}/uid-{pod}/{incarnation:016x}")
}

fn record(key: LeaseKey, holder: &str, annotations: &[(&str, &str)]) -> LeaseRecord {
    LeaseRecord {
        key,
        resource_version: ResourceVersion(1),
        holder: holder.into(),
        duration_secs: 10,
        transitions: 3,
        renewed_at: Some(ago(1)),
        acquired_at: Some(ago(400)),
        annotations: annotations
            .iter()
            .map(|(name, text)| ((*name).into(), (*text).into()))
            .collect(),
    }
}

fn member(pod: &str, annotations: &[(&str, &str)]) -> LeaseRecord {
    let key = LeaseKey::Member(format!("uid-{pod}").into());
    record(key, &holder(pod, 1), annotations)
}

fn shard(number: u16, holder: &str, annotations: &[(&str, &str)]) -> LeaseRecord {
    record(LeaseKey::Shard(ShardId(number)), holder, annotations)
}

/// The state of a fleet with 16 shards and these Leases.
fn known(leases: Vec<LeaseRecord>) -> Known {
    let count = ShardCount::new(16).unwrap();
    let mut known = Known::new("kube-system", Installation::of(count));
    known.list_leases(leases);
    known
}

const TAKES: &[(&str, &str)] = &[
    (annotation::ACCEPTS, "now"),
    (annotation::INSTALLATION, "16/fnv1a64-uid-10"),
    (annotation::PROTOCOL, "1"),
    (annotation::REVISION, "7f9c"),
];

fn fleet() -> Vec<LeaseRecord> {
    let mut silent = member("b", TAKES);
    silent.renewed_at = Some(ago(75));
    vec![
        member("a", TAKES),
        silent,
        shard(0, &holder("a", 1), &[]),
        shard(1, &holder("a", 1), &[]),
        shard(
            2,
            &holder("b", 1),
            &[(annotation::FIRED_THROUGH, "2026-03-01T09:58:00Z")],
        ),
        // The former incarnation of this holder.
        shard(3, &holder("b", 0), &[]),
        shard(4, "", &[]),
        shard(5, "somebody", &[]),
    ]
}

fn next_runs() -> BTreeMap<ShardId, Timestamp> {
    [(ShardId(0), "2026-03-01T10:01:00Z".parse().unwrap())].into()
}

/// The lines of a listing up to the seventh shard.
fn first_lines(listing: &str) -> Vec<&str> {
    listing.lines().take(13).collect()
}

#[test]
fn the_listing_has_all_members_and_shards() {
    let listing = text::listing(&known(fleet()), &next_runs(), ALL, now());
    assert_eq!(
        first_lines(&listing),
        [
            "namespace kube-system: 16 shards, 3 of them led; 0 CronJobs, hashed by fnv1a64-uid-10",
            "",
            "MEMBER        SHARDS   RENEWED   STATE",
            "cronwheel-a   2        1s        takes shards",
            "cronwheel-b   1        1m15s     takes shards, silent",
            "",
            "SHARD   BUCKETS    HOLDER        TERM   CRONJOBS   NEXT RUN               AGE     STATE",
            "0       0-63       cronwheel-a   3      0          2026-03-01T10:01:00Z   6m40s   led",
            "1       64-127     cronwheel-a   3      0          -                      6m40s   led",
            "2       128-191    cronwheel-b   3      0          -                      6m40s   led",
            "3       192-255    cronwheel-b   3      0          -                      6m40s   holder gone",
            "4       256-319    -             3      0          -                      6m40s   no holder",
            "5       320-383    somebody      3      0          -                      6m40s   held by no member",
        ]
    );
    assert!(
        listing
            .ends_with("15      960-1023   -             -      0          -                      -       no Lease\n")
    );
}

#[test]
fn without_all_only_shards_in_trouble_are_listed() {
    let of = |known: &Known| text::listing(known, &next_runs(), IN_TROUBLE, now());
    let listing = of(&known(fleet()));
    let lines: Vec<&str> = listing.lines().collect();
    assert!(lines[7].starts_with("3       192-255") && lines[7].ends_with("holder gone"));
    assert_eq!(lines.last(), Some(&"3 other shards are led; --all lists them"));

    let mut all: Vec<LeaseRecord> = (0..16).map(|number| shard(number, &holder("a", 1), &[])).collect();
    all.push(member("a", TAKES));
    let known = known(all);
    known.other_controllers.begin(ago(600), "kube-system/cronwheel".into());
    let cron_job = CronJobIdentity {
        namespace: "shop".into(),
        name: "report".into(),
        uid: Uid::new("1"),
    };
    let writer = StatusWriter::other("kube-controller-manager", ago(30)).unwrap();
    known.other_controllers.note_status_write(&cron_job, &writer);
    let expected = "namespace kube-system: 16 shards, 16 of them led; 0 CronJobs, hashed by fnv1a64-uid-10\n\
        trouble: another controller wrote the status of CronJob shop/report: field manager kube-controller-manager, at \
        2026-03-01T09:59:30Z; only one may run these CronJobs: cronwheel check shows whether the admission policy refuses \
        its writes; without the policy, append ,-cronjob-controller to --controllers of kube-controller-manager (* if \
        it is not set)\n\n\
        MEMBER        SHARDS   RENEWED   STATE\ncronwheel-a   16       1s        takes shards\n\n\
        all 16 shards are led; --all lists them\n";
    assert_eq!(of(&known), expected);
}

#[test]
fn the_listing_has_no_columns_of_cron_jobs_that_it_may_not_read() {
    let known = Known {
        cron_jobs: None,
        ..known(fleet())
    };
    let listing = text::listing(&known, &next_runs(), Form { is_wide: true, ..ALL }, now());
    let lines = first_lines(&listing);
    assert_eq!(
        lines[0],
        "namespace kube-system: 16 shards, 3 of them led; hashed by fnv1a64-uid-10"
    );
    assert!(
        lines[6].starts_with("SHARD   BUCKETS    HOLDER        TERM   AGE     STATE"),
        "{}",
        lines[6]
    );
    assert!(lines[6].ends_with("FIRED THROUGH"), "{}", lines[6]);
}

#[test]
fn a_list_of_one_namespace_removes_no_cron_jobs_of_another() {
    let mut known = known(Vec::new());
    let cron_jobs = known.cron_jobs.as_mut().unwrap();
    for name in ["a", "b"] {
        let scope = cron_jobs.entry(Scope::Namespace(name.into())).or_default();
        scope.put(&Uid::new(name), None);
    }
    let scope = cron_jobs.entry(Scope::Namespace("a".into())).or_default();
    scope.begin_relist();
    scope.put(&Uid::new("c"), None);
    scope.end_relist();
    assert_eq!(known.n_cron_jobs().unwrap().values().sum::<usize>(), 2);
}

#[test]
fn the_members_that_take_shards_determine_the_scopes() {
    let with =
        |pod, accepts, settings| member(pod, &[(annotation::ACCEPTS, accepts), (annotation::SETTINGS, settings)]);
    let check = |leases: Vec<LeaseRecord>, expected: &[&str]| {
        let expected = expected.iter().map(|name| Scope::Namespace((*name).into())).collect();
        assert_eq!(known(leases).scopes(), expected);
    };
    let a = || with("a", "now", "time-zone=UTC namespaces=a,b");
    let waits = || with("b", "no", "time-zone=UTC namespaces=c");
    check(vec![a(), waits()], &["a", "b"]);
    check(
        vec![waits(), with("c", "soon", "time-zone=UTC namespaces=d")],
        &["c", "d"],
    );
    for unknown in [
        vec![],
        vec![a(), member("c", TAKES)],
        vec![a(), with("c", "now", "namespaces=*")],
    ] {
        assert_eq!(known(unknown).scopes(), [Scope::Cluster].into());
    }
}

#[test]
fn the_wide_listing_has_more_columns() {
    let form = Form { is_wide: true, ..ALL };
    let listing = text::listing(&known(fleet()), &next_runs(), form, now());
    let lines = first_lines(&listing);
    assert!(lines[2].ends_with("STATE                  INCARNATION        REVISION   PROTOCOL   POD UID"));
    assert!(
        lines[3].ends_with("takes shards           0000000000000001   7f9c       1          uid-a"),
        "{}",
        lines[3]
    );
    assert!(lines[6].ends_with("STATE               INCARNATION        FIRED THROUGH"));
    assert!(lines[8].ends_with("led                 0000000000000001   -"));
    assert!(lines[9].ends_with("led                 0000000000000001   2026-03-01T09:58:00Z"));
}

#[test]
fn a_member_without_shards_shows_the_reason() {
    let newer = [(annotation::PROTOCOL, "2")];
    let mut left = member("f", TAKES);
    left.holder = "".into();
    let mut evicted = member("g", &[(annotation::EVICTED_BY, "cronwheel-a")]);
    evicted.holder = "".into();
    let mut usurped = member("h", TAKES);
    usurped.holder = "kubectl".into();
    let drains = [TAKES, &[(annotation::DRAINING, "1")]].concat();
    let starts = [(annotation::ACCEPTS, "soon")];
    let declines = [TAKES[1], TAKES[2]];
    let members = vec![
        member("a", TAKES),
        member("c", &newer),
        member("d", &drains),
        member("e", &starts),
        left,
        evicted,
        usurped,
        member("i", &declines),
    ];
    let listing = text::listing(&known(members), &next_runs(), ALL, now());
    let states: Vec<&str> = listing.lines().skip(3).take(8).map(|line| line[33..].trim()).collect();
    assert_eq!(
        states,
        [
            "takes shards",
            "takes none: others follow protocol 1",
            "drains",
            "starts",
            "left",
            "evicted by cronwheel-a",
            "its Lease is held by kubectl",
            "takes none: its /readyz says why",
        ],
        "{listing}"
    );
}

#[test]
fn a_waiting_member_shows_whom_it_waits_for() {
    let with = |settings| [TAKES, &[(annotation::SETTINGS, settings)]].concat();
    let waits = [(annotation::SETTINGS, "time-zone=UTC namespaces=b"), TAKES[1], TAKES[2]];
    let members = vec![member("a", &with("time-zone=UTC namespaces=a")), member("b", &waits)];
    let listing = text::listing(&known(members), &next_runs(), ALL, now());
    let lines = listing.lines().skip(3).take(2);
    let states: Vec<&str> = lines.map(|line| line[33..].trim()).collect();
    assert_eq!(
        states,
        [
            "takes shards",
            "takes none: waits until members with time-zone=UTC namespaces=a stop"
        ]
    );
}

#[test]
fn the_json_document_is_complete() {
    let document = json::document(&known(fleet()), &next_runs(), now());
    let document: Value = serde_json::from_str(&document).unwrap();
    assert_eq!(
        document["installation"],
        json!({"shardCount": 16, "hashScheme": "fnv1a64-uid-10"})
    );
    assert_eq!(
        document["members"][1],
        json!({
            "podUid": "uid-b",
            "holder": {"pod": "cronwheel-b", "podUid": "uid-b", "incarnation": "0000000000000001"},
            "shards": 1, "renewedAt": "2026-03-01T09:58:45Z", "durationSeconds": 10, "isSilent": true,
            "state": "Takes", "message": "takes shards", "isDraining": false, "installation": "16/fnv1a64-uid-10",
            "protocol": 1, "revision": "7f9c",
        })
    );
    assert_eq!(document["shards"].as_array().unwrap().len(), 16);
    assert_eq!(
        document["shards"][2],
        json!({
            "shard": 2, "buckets": {"first": 128, "last": 191}, "hasLease": true, "unknownHolder": null, "isLed": true,
            "holder": {"pod": "cronwheel-b", "podUid": "uid-b", "incarnation": "0000000000000001"},
            "term": 3, "cronJobs": 0, "nextRun": null, "acquiredAt": "2026-03-01T09:53:20Z",
            "firedThrough": "2026-03-01T09:58:00Z",
        })
    );
    assert_eq!(document["shards"][5]["unknownHolder"], "somebody");
    assert_eq!(document["shards"][6]["term"], Value::Null);
}

#[test]
fn renewals_are_not_listed_as_changes() {
    let before = Listing::of(&known(fleet()));
    let mut leases = fleet();
    leases[0].renewed_at = Some(now());
    leases[0].resource_version = ResourceVersion(2);
    assert!(changes::between(&before, &Listing::of(&known(leases.clone()))).is_empty());

    leases[0].annotations.insert(annotation::DRAINING.into(), "1".into());
    leases[2].holder = holder("b", 1).into();
    leases[2].transitions = 4;
    leases.remove(1);
    let changes = changes::between(&before, &Listing::of(&known(leases)));
    let lines: Vec<String> = changes.iter().map(|change| change.to_text(now())).collect();
    assert_eq!(
        lines,
        [
            "2026-03-01T10:00:00.000Z  member cronwheel-a: state takes shards -> drains\n",
            "2026-03-01T10:00:00.000Z  member cronwheel-b: state takes shards -> -; incarnation 0000000000000001 -> -; \
             revision 7f9c -> -\n",
            "2026-03-01T10:00:00.000Z  shard 0: holder cronwheel-a -> cronwheel-b; term 3 -> 4; state led -> holder gone\n",
            "2026-03-01T10:00:00.000Z  shard 2: state led -> holder gone\n",
        ]
    );
    let line: Value = serde_json::from_str(&changes[0].to_json(now())).unwrap();
    assert_eq!(
        line,
        json!({"at": "2026-03-01T10:00:00.000Z", "kind": "member", "name": "cronwheel-a",
            "changes": [{"field": "state", "from": "takes shards", "to": "drains"}]})
    );
}

#[test]
fn an_age_is_one_word_of_at_most_two_units() {
    for (milliseconds, expected) in [
        (-5_000, "0s"),
        (0, "0s"),
        (1_100, "1s"),
        (119_000, "1m59s"),
        (660_000, "11m"),
        (3 * 3_600_000 + 120_000, "3h2m"),
        (50 * 3_600_000, "2d2h"),
    ] {
        let mut member = member("a", TAKES);
        member.renewed_at = Some(now() - jiff::SignedDuration::from_millis(milliseconds));
        let listing = text::listing(&known(vec![member]), &next_runs(), IN_TROUBLE, now());
        let line = format!("cronwheel-a   0        {expected} ");
        assert!(listing.contains(&line), "{listing}");
    }
}
