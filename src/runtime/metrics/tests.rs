use super::*;

#[test]
fn a_request_is_counted_by_verb_resource_and_code() {
    let metrics = Metrics::register().unwrap();
    metrics
        .dispatch
        .api
        .record(ApiCall::CreateJob, Some(201), Duration::from_millis(4));
    metrics
        .dispatch
        .api
        .record(ApiCall::CreateJob, Some(201), Duration::from_millis(4));
    metrics
        .status
        .api
        .record(ApiCall::WriteStatus, None, Duration::from_secs(1));
    let text = metrics.render().unwrap();
    for line in [
        r#"cronwheel_api_requests_total{code="201",resource="jobs",verb="create"} 2"#,
        r#"cronwheel_api_requests_total{code="none",resource="cronjobs/status",verb="update"} 1"#,
        r#"cronwheel_api_request_duration_seconds_count{resource="jobs",verb="create"} 2"#,
    ] {
        assert!(text.lines().any(|have| have == line), "{line} is not in\n{text}");
    }
}

#[test]
fn the_calls_stand_in_the_order_of_their_numbers() {
    for (position, call) in ApiCall::ALL.into_iter().enumerate() {
        assert_eq!(call as usize, position, "{call:?}");
    }
}
