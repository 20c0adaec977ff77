//! The four patch formats, each with a table of cases.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::{Applier, Conflict, PatchError, PatchForm, apply, decoded, json_patch, merge, parse, strategic_merge};
use crate::{Resource, decoding::FieldValidation};

#[test]
fn content_type_selects_the_patch_form() {
    for (content_type, expected) in PatchForm::CONTENT_TYPES.iter().zip([
        PatchForm::Json,
        PatchForm::Merge,
        PatchForm::Strategic,
        PatchForm::Apply,
    ]) {
        assert_eq!(PatchForm::parse(content_type), Some(expected));
        assert_eq!(
            PatchForm::parse(&format!("{content_type}; charset=utf-8")),
            Some(expected)
        );
    }
    assert_eq!(PatchForm::parse("application/json"), None);
}

#[test]
fn body_of_another_patch_form_is_malformed() {
    let cases = [
        (
            PatchForm::Merge,
            "[]",
            "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}",
        ),
        (
            PatchForm::Merge,
            "{",
            "error decoding patch: unexpected end of JSON input",
        ),
        (
            PatchForm::Json,
            "{}",
            "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
        ),
        (
            PatchForm::Strategic,
            "[]",
            "json: cannot unmarshal array into Go value of type map[string]interface {}",
        ),
    ];
    for (form, body, expected) in cases {
        assert_eq!(
            parse(form, body.as_bytes()),
            Err(PatchError::Malformed(expected.to_owned())),
            "{body}"
        );
    }
}

