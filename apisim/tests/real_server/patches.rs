//! Compares patches in all four formats. Each patch starts from the last accepted object.

use apisim::{
    Failure, Resource,
    objects::{
        decoding::FieldValidation,
        defaulting,
        patch::{self, Applier, PatchError, PatchForm},
        validation,
    },
};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::{
    objects::{CHECKS, cron_job, record},
    requests::{Server, path},
};

const NAME: &str = "patched";
const MANAGER: &str = "suite";

/// Runs every patch on both.
pub(crate) async fn compare(server: &Server, findings: &mut Vec<String>) {
    let url = path(Resource::CronJob);
    let json = ("application/json", "application/json");
    let created = server
        .send("POST", &url, json, &cron_job(NAME, json!({})).to_string())
        .await;
    assert_eq!(created.code, 201, "{}", created.body);
    let mut old = created.body;
    for (form, body) in patches() {
        let at = match form {
            PatchForm::Json => 0,
            PatchForm::Merge => 1,
            PatchForm::Strategic => 2,
            PatchForm::Apply => 3,
        };
        let headers = (PatchForm::CONTENT_TYPES[at], "application/json");
        let force = if form == PatchForm::Apply { "&force=true" } else { "" };
        let url = format!("{url}/{NAME}?fieldManager={MANAGER}&fieldValidation=Strict{force}");
        let real = server.send("PATCH", &url, headers, &body).await;
        let ours = process(form, &body, &old);
        if form == PatchForm::Apply && real.code == 200 && owned(&real.body) != owned(&ours.1) {
            let (real, ours) = (owned(&real.body), owned(&ours.1));
            findings.push(format!("owned after {body}\nreal {real:?}\nours {ours:?}"));
        }
        record(&body, &real, ours, findings);
        if real.code == 200 {
            old = real.body;
        }
    }
}

/// Processes a patch with the functions. Returns the code and the body.
fn process(form: PatchForm, body: &str, old: &Value) -> (u16, Value) {
    match patched(form, body, old) {
        Ok(new) => match validation::update(Resource::CronJob, &new, old, &CHECKS).as_slice() {
            [] => (200, new),
            errors => (422, Failure::invalid(Resource::CronJob, NAME, errors).status()),
        },
        Err(error) => {
            let failure = Failure::from(error);
            (failure.code.as_u16(), failure.status())
        }
    }
}

fn patched(form: PatchForm, body: &str, old: &Value) -> Result<Value, PatchError> {
    let patch = patch::parse(form, body.as_bytes())?;
    let patched = match form {
        PatchForm::Json => patch::json_patch(old, &patch)?,
        PatchForm::Merge => patch::merge(old, &patch),
        PatchForm::Strategic => patch::strategic_merge(Resource::CronJob, old, &patch)?,
        PatchForm::Apply => {
            let applier = Applier {
                manager: MANAGER,
                is_forced: true,
                now: Timestamp::UNIX_EPOCH,
            };
            patch::apply(Resource::CronJob, Some(old), &patch, applier)?
        }
    };
    let mut new = patch::decoded(Resource::CronJob, form, &patch, patched, FieldValidation::Strict)?.object;
    defaulting::apply(Resource::CronJob, &mut new);
    defaulting::prepare_for_update(Resource::CronJob, &mut new, old);
    Ok(new)
}

/// Returns the fields that the applies of this test own.
fn owned(object: &Value) -> Option<&Value> {
    let entries = object["metadata"]["managedFields"].as_array()?;
    let entry = entries
        .iter()
        .find(|entry| entry["manager"] == MANAGER && entry["operation"] == "Apply")?;
    Some(&entry["fieldsV1"])
}

/// Wraps a Pod spec in a patch of a CronJob.
fn pod(pod: &Value) -> String {
    json!({"spec": {"jobTemplate": {"spec": {"template": {"spec": pod}}}}}).to_string()
}

fn patches() -> Vec<(PatchForm, String)> {
    let text = |form| move |body: &str| (form, body.to_owned());
    let mut cases = Vec::new();
    cases.extend(JSON.iter().copied().map(text(PatchForm::Json)));
    cases.extend(MERGES.iter().copied().map(text(PatchForm::Merge)));
    cases.extend(
        strategic_merges()
            .into_iter()
            .map(|patch| (PatchForm::Strategic, patch)),
    );
    cases.extend(applies().into_iter().map(|patch| (PatchForm::Apply, patch)));
    cases
}

