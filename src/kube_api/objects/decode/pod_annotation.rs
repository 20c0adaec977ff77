//! `pass-scheduled-time`: the place of the slot's time in the annotations of the Pod template.

use std::collections::BTreeMap;

use serde_json::value::RawValue;

use crate::kube_api::objects::encode::{SCHEDULED_TIMESTAMP_ANNOTATION, push_string};

type Members<'a> = BTreeMap<String, &'a RawValue>;

/// Appends the spec of a Job with a gap for the value of the annotation, and returns the offset of the gap. Returns
/// `None`, and appends nothing, if the spec has no Pod template: the API server refuses it. Members keep their bytes, and
/// are sorted on the path to the annotation.
pub(super) fn push_spec_with_gap(body: &mut String, spec: &str) -> Option<usize> {
    let spec: Members<'_> = serde_json::from_str(spec).ok()?;
    let template: Members<'_> = serde_json::from_str(spec.get("template")?.get()).ok()?;
    let metadata = member(&template, "metadata")?;
    let annotations = member(&metadata, "annotations")?;
    let path = [(&spec, "template"), (&template, "metadata"), (&metadata, "annotations")];
    for (members, next) in path {
        body.push('{');
        push_others(body, members, next);
        push_string(body, next);
        body.push(':');
    }
    body.push('{');
    push_others(body, &annotations, SCHEDULED_TIMESTAMP_ANNOTATION);
    push_string(body, SCHEDULED_TIMESTAMP_ANNOTATION);
    body.push(':');
    let gap = body.len();
    body.push_str("}}}}");
    Some(gap)
}

/// The members of a member, none if it is absent or null, or `None` if it is no object.
fn member<'a>(members: &Members<'a>, name: &str) -> Option<Members<'a>> {
    let absent = Some(Members::new());
    let Some(value) = members.get(name) else { return absent };
    let value: Option<Members<'a>> = serde_json::from_str(value.get()).ok()?;
    value.or(absent)
}

/// Appends the members other than this one, each with a trailing comma.
fn push_others(body: &mut String, members: &Members<'_>, left_out: &str) {
    for (name, value) in members.iter().filter(|(name, _)| *name != left_out) {
        push_string(body, name);
        body.push(':');
        body.push_str(value.get());
        body.push(',');
    }
}