#[test]
fn rfc_7386_merge_patches() {
    // The examples in the appendix of the RFC.
    let cases = [
        (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
        (json!({"a": "b"}), json!({"b": "c"}), json!({"a": "b", "b": "c"})),
        (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
        (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
        (
            json!({"a": {"b": "c"}}),
            json!({"a": {"b": "d", "c": null}}),
            json!({"a": {"b": "d"}}),
        ),
        (json!({"a": [{"b": "c"}]}), json!({"a": [1]}), json!({"a": [1]})),
        (json!({"e": null}), json!({"a": 1}), json!({"e": null, "a": 1})),
        (json!([1, 2]), json!({"a": "b", "c": null}), json!({"a": "b"})),
        (json!({}), json!({"a": {"bb": {"ccc": null}}}), json!({"a": {"bb": {}}})),
    ];
    for (old, patch, expected) in cases {
        assert_eq!(merge(&old, &patch), expected, "{old} {patch}");
    }
}

#[test]
fn rfc_6902_operations() {
    let old = json!({"a": {"b": [1, 2]}, "x/y": 1, "m~n": 2});
    let cases = [
        (
            json!([{"op": "add", "path": "/a/c", "value": 3}]),
            json!({"a": {"b": [1, 2], "c": 3}, "x/y": 1, "m~n": 2}),
        ),
        (
            json!([{"op": "add", "path": "/a/b/1", "value": 9}]),
            json!({"a": {"b": [1, 9, 2]}, "x/y": 1, "m~n": 2}),
        ),
        (
            json!([{"op": "add", "path": "/a/b/-", "value": 9}]),
            json!({"a": {"b": [1, 2, 9]}, "x/y": 1, "m~n": 2}),
        ),
        (
            json!([{"op": "remove", "path": "/a/b/0"}]),
            json!({"a": {"b": [2]}, "x/y": 1, "m~n": 2}),
        ),
        (
            json!([{"op": "remove", "path": "/x~1y"}]),
            json!({"a": {"b": [1, 2]}, "m~n": 2}),
        ),
        (
            json!([{"op": "replace", "path": "/m~0n", "value": 3}]),
            json!({"a": {"b": [1, 2]}, "x/y": 1, "m~n": 3}),
        ),
        (
            json!([{"op": "replace", "path": "/new", "value": 3}, {"op": "test", "path": "/new", "value": 3},
            {"op": "remove", "path": "/new"}]),
            old.clone(),
        ),
        (
            json!([{"op": "move", "from": "/a/b", "path": "/x~1y"}]),
            json!({"a": {}, "x/y": [1, 2], "m~n": 2}),
        ),
        (
            json!([{"op": "copy", "from": "/a/b/0", "path": "/a"}]),
            json!({"a": 1, "x/y": 1, "m~n": 2}),
        ),
        (json!([{"op": "replace", "path": "", "value": 3}]), json!(3)),
        (json!([]), old.clone()),
    ];
    for (patch, expected) in cases {
        assert_eq!(json_patch(&old, &patch), Ok(expected), "{patch}");
    }
    let refused = [
        json!([{"op": "test", "path": "/a", "value": 1}]),
        json!([{"op": "remove", "path": "/none"}]),
        json!([{"op": "remove", "path": ""}]),
        json!([{"op": "add", "path": "/none/b", "value": 1}]),
        json!([{"op": "add", "path": "/a/b/3", "value": 1}]),
        json!([{"op": "add", "path": "/a/b/01", "value": 1}]),
        json!([{"op": "replace", "path": "/a/b/2", "value": 1}]),
        json!([{"op": "move", "from": "/none", "path": "/a"}]),
        json!([{"op": "other", "path": "/a"}]),
        json!([{"path": "/a"}]),
        json!([{"op": "remove", "path": "a"}]),
    ];
    for patch in refused {
        assert_eq!(json_patch(&old, &patch), Err(PatchError::Rejected), "{patch}");
    }
}

/// A Job with this Pod spec.
fn job(pod: Value) -> Value {
    json!({"spec": {"template": {"spec": pod}}})
}

fn container(name: &str, image: &str) -> Value {
    json!({"name": name, "image": image})
}

fn two() -> Value {
    json!({"containers": [container("a", "1"), container("b", "2")], "dnsPolicy": "Default"})
}

/// Checks patches of Pod specs: old, patch, new.
fn check_pods<const N: usize>(cases: [(&str, Value, Value, Value); N]) {
    for (case, old, patch, expected) in cases {
        let new = strategic_merge(Resource::Job, &job(old), &job(patch)).unwrap();
        assert_eq!(new, job(expected), "{case}");
    }
}

#[test]
fn strategic_merges_follow_the_types() {
    check_pods([
        (
            "by key",
            two(),
            json!({"containers": [{"name": "b", "image": "3"}]}),
            json!({"containers": [container("a", "1"), container("b", "3")], "dnsPolicy": "Default"}),
        ),
        (
            "new element",
            two(),
            json!({"containers": [{"name": "c", "image": "3", "env": null}]}),
            json!({"containers": [container("c", "3"), container("a", "1"), container("b", "2")], "dnsPolicy": "Default"}),
        ),
        (
            "delete",
            two(),
            json!({"containers": [{"name": "a", "$patch": "delete"}]}),
            json!({"containers": [container("b", "2")], "dnsPolicy": "Default"}),
        ),
        (
            "replace a list",
            two(),
            json!({"containers": [container("c", "3"), {"$patch": "replace"}]}),
            json!({"containers": [container("c", "3")], "dnsPolicy": "Default"}),
        ),
        (
            "replace an object",
            two(),
            json!({"$patch": "replace", "hostname": "h"}),
            json!({"hostname": "h"}),
        ),
        ("delete an object", two(), json!({"$patch": "delete"}), json!({})),
        (
            "null",
            two(),
            json!({"dnsPolicy": null, "hostname": null}),
            json!({"containers": [container("a", "1"), container("b", "2")]}),
        ),
        (
            "env by name",
            json!({"containers": [{"name": "a", "env": [{"name": "A", "value": "1"}]}]}),
            json!({"containers": [{"name": "a", "env": [{"name": "B", "value": "2"}, {"name": "A", "value": "3"}]}]}),
            json!({"containers": [{"name": "a", "env": [{"name": "B", "value": "2"}, {"name": "A", "value": "3"}]}]}),
        ),
        (
            "no key",
            json!({"containers": [{"name": "a", "args": ["1"]}]}),
            json!({"containers": [{"name": "a", "args": ["2"]}]}),
            json!({"containers": [{"name": "a", "args": ["2"]}]}),
        ),
        (
            "retain keys",
            json!({"volumes": [{"name": "v", "emptyDir": {}}]}),
            json!({"volumes": [{"name": "v", "$retainKeys": ["name", "secret"], "secret": {}}]}),
            json!({"volumes": [{"name": "v", "secret": {}}]}),
        ),
    ]);
}

#[test]
fn strategic_merges_follow_the_requested_element_order() {
    check_pods([
        (
            "order",
            two(),
            json!({"$setElementOrder/containers": [{"name": "b"}, {"name": "a"}],
                "containers": [{"name": "b", "image": "3"}]}),
            json!({"containers": [container("b", "3"), container("a", "1")], "dnsPolicy": "Default"}),
        ),
        (
            "order with a new element",
            two(),
            json!({"$setElementOrder/containers": [{"name": "c"}, {"name": "b"}], "containers": [{"name": "c", "image": "3"}]}),
            json!({"containers": [container("c", "3"), container("a", "1"), container("b", "2")], "dnsPolicy": "Default"}),
        ),
    ]);
}

#[test]
fn strategic_merges_of_metadata() {
    let metadata = |metadata: Value| json!({"metadata": metadata});
    let cases = [
        (
            json!({"finalizers": ["a", "b"]}),
            json!({"finalizers": ["c", "a"]}),
            json!({"finalizers": ["c", "a", "b"]}),
        ),
        (
            json!({"finalizers": ["a", "b"]}),
            json!({"$deleteFromPrimitiveList/finalizers": ["a"]}),
            json!({"finalizers": ["b"]}),
        ),
        (
            json!({"labels": {"a": "1", "b": "2"}}),
            json!({"labels": {"a": null, "c": "3"}}),
            json!({"labels": {"b": "2", "c": "3"}}),
        ),
        (
            json!({"ownerReferences": [{"uid": "1", "name": "x"}]}),
            json!({"ownerReferences": [{"uid": "1", "controller": true}, {"uid": "2"}]}),
            json!({"ownerReferences": [{"uid": "1", "name": "x", "controller": true}, {"uid": "2"}]}),
        ),
    ];
    for (old, patch, expected) in cases {
        let new = strategic_merge(Resource::ConfigMap, &metadata(old), &metadata(patch.clone())).unwrap();
        assert_eq!(new, metadata(expected), "{patch}");
    }
}

#[test]
fn invalid_strategic_merge_directives_are_refused() {
    let old = job(json!({"containers": [{"name": "a"}]}));
    let cases = [
        (
            json!({"$patch": "x"}),
            false,
            "unknown patch type: x in map: map[$patch:x]",
        ),
        (
            json!({"containers": [{"image": "x"}]}),
            false,
            "map: map[image:x] does not contain declared merge key: name",
        ),
        (
            json!({"containers": [{"$patch": "merge"}]}),
            false,
            "merging lists cannot yet be specified in the patch",
        ),
        (
            json!({"$retainKeys": ["containers"], "dnsPolicy": "Default"}),
            true,
            "invalid patch format of retainKeys",
        ),
        (
            json!({"$setElementOrder/containers": [{"name": "c"}, {"name": "a"}], "containers": [{"name": "a"}, {"name": "c"}]}),
            false,
            "The order in patch list:\n[map[name:a] map[name:c]]\n doesn't match $setElementOrder list:\n[map[name:c] map[name:a]]\n",
        ),
    ];
    for (patch, is_malformed, expected) in cases {
        let error = strategic_merge(Resource::Job, &old, &job(patch)).unwrap_err();
        assert_eq!(error.to_string(), expected);
        assert_eq!(matches!(error, PatchError::Malformed(_)), is_malformed);
    }
}

#[test]
fn patched_object_must_match_the_schema_of_its_kind() {
    let patch = json!({"spec": {"foo": "x"}});
    let patched = json!({"kind": "Lease", "apiVersion": "coordination.k8s.io/v1", "spec": {"foo": "x"}});
    let outcome = |form| decoded(Resource::Lease, form, &patch, patched.clone(), FieldValidation::Strict).unwrap_err();
    let reason = "strict decoding error: unknown field \"spec.foo\"";
    let expected = format!(" \"\" is invalid: patch: Invalid value: \"map[spec:map[foo:x]]\": {reason}");
    assert_eq!(outcome(PatchForm::Strategic).to_string(), expected);
    let lenient = decoded(
        Resource::Lease,
        PatchForm::Merge,
        &patch,
        patched.clone(),
        FieldValidation::Warn,
    )
    .unwrap();
    assert_eq!(lenient.warnings, ["unknown field \"spec.foo\""]);
}

/// A `ConfigMap` as a manager applies it.
fn config_map(data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data})
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn applied_by(manager: &str, old: Option<&Value>, new: &Value, is_forced: bool) -> Result<Value, PatchError> {
    let applier = Applier {
        manager,
        is_forced,
        now: at("2024-01-01T00:00:00Z"),
    };
    let resource = if new["kind"] == "Job" {
        Resource::Job
    } else {
        Resource::ConfigMap
    };
    apply(resource, old, new, applier)
}

#[test]
fn apply_removes_fields_that_its_manager_no_longer_sets() {
    let applied = config_map(&json!({"a": "1", "b": "1"}));
    let first = applied_by("m", None, &applied, false).unwrap();
    let entry = json!({"manager": "m", "operation": "Apply", "apiVersion": "v1", "time": "2024-01-01T00:00:00Z",
        "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:a": {}, "f:b": {}}}});
    assert_eq!(first["metadata"]["managedFields"], json!([entry]));
    let later = Applier {
        manager: "m",
        is_forced: false,
        now: at("2024-01-02T00:00:00Z"),
    };
    let same = apply(Resource::ConfigMap, Some(&first), &applied, later).unwrap();
    assert_eq!(same, first, "an apply without changes");
    let shared = applied_by("n", Some(&first), &config_map(&json!({"b": "1"})), false).unwrap();
    let less = applied_by("m", Some(&shared), &config_map(&json!({"c": "3"})), false).unwrap();
    assert_eq!(
        less["data"],
        json!({"b": "1", "c": "3"}),
        "the other manager owns b too"
    );
}

