//! The run that a CronJob is asked for by the option `run-now`.

use crate::shard::CronJobRecord;

/// Whether the run is answered, and the name of its Job. `is_refused` is whether the run is refused now.
pub(super) fn run_lines(record: &CronJobRecord, is_refused: bool) -> Vec<String> {
    let Some(token) = record.schedule.options().run_now.as_deref() else {
        return Vec::new();
    };
    let job = record.run_job_name(token);
    let text = if record.status.is_run_done(token) {
        format!("that run is answered: its job was {job}, unless an Event says that it was refused")
    } else if is_refused {
        "that run is refused now, and gets no job: see the Event below".to_owned()
    } else {
        format!("that run is not answered yet: its job will be {job}")
    };
    vec![text]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kube_api::objects::decode::Decoder;

    #[test]
    fn a_run_that_is_asked_for_is_told_with_its_job() {
        let record = |annotations: &str| {
            let text = format!(
                r#"{{"metadata":{{"name":"hello","namespace":"shop","uid":"u","resourceVersion":"1",
                "creationTimestamp":"2026-01-01T00:00:00Z","annotations":{{{annotations}}}}},"spec":{{"jobTemplate":{{}}}}}}"#
            );
            Decoder::default().cron_job(&text).unwrap()
        };
        let lines = |annotations: &str| run_lines(&record(annotations), false);
        assert_eq!(lines(""), [""; 0]);
        let asked = lines(r#""cronwheel.dev/run-now":"t1""#).concat();
        assert!(
            asked.starts_with("that run is not answered yet: its job will be hello-run-"),
            "{asked}"
        );
        let refused = run_lines(&record(r#""cronwheel.dev/run-now":"t1""#), true);
        assert_eq!(
            refused,
            ["that run is refused now, and gets no job: see the Event below"]
        );
        let answered = lines(r#""cronwheel.dev/run-now":"t1","cronwheel.dev/run-now-done":"t1""#).concat();
        assert!(
            answered.starts_with("that run is answered: its job was hello-run-"),
            "{answered}"
        );
    }
}
