//! Tests of request bodies, of the classification of answers, and of decoding, without a server.

use http::StatusCode;
use serde_json::{Value, json};

use super::*;
use crate::{
    coordination::{InstallationName, LEASE_LABEL, LeaseNames},
    shard::{ShardId, Term},
};

const SHARD: LeaseKey = LeaseKey::Shard(ShardId(7));

fn names() -> LeaseNames {
    LeaseNames {
        installation: InstallationName::default(),
        count: ShardCount::default(),
    }
}

fn member() -> LeaseKey {
    LeaseKey::Member("uid-1".into())
}

fn owner() -> OwnerPod {
    OwnerPod {
        name: "cronwheel-0".into(),
        uid: "uid-1".into(),
    }
}

fn now() -> Timestamp {
    "2026-03-01T10:00:00.1234567Z".parse().unwrap()
}

fn answer(code: u16, body: &Value) -> RawAnswer {
    RawAnswer {
        status: StatusCode::from_u16(code).unwrap(),
        retry_after: None,
        server_date: None,
        body: body.to_string().into(),
    }
}

fn status(code: u16, reason: &str) -> RawAnswer {
    let body = json!({"kind": "Status", "status": "Failure", "reason": reason, "message": "no", "code": code});
    answer(code, &body)
}

fn parsed(body: &[u8]) -> Value {
    serde_json::from_slice(body).unwrap()
}

#[test]
fn only_a_member_lease_is_owned_by_its_pod() {
    let write = LeaseWrite {
        holder: Some("cronwheel-0/uid-1/0000000000000001".into()),
        duration_secs: Some(10),
        is_renewal: true,
        annotations: [
            ("cronwheel.dev/accepts", Some("now".into())),
            ("cronwheel.dev/plan", None),
        ]
        .into(),
        labels: [("cronwheel.dev/acts", Some("true")), ("cronwheel.dev/other", None)].into(),
        ..LeaseWrite::to(member())
    };
    let lease = json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {
            "name": "cronwheel-member-uid-1",
            "labels": {LEASE_LABEL: "cronwheel", "cronwheel.dev/acts": "true"},
            "annotations": {"cronwheel.dev/accepts": "now"},
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "cronwheel-0", "uid": "uid-1"}],
        },
        "spec": {
            "holderIdentity": "cronwheel-0/uid-1/0000000000000001", "leaseDurationSeconds": 10,
            "renewTime": "2026-03-01T10:00:00.123456Z",
        },
    });
    assert_eq!(parsed(&body::create(&write, &names(), Some(&owner()), now())), lease);
    let shard = LeaseWrite { key: SHARD, ..write };
    for (write, owner) in [(&shard, Some(owner())), (&LeaseWrite::to(member()), None)] {
        let lease = parsed(&body::create(write, &names(), owner.as_ref(), now()));
        assert_eq!(lease["metadata"]["ownerReferences"], Value::Null, "{lease}");
    }
}

#[test]
fn a_lease_patch_has_the_changes_and_a_resource_version() {
    let version = ResourceVersion(12);
    let label = json!({LEASE_LABEL: "cronwheel"});
    assert_eq!(
        parsed(&body::patch(&LeaseWrite::to(SHARD), &names(), version, now())),
        json!({"metadata": {"resourceVersion": "12", "labels": label}})
    );
    let write = LeaseWrite {
        holder: Some("".into()),
        term: Some(Term(4)),
        is_acquisition: true,
        annotations: [
            ("cronwheel.dev/fired-through", None),
            ("cronwheel.dev/written-through", Some("a\"b".into())),
        ]
        .into(),
        labels: [("cronwheel.dev/acts", None)].into(),
        ..LeaseWrite::to(SHARD)
    };
    assert_eq!(
        parsed(&body::patch(&write, &names(), version, now())),
        json!({
            "metadata": {
                "resourceVersion": "12", "labels": {LEASE_LABEL: "cronwheel", "cronwheel.dev/acts": null},
                "annotations": {"cronwheel.dev/fired-through": null, "cronwheel.dev/written-through": "a\"b"},
            },
            "spec": {"holderIdentity": "", "leaseTransitions": 4, "acquireTime": "2026-03-01T10:00:00.123456Z"},
        })
    );
    assert_eq!(
        parsed(&body::delete(version))["preconditions"],
        json!({"resourceVersion": "12"})
    );
}

