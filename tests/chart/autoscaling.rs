//! The autoscaler of the chart, and the examples in `deploy/autoscaling`, which must agree with it and with each other.

use std::fs;

use cronwheel::telemetry::metrics::table;
use serde_json::{Value, json};

use super::{alerts, everything, objects_of, render, root, the};

/// A file of `deploy/autoscaling`.
fn example(file: &str) -> Value {
    let text = fs::read_to_string(root().join("deploy/autoscaling").join(file)).unwrap();
    serde_saphyr::from_str(&text).unwrap()
}

/// The trigger of a `ScaledObject`.
fn trigger<'o>(object: &'o Value, kind: &str) -> &'o Value {
    let mut triggers = object["spec"]["triggers"].as_array().unwrap().iter();
    triggers.find(|trigger| trigger["type"] == kind).unwrap()
}

#[test]
fn only_the_autoscaler_sets_the_replica_count() {
    let fixed = objects_of(&json!({}));
    assert_eq!(the(&fixed, "Deployment")["spec"]["replicas"], 3);
    let scaled = objects_of(&everything());
    assert!(the(&scaled, "Deployment")["spec"].get("replicas").is_none());
    let spec = &the(&scaled, "HorizontalPodAutoscaler")["spec"];
    assert_eq!(
        spec["scaleTargetRef"]["name"],
        the(&scaled, "Deployment")["metadata"]["name"]
    );
    let error = render(&json!({"autoscaling": {"enabled": true, "targetCPUUtilizationPercentage": 0}})).unwrap_err();
    assert!(error.contains("autoscaling needs a metric"), "{error}");
}

#[test]
fn external_autoscaler_can_replace_that_of_the_chart() {
    let objects = objects_of(&json!({"autoscaling": {"enabled": true, "create": false}}));
    assert!(the(&objects, "Deployment")["spec"].get("replicas").is_none());
    assert!(objects.iter().all(|object| object["kind"] != "HorizontalPodAutoscaler"));
}

#[test]
fn cpu_is_the_only_autoscaling_metric_by_default() {
    let metrics = |values: Value| {
        let objects = objects_of(&json!({"autoscaling": values}));
        the(&objects, "HorizontalPodAutoscaler")["spec"]["metrics"].clone()
    };
    let cpu = json!({
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
    });
    let cron_jobs = json!({
        "type": "External",
        "external": {
            "metric": {"name": table::CRON_JOBS_LED.name},
            "target": {"type": "AverageValue", "averageValue": "7000"},
        },
    });
    assert_eq!(metrics(json!({"enabled": true})), json!([cpu]));
    let both = json!({"enabled": true, "targetCronJobsPerReplica": 7000});
    assert_eq!(metrics(both), json!([cpu, cron_jobs]));
    let one = json!({"enabled": true, "targetCronJobsPerReplica": 7000, "targetCPUUtilizationPercentage": 0});
    assert_eq!(metrics(one), json!([cron_jobs]));
}

#[test]
fn keda_example_scales_like_the_chart() {
    let keda = example("keda.yaml");
    let values = json!({"autoscaling": {"enabled": true, "targetCronJobsPerReplica": 7000}});
    let objects = objects_of(&values);
    let chart = &the(&objects, "HorizontalPodAutoscaler")["spec"];
    let spec = &keda["spec"];
    assert_eq!(spec["minReplicaCount"], chart["minReplicas"]);
    assert_eq!(spec["maxReplicaCount"], chart["maxReplicas"]);
    assert_eq!(spec["scaleTargetRef"]["name"], chart["scaleTargetRef"]["name"]);
    assert_eq!(
        spec["advanced"]["horizontalPodAutoscalerConfig"]["behavior"],
        chart["behavior"]
    );
    let cpu = &chart["metrics"][0]["resource"]["target"]["averageUtilization"];
    assert_eq!(trigger(&keda, "cpu")["metadata"]["value"], json!(cpu.to_string()));
    let prometheus = trigger(&keda, "prometheus");
    let target = &chart["metrics"][1]["external"]["target"];
    assert_eq!(prometheus["metadata"]["threshold"], target["averageValue"]);
    assert_eq!(prometheus["metricType"], target["type"]);
    // A result without a value is an error, and errors never scale in.
    assert_eq!(prometheus["metadata"]["ignoreNullValues"], "false");
    assert_eq!(spec["fallback"]["behavior"], "currentReplicasIfHigher");
    assert_eq!(spec["fallback"]["replicas"], chart["minReplicas"]);
}

#[test]
fn both_examples_use_the_same_query_on_registered_metrics() {
    let keda = example("keda.yaml");
    let query = trigger(&keda, "prometheus")["metadata"]["query"].as_str().unwrap();
    let adapter = example("prometheus-adapter.yaml");
    let rule = &adapter["externalRules"][0];
    let template = rule["metricsQuery"].as_str().unwrap();
    assert_eq!(
        template.replace("<<.LabelMatchers>>", r#"namespace="kube-system""#),
        query
    );
    for metric in alerts::metrics_in(query) {
        assert!(alerts::registered_name(&metric).is_some(), "{metric}");
    }
    // The adapter gives the metric the name of the series.
    let series = rule["seriesQuery"].as_str().unwrap();
    assert!(
        series.starts_with(&format!("{}{{", table::CRON_JOBS_LED.name)),
        "{series}"
    );
}

#[test]
fn vertical_example_changes_the_memory_request_within_the_limits_of_the_chart() {
    let spec = &example("vpa.yaml")["spec"];
    let objects = objects_of(&json!({}));
    let deployment = the(&objects, "Deployment");
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    for name in ["apiVersion", "kind"] {
        assert_eq!(spec["targetRef"][name], deployment[name]);
    }
    assert_eq!(spec["targetRef"]["name"], deployment["metadata"]["name"]);
    let policy = &spec["resourcePolicy"]["containerPolicies"][0];
    assert_eq!(policy["containerName"], container["name"]);
    assert_eq!(policy["controlledResources"], json!(["memory"]));
    assert_eq!(policy["controlledValues"], "RequestsOnly");
    let resources = &container["resources"];
    assert_eq!(policy["minAllowed"]["memory"], resources["requests"]["memory"]);
    assert_eq!(policy["maxAllowed"]["memory"], resources["limits"]["memory"]);
}
