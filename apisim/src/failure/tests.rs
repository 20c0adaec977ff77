//! The `Status` of invalid objects and of refused patches.

use super::*;
use crate::{Checks, objects::validation};

#[test]
fn invalid_status_names_each_cause_once() {
    let lease = json!({"metadata": {"name": "a", "namespace": "b"}, "spec": {"leaseDurationSeconds": 0, "leaseTransitions": -1}});
    let mut errors = validation::create(Resource::Lease, &lease, &Checks::default());
    let one = "spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0";
    let two = "spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0";
    errors.push(errors[0].clone());
    let expected = format!("Lease.coordination.k8s.io \"a\" is invalid: [{one}, {two}]");
    assert_eq!(Failure::invalid(Resource::Lease, "a", &errors).message, expected);
    errors.truncate(1);
    let status = json!({
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": format!("Lease.coordination.k8s.io \"a\" is invalid: {one}"),
        "reason": "Invalid",
        "details": {"name": "a", "group": "coordination.k8s.io", "kind": "Lease", "causes": [{
            "reason": "FieldValueInvalid",
            "message": "Invalid value: 0: must be greater than 0",
            "field": "spec.leaseDurationSeconds",
        }]},
        "code": 422,
    });
    assert_eq!(Failure::invalid(Resource::Lease, "a", &errors).status(), status);
}

#[test]
fn a_refused_patch_has_the_code_of_its_error() {
    let code = |error| Failure::from(error).code.as_u16();
    assert_eq!(code(PatchError::Malformed(String::new())), 400);
    assert_eq!(code(PatchError::Rejected), 422);
    assert_eq!(code(PatchError::Directive(String::new())), 500);
    let undecodable = PatchError::Undecodable {
        value: String::new(),
        reason: String::new(),
    };
    let failure = Failure::from(undecodable);
    assert_eq!(
        (
            failure.code.as_u16(),
            &failure.status()["details"]["causes"][0]["field"]
        ),
        (422, &"patch".into())
    );
    let conflict = Conflict {
        manager: "m".to_owned(),
        field: ".data.b".to_owned(),
    };
    let failure = Failure::from(PatchError::Conflicts(vec![conflict]));
    assert_eq!((failure.code.as_u16(), failure.reason), (409, "Conflict"));
    let cause = json!({"reason": "FieldManagerConflict", "message": "conflict with \"m\"", "field": ".data.b"});
    assert_eq!(failure.details["causes"], json!([cause]));
}
