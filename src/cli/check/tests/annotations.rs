//! Annotations that have no effect.

use serde_json::json;

use super::{cron_job, line};
use crate::cli::check::{annotations::Ineffective, options::Defaults};

#[test]
fn annotations_without_an_effect_are_named_with_what_mends_them() {
    let shop = json!({"metadata": {"name": "shop", "annotations": {"cronwheel.dev/schedule": "@daily", "team": "a"}}});
    let mut ineffective = Defaults::new(&Ok(vec![shop])).ineffective;
    let annotated = |annotations| cron_job(json!({"metadata": {"annotations": annotations}}));
    ineffective.add_cron_job(&annotated(
        json!({"cronwheel.dev/spread": "10m", "cronwheel.dev/run-now-done": "t1"}),
    ));
    ineffective.add_cron_job(&annotated(
        json!({"cronwheel.dev/missed-run": "skip", "cronwheel.dev/freeze-until": "2026-05-06T00:00:00Z"}),
    ));
    let label = json!({"metadata": {"name": "backup", "labels": {"cronwheel.dev/spread": "10m", "app": "a"}}});
    ineffective.add_cron_job(&cron_job(label));
    assert_eq!(
        line(&ineffective.finding().unwrap()),
        "! annotations: 3 objects with annotations or labels under cronwheel.dev/ that have no effect: namespace shop \
         (cronwheel.dev/schedule: set it on each CronJob), shop/report (cronwheel.dev/freeze-until: set it on the \
         namespace, cronwheel.dev/missed-run: did you mean cronwheel.dev/missed-runs?), shop/backup (label cronwheel.dev/spread: set it \
         as an annotation) -> correct their names or places, or remove them"
    );
}

#[test]
fn without_such_annotations_nothing_is_said() {
    let mut ineffective = Ineffective::default();
    ineffective.add_cron_job(&cron_job(
        json!({"metadata": {"annotations": {"cronwheel.dev/spread": "10m"}}}),
    ));
    assert_eq!(ineffective.finding(), None);
}

#[test]
fn defaults_of_namespaces_that_no_replica_reads_are_named() {
    let shop = json!({"metadata": {"name": "shop", "annotations": {
        "cronwheel.dev/spread": "10m", "cronwheel.dev/alerts": "none", "cronwheel.dev/freeze-until": "2026-05-06T00:00:00Z",
    }}});
    let other = json!({"metadata": {"name": "other", "annotations": {"team": "a"}}});
    let ineffective = Defaults::without_effect(&Ok(vec![shop, other])).ineffective;
    assert_eq!(
        line(&ineffective.finding().unwrap()),
        "! annotations: 1 object with annotations or labels under cronwheel.dev/ that have no effect: namespace shop \
         (cronwheel.dev/spread, cronwheel.dev/alerts: set it on each CronJob, or give the replicas a \
         --namespace-selector) -> correct their names or places, or remove them"
    );
}
