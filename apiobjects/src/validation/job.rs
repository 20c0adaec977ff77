//! Validation of Jobs and Job templates.

mod policies;

use serde_json::{Map, Value};

use super::{
    field_error::Errors,
    metadata::{self, NameRule, elements, member_text, members},
    names,
    path::Path,
    pod,
};

const SPEC: Path<'static> = Path::root("spec");
const N_PARALLEL_INDEXED_MAX: i64 = 100_000;
const MANAGED_BY_LENGTH_MAX: usize = 63;
const NON_NEGATIVE: [&str; 7] = [
    "parallelism",
    "completions",
    "activeDeadlineSeconds",
    "backoffLimit",
    "ttlSecondsAfterFinished",
    "backoffLimitPerIndex",
    "maxFailedIndexes",
];
/// Immutable fields of a Job, besides `template`.
const IMMUTABLE: [&str; 5] = [
    "completionMode",
    "podFailurePolicy",
    "backoffLimitPerIndex",
    "managedBy",
    "successPolicy",
];
/// Fields of the Pod template that may change while a Job is suspended and has not started.
const SCHEDULING: [&str; 4] = ["nodeSelector", "tolerations", "schedulingGates", "affinity"];

/// Checks a Job.
pub(super) fn check(object: &Value, errors: &mut Errors) {
    metadata::check_with_finalizers(object, true, NameRule::DnsSubdomain, errors);
    generated_selector(object, errors);
    job_spec(&object["spec"], errors);
    let completions = object["spec"]["completions"].as_i64().unwrap_or_default();
    if is_indexed(&object["spec"]) && completions > 0 {
        let name = metadata::text(object, "name");
        let host = format!("{name}-{}", completions - 1);
        if !names::dns_label(&host).is_empty() {
            let detail = format!("will not able to create pod with invalid DNS label: {host}");
            errors.invalid(&Path::root("metadata").child("name"), name, &detail);
        }
    }
}

/// Checks an update of a Job.
pub(super) fn update(new: &Value, old: &Value, errors: &mut Errors) {
    check(new, errors);
    metadata::check_update_with_finalizers(new, old, errors);
    let (spec, old_spec) = (&new["spec"], &old["spec"]);
    job_spec(spec, errors);
    completions(spec, old_spec, errors);
    metadata::immutable(
        &SPEC.child("selector"),
        &spec["selector"],
        &old_spec["selector"],
        errors,
    );
    template(new, old, errors);
    for member in IMMUTABLE {
        metadata::immutable(&SPEC.child(member), &spec[member], &old_spec[member], errors);
    }
}

/// Checks the rules that apply to both a Job and a Job template.
pub(super) fn spec(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    for member in NON_NEGATIVE {
        errors.non_negative(&path.child(member), spec.get(member));
    }
    if !spec["maxFailedIndexes"].is_null() && spec["backoffLimitPerIndex"].is_null() {
        errors.required(
            &path.child("backoffLimitPerIndex"),
            "when maxFailedIndexes is specified",
        );
    }
    if let Some(name) = spec["managedBy"].as_str() {
        errors.invalid_for_each(&path.child("managedBy"), name, names::domain_prefixed_path(name));
    }
    if member_text(spec, "managedBy").len() > MANAGED_BY_LENGTH_MAX {
        errors.too_long(&path.child("managedBy"), MANAGED_BY_LENGTH_MAX);
    }
    completion_mode(spec, path, errors);
    if !spec["podFailurePolicy"].is_null() {
        policies::failure(spec, &path.child("podFailurePolicy"), errors);
    }
    if !spec["successPolicy"].is_null() {
        let path = path.child("successPolicy");
        if is_indexed(spec) {
            policies::success(spec, &path, errors);
        } else {
            errors.invalid(&path, spec["successPolicy"].clone(), "requires indexed completion mode");
        }
    }
    replacement_policy(spec, &path.child("podReplacementPolicy"), errors);
    let template = path.child("template");
    pod::template(&spec["template"], &template, errors);
    let pod = template.child("spec");
    restart_policy(spec, &pod.child("restartPolicy"), errors);
}

fn completion_mode(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let mode = member_text(spec, "completionMode");
    if !matches!(mode, "" | "NonIndexed" | "Indexed") {
        errors.unsupported(&path.child("completionMode"), mode, &["NonIndexed", "Indexed"]);
    }
    if is_indexed(spec) {
        if spec["completions"].is_null() {
            errors.required(&path.child("completions"), "when completion mode is Indexed");
        }
        if let Some(n_parallel) = spec["parallelism"]
            .as_i64()
            .filter(|number| *number > N_PARALLEL_INDEXED_MAX)
        {
            let detail = "must be less than or equal to 100000 when completion mode is Indexed";
            errors.invalid(&path.child("parallelism"), n_parallel, detail);
        }
    } else if matches!(mode, "" | "NonIndexed") {
        for member in ["backoffLimitPerIndex", "maxFailedIndexes"] {
            if !spec[member].is_null() {
                errors.invalid(
                    &path.child(member),
                    spec[member].clone(),
                    "requires indexed completion mode",
                );
            }
        }
    }
}

fn replacement_policy(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    let supported: &[&str] = if spec["podFailurePolicy"].is_null() {
        &["Failed", "TerminatingOrFailed"]
    } else {
        &["Failed"]
    };
    if let Some(policy) = spec["podReplacementPolicy"]
        .as_str()
        .filter(|policy| !supported.contains(policy))
    {
        errors.unsupported(path, policy, supported);
    }
}