#[test]
fn a_lease_write_is_classified_by_the_status_of_the_api_server() {
    use LeaseAnswer::{Conflict, Exists, Missing, Refused, Unknown};
    let version = ResourceVersion(3);
    let (create, patch, delete) = (RequestKind::Create, RequestKind::Patch, RequestKind::Delete(version));
    let page = |code| answer(code, &Value::from("<html>gateway</html>"));
    for (raw_answer, kind, meaning) in [
        (status(409, "AlreadyExists"), create, Exists),
        (status(409, "Conflict"), create, Unknown),
        (status(404, "NotFound"), create, Refused),
        (status(409, "Conflict"), patch, Conflict),
        (status(409, "Conflict"), delete, Conflict),
        (status(404, "NotFound"), patch, Missing),
        (status(404, "NotFound"), delete, Missing),
        (page(404), patch, Unknown),
        (page(409), patch, Unknown),
        (status(400, "BadRequest"), patch, Refused),
        (status(401, "Unauthorized"), patch, Refused),
        (status(403, "Forbidden"), create, Refused),
        (status(403, "Forbidden"), patch, Refused),
        (status(422, "Invalid"), patch, Refused),
        (status(429, "TooManyRequests"), create, Unknown),
        (status(429, "TooManyRequests"), patch, Unknown),
        (status(500, "InternalError"), patch, Unknown),
        (status(503, "ServiceUnavailable"), delete, Unknown),
        (status(504, "Timeout"), create, Unknown),
        (answer(200, &json!({"kind": "Lease"})), patch, Unknown),
        (answer(307, &Value::Null), patch, Unknown),
    ] {
        let (classified, message) = answer::classify(&raw_answer, kind, &SHARD);
        assert_eq!(classified, meaning, "{raw_answer:?} {kind:?}");
        assert!(message.is_some_and(|message| !message.is_empty()), "{raw_answer:?}");
    }
    let gone = answer::classify(&answer(200, &json!({"kind": "Status"})), delete, &SHARD);
    let (LeaseAnswer::Done(record), None) = gone else {
        panic!("{gone:?}");
    };
    assert_eq!((record.key, record.resource_version), (SHARD, version));
}

#[test]
fn only_a_not_found_status_means_that_a_lease_is_missing() {
    for (raw_answer, meaning) in [
        (status(404, "NotFound"), LeaseAnswer::Missing),
        (answer(404, &Value::from("nothing here")), LeaseAnswer::Unknown),
        (status(403, "Forbidden"), LeaseAnswer::Refused),
        (status(500, "InternalError"), LeaseAnswer::Unknown),
        (answer(200, &json!({})), LeaseAnswer::Unknown),
    ] {
        let (classified, _) = answer::classify(&raw_answer, RequestKind::Read, &SHARD);
        assert_eq!(classified, meaning, "{raw_answer:?}");
    }
}

#[test]
fn a_lease_is_decoded_with_our_annotations_only() {
    let lease = json!({
        "kind": "Lease", "apiVersion": "coordination.k8s.io/v1",
        "metadata": {
            "name": "cronwheel-shard-8-7", "resourceVersion": "41", "uid": "x", "managedFields": [{"manager": "a"}],
            "annotations": {"cronwheel.dev/renewal": "2", "example.org/note": "\u{e9}\n"},
        },
        "spec": {
            "holderIdentity": "a/b/0000000000000001", "leaseDurationSeconds": 10, "leaseTransitions": 3,
            "acquireTime": "2026-03-01T10:00:00.000000Z", "renewTime": null, "preferredHolder": "x",
        },
    });
    let record = object::record(lease.to_string().as_bytes(), &SHARD).unwrap();
    assert_eq!(
        record,
        LeaseRecord {
            key: SHARD,
            resource_version: ResourceVersion(41),
            holder: "a/b/0000000000000001".into(),
            duration_secs: 10,
            transitions: 3,
            renewed_at: None,
            acquired_at: Some("2026-03-01T10:00:00Z".parse().unwrap()),
            annotations: [("cronwheel.dev/renewal".into(), "2".into())].into(),
        }
    );
    let bare = json!({"metadata": {"name": "cronwheel-shard-8-7", "resourceVersion": "41", "annotations": null}});
    let record = object::record(bare.to_string().as_bytes(), &SHARD).unwrap();
    assert_eq!((&*record.holder, record.duration_secs, record.transitions), ("", 0, 0));
    let odd = json!({"metadata": {"resourceVersion": "x"}});
    let error = object::record(odd.to_string().as_bytes(), &SHARD).unwrap_err();
    assert_eq!(error.to_string(), "metadata.resourceVersion is \"x\"");
}

#[test]
fn a_page_of_leases_skips_foreign_leases() {
    let lease = |name: &str| json!({"metadata": {"name": name, "resourceVersion": "5"}, "spec": {}});
    let whole = json!({
        "metadata": {"resourceVersion": "9", "continue": "token"},
        "items": [
            lease("cronwheel-member-uid-1"), lease("cronwheel-shard-8-7"), lease("cronwheel-shard-4-7"), lease("other"),
        ],
    });
    let page = object::page(whole.to_string().as_bytes()).unwrap();
    let records = object::records(page.leases, &names()).unwrap();
    let keys: Vec<_> = records.into_iter().map(|record| record.key).collect();
    assert_eq!(keys, [member(), SHARD]);
    assert_eq!(
        (page.resource_version, page.next.as_deref()),
        (ResourceVersion(9), Some("token"))
    );
    let last = json!({"metadata": {"resourceVersion": "9", "continue": ""}, "items": null});
    let page = object::page(last.to_string().as_bytes()).unwrap();
    assert!(page.leases.is_empty() && page.next.is_none());
}