#[test]
fn fields_of_other_managers_change_only_by_force() {
    let first = applied_by("m", None, &config_map(&json!({"a": "1", "b": "1", "c": "1"})), false).unwrap();
    let one = config_map(&json!({"b": "2", "c": "1"}));
    let error = applied_by("n", Some(&first), &one, false).unwrap_err();
    let text = "Apply failed with 1 conflict: conflict with \"m\": .data.b";
    assert_eq!(error.to_string(), text);
    let two = config_map(&json!({"a": "2", "b": "2"}));
    let error = applied_by("n", Some(&first), &two, false).unwrap_err();
    assert_eq!(
        error.to_string(),
        "Apply failed with 2 conflicts: conflicts with \"m\":\n- .data.a\n- .data.b"
    );
    let forced = applied_by("n", Some(&first), &one, true).unwrap();
    let fields = |at: usize| &forced["metadata"]["managedFields"][at]["fieldsV1"]["f:data"];
    assert_eq!(*fields(0), json!({"f:b": {}, "f:c": {}}));
    assert_eq!(*fields(1), json!({"f:a": {}, "f:c": {}}));
    let all = config_map(&json!({"a": "3", "b": "3", "c": "3"}));
    let taken = applied_by("o", Some(&forced), &all, true).unwrap();
    assert_eq!(taken["metadata"]["managedFields"].as_array().unwrap().len(), 1);
}

