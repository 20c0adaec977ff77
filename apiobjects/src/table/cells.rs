//! The cells of a row.

use jiff::Timestamp;
use serde_json::{Value, json};

use super::human_duration::human_duration;
use crate::Resource;

const NONE: &str = "<none>";
const UNKNOWN: &str = "<unknown>";

/// Returns the cells of an object, one per column.
pub(super) fn of(resource: Resource, object: &Value, now: Timestamp) -> Value {
    let name = &object["metadata"]["name"];
    let age = since(&object["metadata"]["creationTimestamp"], now);
    match resource {
        Resource::CronJob => cron_job(object, now),
        Resource::Job => job(object, now),
        Resource::Lease => json!([name, text(&object["spec"]["holderIdentity"]), age]),
        Resource::Event => event(object, now),
        Resource::Namespace => json!([name, text(&object["status"]["phase"]), age]),
        Resource::ConfigMap => {
            let count = |member: &str| object[member].as_object().map_or(0, serde_json::Map::len);
            json!([name, count("data") + count("binaryData"), age])
        }
    }
}

fn cron_job(object: &Value, now: Timestamp) -> Value {
    let (spec, status) = (&object["spec"], &object["status"]);
    let suspend = match spec["suspend"].as_bool() {
        Some(true) => "True",
        Some(false) => "False",
        None => "<unset>",
    };
    let last = match time(&status["lastScheduleTime"]) {
        None => NONE.to_owned(),
        Some(time) => human_duration(now.duration_since(time)),
    };
    let job = &spec["jobTemplate"]["spec"];
    let (containers, images) = containers(&job["template"]["spec"]["containers"]);
    json!([
        object["metadata"]["name"],
        text(&spec["schedule"]),
        spec["timeZone"].as_str().unwrap_or(NONE),
        suspend,
        status["active"].as_array().map_or(0, Vec::len),
        last,
        since(&object["metadata"]["creationTimestamp"], now),
        containers,
        images,
        selector(&job["selector"]),
    ])
}

fn job(object: &Value, now: Timestamp) -> Value {
    let (spec, status) = (&object["spec"], &object["status"]);
    let succeeded = status["succeeded"].as_i64().unwrap_or_default();
    let completions = match (spec["completions"].as_i64(), spec["parallelism"].as_i64()) {
        (Some(wanted), _) => format!("{succeeded}/{wanted}"),
        (None, Some(parallelism)) if parallelism > 1 => format!("{succeeded}/1 of {parallelism}"),
        (None, _) => format!("{succeeded}/1"),
    };
    let duration = match (time(&status["startTime"]), time(&status["completionTime"])) {
        (None, _) => String::new(),
        (Some(start), end) => human_duration(end.unwrap_or(now).duration_since(start)),
    };
    let (containers, images) = containers(&spec["template"]["spec"]["containers"]);
    json!([
        object["metadata"]["name"],
        job_status(object),
        completions,
        duration,
        since(&object["metadata"]["creationTimestamp"], now),
        containers,
        images,
        selector(&spec["selector"]),
    ])
}

fn job_status(object: &Value) -> &'static str {
    let conditions = object["status"]["conditions"].as_array().map_or(&[][..], Vec::as_slice);
    // The first condition of each type counts.
    let holds = |kind: &str| {
        let condition = conditions.iter().find(|condition| condition["type"] == kind);
        condition.is_some_and(|condition| condition["status"] == "True")
    };
    match () {
        () if holds("Complete") => "Complete",
        () if holds("Failed") => "Failed",
        () if !object["metadata"]["deletionTimestamp"].is_null() => "Terminating",
        () if holds("Suspended") => "Suspended",
        () if holds("FailureTarget") => "FailureTarget",
        () if holds("SuccessCriteriaMet") => "SuccessCriteriaMet",
        () => "Running",
    }
}

fn event(object: &Value, now: Timestamp) -> Value {
    let series = object.get("series").filter(|series| !series.is_null());
    let age = |member: &str| time(&object[member]).map(|time| human_duration(now.duration_since(time)));
    let first = age("firstTimestamp").unwrap_or_else(|| since(&object["eventTime"], now));
    let last = match series {
        Some(series) => since(&series["lastObservedTime"], now),
        None => age("lastTimestamp").unwrap_or_else(|| first.clone()),
    };
    let count = match series {
        Some(series) => series["count"].as_i64().unwrap_or_default(),
        None => object["count"].as_i64().filter(|count| *count != 0).unwrap_or(1),
    };
    let involved = &object["involvedObject"];
    let kind = text(&involved["kind"]).to_lowercase();
    let target = match text(&involved["name"]) {
        "" => kind,
        name => format!("{kind}/{name}"),
    };
    json!([
        last,
        text(&object["type"]),
        text(&object["reason"]),
        target,
        text(&involved["fieldPath"]),
        event_source(object),
        text(&object["message"]).trim(),
        first,
        count,
        object["metadata"]["name"],
    ])
}

fn event_source(object: &Value) -> String {
    let either = |a: &Value, b: &Value| match text(a) {
        "" => text(b).to_owned(),
        text => text.to_owned(),
    };
    let component = either(&object["source"]["component"], &object["reportingComponent"]);
    match either(&object["source"]["host"], &object["reportingInstance"]) {
        instance if instance.is_empty() => component,
        instance => format!("{component}, {instance}"),
    }
}

/// Joins the names and images of containers.
fn containers(containers: &Value) -> (String, String) {
    let containers = containers.as_array().map_or(&[][..], Vec::as_slice);
    let join = |member: &str| {
        let texts: Vec<_> = containers.iter().map(|container| text(&container[member])).collect();
        texts.join(",")
    };
    (join("name"), join("image"))
}

fn selector(selector: &Value) -> String {
    let labels = selector["matchLabels"].as_object().into_iter().flatten();
    let mut parts: Vec<_> = labels.map(|(key, value)| format!("{key}={}", text(value))).collect();
    for expression in selector["matchExpressions"].as_array().into_iter().flatten() {
        let key = text(&expression["key"]);
        let mut values: Vec<_> = expression["values"]
            .as_array()
            .into_iter()
            .flatten()
            .map(text)
            .collect();
        values.sort_unstable();
        parts.push(match text(&expression["operator"]) {
            "In" => format!("{key} in ({})", values.join(",")),
            "NotIn" => format!("{key} notin ({})", values.join(",")),
            "DoesNotExist" => format!("!{key}"),
            _ => key.to_owned(),
        });
    }
    if parts.is_empty() {
        NONE.to_owned()
    } else {
        parts.join(",")
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn time(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}

/// Formats the time since a timestamp.
fn since(value: &Value, now: Timestamp) -> String {
    time(value).map_or_else(|| UNKNOWN.to_owned(), |time| human_duration(now.duration_since(time)))
}