fn restart_policy(spec: &Value, path: &Path<'_>, errors: &mut Errors) {
    match member_text(&spec["template"]["spec"], "restartPolicy") {
        "" | "Always" => errors.required(path, "valid values: \"OnFailure\", \"Never\""),
        "OnFailure" if !spec["podFailurePolicy"].is_null() => {
            let detail = "only \"Never\" is supported when podFailurePolicy is specified";
            errors.invalid(path, "OnFailure", detail);
        }
        "OnFailure" | "Never" => {}
        policy => errors.unsupported(path, policy, &["OnFailure", "Never"]),
    }
}

/// Checks the rules that apply to the spec of a Job, but not to a Job template.
fn job_spec(spec: &Value, errors: &mut Errors) {
    self::spec(spec, &SPEC, errors);
    let selector = &spec["selector"];
    let path = SPEC.child("selector");
    if selector.is_null() {
        errors.required(&path, "");
    }
    metadata::labels(&path.child("matchLabels"), &selector["matchLabels"], errors);
    let labels = &spec["template"]["metadata"]["labels"];
    if !selects(selector, labels) {
        let (template, metadata);
        template = SPEC.child("template");
        metadata = template.child("metadata");
        let detail = "`selector` does not match template `labels`";
        errors.invalid(&metadata.child("labels"), labels.clone(), detail);
    }
}

/// Returns whether labels match the `matchLabels` of a selector. A missing selector matches nothing.
fn selects(selector: &Value, labels: &Value) -> bool {
    !selector.is_null() && members(&selector["matchLabels"]).all(|(key, value)| labels.get(key) == Some(value))
}

/// Checks that a generated selector, and the labels that it matches, are as the server generates them.
fn generated_selector(object: &Value, errors: &mut Errors) {
    let spec = &object["spec"];
    if spec["manualSelector"] == Value::Bool(true) || spec["selector"].is_null() {
        return;
    }
    let (name, uid) = (metadata::text(object, "name"), metadata::text(object, "uid"));
    if uid.is_empty() {
        errors.required(&Path::root("metadata").child("uid"), "");
    }
    let expected = [
        ("controller-uid", uid),
        ("job-name", name),
        ("batch.kubernetes.io/controller-uid", uid),
        ("batch.kubernetes.io/job-name", name),
    ];
    let labels = &spec["template"]["metadata"]["labels"];
    let (template, metadata, path);
    template = SPEC.child("template");
    metadata = template.child("metadata");
    path = metadata.child("labels");
    for (label, value) in expected {
        let detail = format!("must be '{value}'");
        match labels.get(label).and_then(Value::as_str) {
            None => errors.required(&path.key(label), &detail),
            Some(found) if found != value => errors.invalid(&path.key(label), labels.clone(), &detail),
            Some(_) => {}
        }
    }
    let expected: Map<_, _> = expected
        .iter()
        .map(|(label, value)| ((*label).to_owned(), (*value).into()))
        .collect();
    if !selects(&spec["selector"], &Value::Object(expected)) {
        errors.invalid(
            &SPEC.child("selector"),
            spec["selector"].clone(),
            "`selector` not auto-generated",
        );
    }
}

fn completions(spec: &Value, old: &Value, errors: &mut Errors) {
    let path = SPEC.child("completions");
    let completions = &spec["completions"];
    if !is_indexed(spec) {
        return metadata::immutable(&path, completions, &old["completions"], errors);
    }
    if completions != &old["completions"] && !completions.is_null() && completions != &spec["parallelism"] {
        errors.invalid(
            &path,
            completions.clone(),
            "can only be modified in tandem with spec.parallelism",
        );
    }
}

/// Checks that the Pod template is unchanged. Scheduling fields may change while a Job is suspended and has not
/// started.
fn template(new: &Value, old: &Value, errors: &mut Errors) {
    let path = SPEC.child("template");
    let (new, old, may_reschedule) = (&new["spec"]["template"], &old["spec"]["template"], may_reschedule(old));
    if new == old {
        return;
    }
    if !may_reschedule {
        return metadata::immutable(&path, new, old, errors);
    }
    let mut same = old.clone();
    for member in SCHEDULING {
        same["spec"][member] = new["spec"][member].clone();
    }
    for list in ["containers", "initContainers"] {
        for (at, container) in elements(&new["spec"][list]).iter().enumerate() {
            if same["spec"][list][at]["name"] == container["name"] {
                same["spec"][list][at]["resources"] = container["resources"].clone();
            }
        }
    }
    let without_nulls = |spec: &Value| -> Map<String, Value> {
        members(spec)
            .filter(|(_, value)| !value.is_null())
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    };
    if without_nulls(&new["spec"]) != without_nulls(&same["spec"]) {
        errors.invalid(&SPEC.child("template.spec"), new["spec"].clone(), "field is immutable");
    }
}

/// Returns whether the scheduling fields of a Job's Pods may change.
fn may_reschedule(job: &Value) -> bool {
    let status = &job["status"];
    let is_suspended_by_condition = elements(&status["conditions"])
        .iter()
        .any(|condition| condition["type"] == "Suspended" && condition["status"] == "True");
    job["spec"]["suspend"] == Value::Bool(true)
        && (status["startTime"].is_null() || is_suspended_by_condition)
        && status["active"].as_i64().unwrap_or_default() == 0
}

fn is_indexed(spec: &Value) -> bool {
    member_text(spec, "completionMode") == "Indexed"
}
