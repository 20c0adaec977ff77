//! The Prometheus that scrapes the replicas, and its query results.

use std::path::Path;

use serde_json::{Value, json};

pub(super) const ALERTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/deploy/helm/cronwheel/files/alerts.yaml");

pub(super) struct Prometheus(testbed::Prometheus);

impl Prometheus {
    /// Starts Prometheus with our rules. It scrapes these addresses every second.
    pub(super) fn start(folder: &Path, replicas: &[String]) -> Prometheus {
        let configuration = json!({
            "global": {"scrape_interval": "1s", "evaluation_interval": "5s"},
            "rule_files": [ALERTS],
            "scrape_configs": [{
                "job_name": "cronwheel",
                "static_configs": [{"targets": replicas, "labels": {"namespace": "kube-system", "cluster": "test-bed"}}],
            }],
        });
        Prometheus(testbed::Prometheus::start(folder, &configuration.to_string(), &[]).unwrap())
    }

    /// The values that a query returns, without NaN.
    pub(super) fn values(&self, expression: &str) -> Vec<f64> {
        let series = self.query("query", expression, "");
        let value = |series: &Value| series["value"][1].as_str().unwrap().parse::<f64>().unwrap();
        series
            .as_array()
            .unwrap()
            .iter()
            .map(value)
            .filter(|value| value.is_finite())
            .collect()
    }

    /// The result of a query, with further parameters of the path.
    pub(super) fn query(&self, kind: &str, expression: &str, parameters: &str) -> Value {
        let (code, body) = self.0.client().query(kind, expression, parameters).unwrap();
        assert_eq!(code, 200, "Prometheus refuses {expression}: {body}");
        let mut response: Value = serde_json::from_str(&body).unwrap();
        response["data"]["result"].take()
    }

    /// The rules of all groups, with their states.
    pub(super) fn rules(&self) -> Vec<Value> {
        let (_, body) = self.0.client().get("/api/v1/rules").unwrap();
        let response: Value = serde_json::from_str(&body).unwrap();
        let groups = response["data"]["groups"].as_array().unwrap();
        groups
            .iter()
            .flat_map(|group| group["rules"].as_array().unwrap().clone())
            .collect()
    }
}
