//! Labels of the values on the alerts, of which one is silent while another fires.

use std::fs;

use serde_json::{Value, json};

use super::{PROMTOOL, rendered};
use crate::{render, tempfile};

/// Series of seven CronJobs in trouble: six of one namespace, and one of another.
fn in_trouble() -> Vec<Value> {
    let cron_jobs = ["a", "b", "c", "d", "e", "f"].map(|name| ("shop", name));
    let cron_jobs = cron_jobs.into_iter().chain([("bank", "a")]);
    let series = |(namespace, name): (&str, &str)| {
        let labels = "namespace=\"team\", job=\"cronwheel\", instance=\"a\", pod=\"cronwheel-a\", kind=\"failing\"";
        let of_cron_job = format!("exported_namespace=\"{namespace}\", cronjob=\"{name}\"");
        json!({"series": format!("cronwheel_cron_job_trouble{{{labels}, {of_cron_job}}}"), "values": "1x120"})
    };
    cron_jobs.map(series).collect()
}

/// Asserts that with these values, the six have one alert together and the one has its own.
fn assert_one_alert_for_the_namespace(prometheus_rule: &Value) {
    let rules = tempfile(&rendered::groups(prometheus_rule).to_string());
    let one = |alert: &str, namespace: &str| {
        let labels = format!("{{alertname=\"{alert}\", exported_namespace=\"{namespace}\"}}");
        json!({"labels": labels, "value": 1})
    };
    let expression = "count by (alertname, exported_namespace) \
        (ALERTS{alertname=~\"Cronwheel(CronJob|Namespace)InTrouble\", alertstate=\"firing\"})";
    let at = |minutes: &str| {
        let expected = [
            one("CronwheelNamespaceInTrouble", "shop"),
            one("CronwheelCronJobInTrouble", "bank"),
        ];
        json!({"expr": expression, "eval_time": minutes, "exp_samples": expected})
    };
    let test = json!({"interval": "1m", "input_series": in_trouble(), "promql_expr_test": [at("30m"), at("90m")]});
    let tests = tempfile(&json!({"rule_files": [rules], "tests": [test]}).to_string());
    let output = std::process::Command::new(&*PROMTOOL)
        .args(["test", "rules"])
        .arg(&tests)
        .output()
        .unwrap();
    fs::remove_file(rules).unwrap();
    fs::remove_file(tests).unwrap();
    let printed = [output.stdout, output.stderr].concat();
    assert!(
        output.status.success(),
        "{prometheus_rule}: {}",
        String::from_utf8_lossy(&printed)
    );
}

#[test]
fn many_cron_jobs_of_a_namespace_have_one_alert_whatever_labels_the_values_set() {
    for values in [
        json!({}),
        json!({"alertLabels": {"cluster": "prod-1"}}),
        json!({"alertLabels": {"namespace": "monitoring", "job": "cron"}, "job": "(.*/)?cronwheel"}),
        json!({"alerts": {"CronwheelNamespaceInTrouble": {"labels": {"cluster": "prod-1", "team": "shop"}}}}),
    ] {
        assert_one_alert_for_the_namespace(&values);
    }
}

#[test]
fn label_that_tells_namespaces_apart_is_refused() {
    for values in [
        json!({"alertLabels": {"exported_namespace": "shop"}}),
        json!({"alerts": {"CronwheelNamespaceInTrouble": {"labels": {"exported_namespace": "shop"}}}}),
    ] {
        let mut all = json!({"metrics": {"prometheusRule": values}});
        all["metrics"]["prometheusRule"]["enabled"] = json!(true);
        let error = render(&all).unwrap_err();
        assert!(
            error.contains("exported_namespace") && error.contains("metrics.prometheusRule"),
            "{error}"
        );
    }
}

/// The series may lack a label that only the alerts have. Without a cluster of theirs, the link selects all.
#[test]
fn link_to_a_dashboard_selects_the_cluster_of_the_series() {
    let link = |values: Value| {
        let rules = rendered::rendered(&values);
        let alert = rules.iter().find(|rule| rule["alert"] == "CronwheelFences").unwrap();
        let url = alert["annotations"]["dashboard_url"].as_str().unwrap().to_owned();
        url.split_once("var-cluster=").unwrap().1.to_owned()
    };
    let of_series = "{{ $labels.cluster }}";
    assert_eq!(link(json!({"alertLabels": {"team": "shop"}})), of_series);
    let or_all = "{{ with $labels.cluster }}{{ . }}{{ else }}$__all{{ end }}";
    assert_eq!(link(json!({"alertLabels": {"cluster": "prod-1"}})), or_all);
    let of_alert = json!({"alerts": {"CronwheelFences": {"labels": {"cluster": "prod-1"}}}});
    assert_eq!(link(of_alert), or_all);
}