const JSON: &[&str] = &[
    "{}",
    r#"[{"op":"test","path":"/spec/suspend","value":true}]"#,
    r#"[{"op":"test","path":"/spec/suspend","value":false},{"op":"replace","path":"/spec/suspend","value":true}]"#,
    r#"[{"op":"remove","path":"/spec/nope"}]"#,
    r#"[{"op":"replace","path":"/spec/timeZone","value":"UTC"}]"#,
    r#"[{"op":"add","path":"/spec/a/b","value":1}]"#,
    r#"[{"op":"add","path":"/spec/jobTemplate/spec/template/spec/containers/7","value":{}}]"#,
    r#"[{"op":"add","path":"/spec/jobTemplate/spec/template/spec/containers/-","value":{"name":"z","image":"z"}}]"#,
    r#"[{"op":"remove","path":"/spec/jobTemplate/spec/template/spec/containers/1"}]"#,
    r#"[{"op":"add","path":"/metadata/labels","value":{"a/b":"c"}},{"op":"remove","path":"/metadata/labels/a~1b"}]"#,
    r#"[{"op":"other","path":"/spec"}]"#,
    r#"[{"op":"copy","from":"/nope","path":"/spec"}]"#,
    r#"[{"op":"move","from":"/nope","path":"/spec"}]"#,
    "[]",
];

const MERGES: &[&str] = &[
    "[]",
    "{",
    "{}",
    r#"{"spec":{"suspend":null,"schedule":"1 1 * * *"}}"#,
    r#"{"spec":{"schedule":"x"}}"#,
    r#"{"metadata":{"labels":{"a":"b","c":null},"finalizers":["x.y/z"]}}"#,
    r#"{"spec":{"jobTemplate":{"spec":{"template":{"spec":{"containers":[{"name":"n","image":"i"}]}}}}}}"#,
    r#"{"metadata":{"finalizers":null}}"#,
];

fn strategic_merges() -> Vec<String> {
    let two = json!([{"name": "b", "image": "2"}, {"name": "c", "image": "3", "env": [{"name": "A", "value": "1"}]}]);
    let reordered = json!({"$setElementOrder/containers": [{"name": "c"}, {"name": "b"}],
        "containers": [{"name": "c", "env": [{"name": "B", "value": "2"}, {"name": "A", "value": null}]}]});
    let with_new = json!({"$setElementOrder/containers": [{"name": "d"}, {"name": "b"}],
        "containers": [{"name": "d", "image": "4"}]});
    let misordered = json!({"$setElementOrder/containers": [{"name": "c"}, {"name": "b"}],
        "containers": [{"name": "b"}, {"name": "c"}]});
    vec![
        "[]".to_owned(),
        pod(&json!({"containers": two})),
        pod(&reordered),
        pod(&with_new),
        pod(&misordered),
        pod(&json!({"containers": [{"name": "d", "$patch": "delete"}]})),
        pod(&json!({"containers": [{"image": "x"}]})),
        pod(&json!({"containers": [{"$patch": "merge"}]})),
        pod(&json!({"$patch": "x"})),
        pod(&json!({"$retainKeys": ["containers"], "dnsPolicy": "Default"})),
        pod(
            &json!({"volumes": [{"name": "v", "emptyDir": {}}], "hostAliases": [{"ip": "1.1.1.1", "hostnames": ["a"]}]}),
        ),
        pod(&json!({"volumes": [{"name": "v", "$retainKeys": ["name", "secret"], "secret": {"secretName": "s"}}]})),
        pod(&json!({"tolerations": [{"key": "a", "operator": "Exists"}], "nodeSelector": {"a": "b"}})),
        pod(
            &json!({"tolerations": [{"key": "b", "operator": "Exists"}], "nodeSelector": {"$patch": "replace", "c": "d"}}),
        ),
        pod(&json!({"$patch": "replace", "restartPolicy": "Never", "containers": [{"name": "only", "image": "1"}]})),
        json!({"metadata": {"finalizers": ["x.y/a", "x.y/b"], "annotations": {"a": "b"}}}).to_string(),
        json!({"metadata": {"finalizers": ["x.y/c", "x.y/a"], "annotations": {"a": null, "c": "d"}}}).to_string(),
        json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["x.y/a"]}}).to_string(),
        json!({"metadata": {"finalizers": null}, "spec": {"timeZone": null}}).to_string(),
        json!({"spec": {"foo": "x"}}).to_string(),
    ]
}

fn applies() -> Vec<String> {
    let applied = |spec: Value| {
        json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": NAME, "labels": {"by": "apply"}},
            "spec": spec})
        .to_string()
    };
    let with = |containers: Value| json!({"spec": {"template": {"spec": {"restartPolicy": "Never", "containers": containers}}}});
    vec![
        json!({"spec": {}}).to_string(),
        applied(json!({"foo": 1})),
        applied(
            json!({"schedule": "2 2 * * *", "timeZone": "UTC", "jobTemplate": with(json!([
            {"name": "only", "image": "9"}, {"name": "more", "image": "8", "args": ["a"]}]))}),
        ),
        applied(json!({"schedule": "2 2 * * *", "timeZone": "UTC"})),
        applied(json!({"schedule": "3 3 * * *"})),
    ]
}