#[test]
fn conflicts_name_list_elements_by_their_keys() {
    let job = |image: &str| {
        json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a", "finalizers": ["x/y"]},
            "spec": {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}}})
    };
    let first = applied_by("m", None, &job("1"), false).unwrap();
    let error = applied_by("n", Some(&first), &job("2"), false).unwrap_err();
    let field = ".spec.template.spec.containers[name=\"c\"].image".to_owned();
    let manager = "m".to_owned();
    assert_eq!(error, PatchError::Conflicts(vec![Conflict { manager, field }]));
}

#[test]
fn apply_merges_lists_by_key() {
    let pod = |containers: Value| {
        json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a", "finalizers": ["x/y"]},
            "spec": {"template": {"spec": {"containers": containers}}}})
    };
    let two = pod(json!([{"name": "a", "image": "1"}, {"name": "b", "image": "2"}]));
    let mut live = applied_by("m", None, &two, false).unwrap();
    live["spec"]["template"]["spec"]["containers"][0]["imagePullPolicy"] = "Always".into();
    let one = pod(json!([{"name": "a", "image": "3"}]));
    let one = applied_by("m", Some(&live), &one, false).unwrap();
    let expected = json!([{"name": "a", "image": "3", "imagePullPolicy": "Always"}]);
    assert_eq!(one["spec"]["template"]["spec"]["containers"], expected);
    let fields = &one["metadata"]["managedFields"][0]["fieldsV1"];
    assert_eq!(fields["f:metadata"], json!({"f:finalizers": {"v:\"x/y\"": {}}}));
    let containers = &fields["f:spec"]["f:template"]["f:spec"]["f:containers"];
    assert_eq!(
        *containers,
        json!({"k:{\"name\":\"a\"}": {".": {}, "f:name": {}, "f:image": {}}})
    );
}

#[test]
fn apply_refuses_other_kinds_and_unknown_fields() {
    let refusal = |applied: Value| applied_by("m", None, &applied, false).unwrap_err();
    let error = refusal(json!({"spec": {}}));
    assert_eq!(error.to_string(), "invalid object type: /, Kind=");
    let mut applied = config_map(&json!({}));
    applied["foo"] = 1.into();
    let expected = "failed to create typed patch object (/a; v1, Kind=ConfigMap): .foo: field not declared in schema";
    assert_eq!(refusal(applied), PatchError::Directive(expected.to_owned()));
}
