//! What the API server would refuse, the chart refuses by the name of the value.

use serde_json::json;

use super::render;

#[test]
fn values_that_the_api_server_refuses_are_refused_by_their_names() {
    for (values, name) in [
        (
            json!({"autoscaling": {"enabled": true, "minReplicas": 5, "maxReplicas": 2}}),
            "autoscaling.minReplicas",
        ),
        (
            json!({"podDisruptionBudget": {"maxUnavailable": "150%"}}),
            "podDisruptionBudget/maxUnavailable",
        ),
        (json!({"dnsPolicy": "None"}), "dnsConfig.nameservers"),
        (
            json!({"dnsPolicy": "None", "dnsConfig": {"searches": ["a.example"]}}),
            "dnsConfig.nameservers",
        ),
        (
            json!({"dnsConfig": {"nameservers": ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"]}}),
            "dnsConfig/nameservers",
        ),
        (
            json!({"livenessProbe": {"successThreshold": 2}}),
            "livenessProbe/successThreshold",
        ),
        (
            json!({"readinessProbe": {"terminationGracePeriodSeconds": 7}}),
            "terminationGracePeriodSeconds",
        ),
        (json!({"replicaCount": 2_147_483_648_u64}), "replicaCount"),
    ] {
        let error = render(&values).unwrap_err();
        assert!(error.contains(name), "{values}: {error}");
    }
    for values in [
        json!({"autoscaling": {"enabled": true, "minReplicas": 2, "maxReplicas": 2}}),
        json!({"autoscaling": {"enabled": false, "minReplicas": 5, "maxReplicas": 2}}),
        json!({"podDisruptionBudget": {"maxUnavailable": "100%"}}),
    ] {
        render(&values).unwrap();
    }
}
