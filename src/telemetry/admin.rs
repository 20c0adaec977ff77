//! The endpoints for probes and scrapes: `/healthz`, `/readyz`, `/metrics`.

use std::{fmt::Write as _, time::Duration};

use axum::{
    Router,
    extract::State,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::get,
};
use tokio::net::TcpListener;

pub mod connections;

use self::connections::{ConnectionLimits, Connections};
use super::metrics::{Metrics, WatchHealth};
use crate::{
    controller::{
        clock::{Clock, ClockVerdict},
        permissions::MissingPermission,
        shutdown::{Phase, PhaseReceiver},
    },
    coordination::NoShardsReason,
    kube_api::http::WATCH_SILENCE_MAX,
};

/// The longest that the shard task may go without a turn. It has one about every second; after this it hangs, and a
/// restart helps.
const TURN_AGE_MAX: Duration = Duration::from_mins(1);

/// The longest silence of a watch that counts as healthy. An idle watch receives a bookmark about every minute, and the
/// transport ends a silent one after [`WATCH_SILENCE_MAX`]; the rest is for reopening it.
const SILENCE_MAX: Duration = Duration::from_mins(2);
const _: () = assert!(SILENCE_MAX.as_secs() >= WATCH_SILENCE_MAX.as_secs() + 30);

/// The state behind the endpoints.
#[derive(Clone, Debug)]
pub struct Admin {
    /// The metrics, and the state that the shard publishes.
    pub metrics: Metrics,
    /// The clock of this process.
    pub clock: Clock,
    /// The phase of the shutdown.
    pub phase: PhaseReceiver,
}

impl Admin {
    /// Serves until the process ends. Connections that scrapers hold open do not delay the end.
    pub async fn serve(self, listener: TcpListener) {
        let mut phase = self.phase.clone();
        let mut connections = Connections::new(self.router(), ConnectionLimits::ENDPOINTS);
        tokio::select! {
            biased;
            () = phase.reached(Phase::End) => {}
            never = connections.serve(listener) => match never {},
        }
    }

    /// The routes of the endpoints.
    pub fn router(self) -> Router {
        Router::new()
            .route("/healthz", get(healthz))
            .route("/readyz", get(readyz))
            .route("/metrics", get(metrics))
            .with_state(self)
    }

    /// The liveness failure, which a restart would repair. The end of a task ends the process, so a hanging task is the
    /// only such failure.
    fn liveness_failure(&self) -> Option<String> {
        let last_iteration = self.metrics.shard.borrow().last_iteration?;
        let age = self.clock.boot().since(last_iteration);
        (age > TURN_AGE_MAX).then(|| format!("the shard's task has not had a turn for {} seconds", age.as_secs()))
    }

    /// The readiness failures: why no Jobs are started at present.
    fn readiness_failures(&self) -> Vec<String> {
        let mut readiness_failures = Vec::new();
        if !self.metrics.shard.borrow().is_synced {
            readiness_failures.push("CronJobs and Jobs have not all been listed yet".to_owned());
        }
        for health in self.metrics.watch_health.silent_for(SILENCE_MAX) {
            readiness_failures.push(format!(
                "the watch of {} in {} has been silent for {} seconds",
                health.resource,
                health.scope,
                health.silence().as_secs()
            ));
        }
        let missing = self.metrics.permissions.borrow();
        let required = missing.iter().filter(|missing| missing.stops_everything());
        readiness_failures.extend(required.map(MissingPermission::explanation));
        // A failing watch repairs itself, so its error is only reported as the cause of another failure.
        if !readiness_failures.is_empty() {
            let reason = |(health, error): (WatchHealth, String)| {
                format!("the watch of {} in {} fails: {error}", health.resource, health.scope)
            };
            readiness_failures.extend(self.metrics.watch_health.failing().into_iter().map(reason));
        }
        if let Some(figures) = self.metrics.election_snapshot.borrow().clone()
            && let Some(reason) = figures.overview.no_shards_reason
            && !matches!(reason, NoShardsReason::SettingsDiffer { .. })
        {
            readiness_failures.push(format!("this replica takes no shards: {reason}"));
        }
        match self.clock.verdict() {
            ClockVerdict::Fine => {}
            ClockVerdict::Unknown => {
                readiness_failures.push("the clock has not been compared with the API server's yet".to_owned());
            }
            ClockVerdict::Alarm => readiness_failures.push(format!(
                "the clock is {:.1} seconds off the API server's",
                self.clock.skew().map_or(0.0, |skew| skew.as_secs_f64())
            )),
        }
        if self.phase.has_reached(Phase::HandOver) {
            readiness_failures.push("the process is going down".to_owned());
        }
        readiness_failures
    }

    /// The reason why a ready replica starts nothing for now. It counts as ready, because a rolling update with
    /// maxUnavailable 0 would otherwise never end the members that it waits for.
    fn waits_for(&self) -> Option<NoShardsReason> {
        let reason = self
            .metrics
            .election_snapshot
            .borrow()
            .clone()?
            .overview
            .no_shards_reason?;
        matches!(reason, NoShardsReason::SettingsDiffer { .. }).then_some(reason)
    }
}

/// The remarks of a ready replica: the reason why it starts nothing for now, that no namespace is managed, the namespaces in which it cannot start
/// Jobs, and other controllers of the same CronJobs. They are not failures: a rollout that switches the other
/// controller off must continue.
fn remarks(admin: &Admin) -> String {
    let mut text = String::new();
    if let Some(reason) = admin.waits_for() {
        // Writing to a string does not fail.
        let _ = writeln!(text, "this replica waits: {reason}");
    }
    if let Some(advice) = &admin.metrics.shard.borrow().no_namespace_advice {
        let _ = writeln!(text, "{advice}");
    }
    let missing = admin.metrics.permissions.borrow();
    for missing in missing.iter().filter(|missing| missing.permission.is_required) {
        let _ = writeln!(text, "{}", missing.explanation());
    }
    for sighting in admin.metrics.other_controllers.active(admin.clock.now()) {
        let _ = writeln!(text, "{sighting}");
    }
    text
}

async fn healthz(State(admin): State<Admin>) -> Response {
    report(admin.liveness_failure().as_slice(), "")
}

async fn readyz(State(admin): State<Admin>) -> Response {
    report(&admin.readiness_failures(), &remarks(&admin))
}

/// A header that Prometheus, and whatever scrapes like it, sends with each scrape.
const SCRAPE_HEADER: &str = "x-prometheus-scrape-timeout-seconds";

async fn metrics(State(admin): State<Admin>, headers: HeaderMap) -> Response {
    let now = admin.clock.now();
    let text = if headers.contains_key(SCRAPE_HEADER) {
        admin.metrics.scrape(now)
    } else {
        admin.metrics.render(now)
    };
    match text {
        Ok(text) => ([(header::CONTENT_TYPE, prometheus::TEXT_FORMAT)], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

fn report(failures: &[String], remarks: &str) -> Response {
    if failures.is_empty() {
        return (StatusCode::OK, format!("ok\n{remarks}")).into_response();
    }
    (StatusCode::SERVICE_UNAVAILABLE, failures.join("\n") + "\n").into_response()
}

#[cfg(test)]
mod tests {
    use axum::{body::Body, http::Request};
    use http_body_util::BodyExt;
    use jiff::SignedDuration;
    use tower::ServiceExt;

    use super::*;
    use crate::{
        controller::{
            permissions::PERMISSIONS,
            shutdown::{PhaseSender, phases},
        },
        kube_api::other_controllers::StatusWriter,
        shard::{CronJobIdentity, Scope, Uid},
    };

    struct Bench {
        admin: Admin,
        phases: PhaseSender,
    }

    impl Bench {
        fn new() -> Bench {
            let clock = Clock::simulated("2026-11-01T12:00:00Z".parse().unwrap());
            let phases = phases();
            let admin = Admin {
                metrics: Metrics::register(),
                clock,
                phase: phases.subscribe(),
            };
            Bench { admin, phases }
        }

        fn complete_lists(&self) {
            let shard = &self.admin.metrics.shard;
            shard.send_modify(|figures| figures.is_synced = true);
        }

        fn trust(&self) {
            self.admin.clock.compare(SignedDuration::ZERO);
        }

        async fn get(&self, path: &str) -> (u16, String) {
            let request = Request::get(path).body(Body::empty()).unwrap();
            let response = self.admin.clone().router().oneshot(request).await.unwrap();
            let status = response.status().as_u16();
            let body = response.into_body().collect().await.unwrap().to_bytes();
            (status, String::from_utf8(body.to_vec()).unwrap())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn readiness_names_every_failure() {
        let bench = Bench::new();
        let failures = "CronJobs and Jobs have not all been listed yet\nthe clock has not been compared with the API server's yet\n";
        assert_eq!(bench.get("/readyz").await, (503, failures.to_owned()));
        bench.complete_lists();
        bench.trust();
        assert_eq!(bench.get("/readyz").await, (200, "ok\n".to_owned()));
        bench.phases.advance(Phase::StopIntake);
        assert_eq!(
            bench.get("/readyz").await,
            (503, "the process is going down\n".to_owned())
        );
    }

    #[tokio::test(start_paused = true)]
    async fn only_a_missing_permission_needed_everywhere_fails_readiness() {
        let bench = Bench::new();
        bench.trust();
        bench.complete_lists();
        let missing = |verb: &str, resource: &str| MissingPermission {
            permission: *PERMISSIONS
                .iter()
                .find(|it| (it.verb, it.resource) == (verb, resource))
                .unwrap(),
            scopes: vec![Scope::Namespace("shop".into())],
            n_needed: 1,
        };
        let snapshot = &bench.admin.metrics.permissions;
        snapshot.send_replace(vec![missing("update", "cronjobs/status"), missing("delete", "jobs")]);
        assert_eq!(bench.get("/readyz").await.0, 200);
        snapshot.send_replace(vec![missing("create", "jobs")]);
        let (status, text) = bench.get("/readyz").await;
        assert_eq!(status, 503);
        assert!(text.contains("create jobs in namespace shop: no Job starts"), "{text}");
        assert!(text.contains("deploy/manifests/rbac.yaml"), "{text}");
        // The other namespaces work, and a rolling update must continue.
        snapshot.send_replace(vec![MissingPermission {
            n_needed: 2,
            ..missing("create", "jobs")
        }]);
        let (status, text) = bench.get("/readyz").await;
        assert_eq!(status, 200);
        assert!(text.contains("create jobs in namespace shop: no Job starts"), "{text}");
        snapshot.send_replace(Vec::new());
        assert_eq!(bench.get("/readyz").await, (200, "ok\n".to_owned()));
    }

    #[tokio::test(start_paused = true)]
    async fn another_controller_is_reported_until_its_evidence_is_old() {
        let bench = Bench::new();
        bench.trust();
        bench.complete_lists();
        let (others, now) = (&bench.admin.metrics.other_controllers, bench.admin.clock.now());
        others.begin(now, "kube-system/cronwheel".into());
        let cron_job = CronJobIdentity {
            namespace: "shop".into(),
            name: "report".into(),
            uid: Uid::new("1"),
        };
        let later = now + Duration::from_secs(10);
        others.note_status_write(&cron_job, &StatusWriter::other("k3s", later).unwrap());
        let expected = "ok\nanother controller wrote the status of CronJob shop/report: field manager k3s, at \
                        2026-11-01T12:00:10Z; only one may run these CronJobs: cronwheel check shows whether the \
                        admission policy refuses its writes; without the policy, append ,-cronjob-controller to \
                        --controllers of kube-controller-manager (* if it is not set)\n";
        assert_eq!(bench.get("/readyz").await, (200, expected.to_owned()));
        let gauge = |value| format!("cronwheel_other_controller_active{{evidence=\"status_write\"}} {value}\n");
        assert!(bench.get("/metrics").await.1.contains(&gauge(1)));
        tokio::time::sleep(Duration::from_secs(610)).await;
        bench.trust();
        assert_eq!(bench.get("/readyz").await, (200, "ok\n".to_owned()));
        assert!(bench.get("/metrics").await.1.contains(&gauge(0)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_wrong_clock_fails_readiness() {
        let bench = Bench::new();
        bench.complete_lists();
        bench.admin.clock.compare(SignedDuration::from_mins(1));
        let (status, text) = bench.get("/readyz").await;
        assert_eq!(status, 503);
        assert!(text.contains("-60.5 seconds off"), "{text}");
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_silent_for_more_than_two_minutes_fails_readiness() {
        let bench = Bench::new();
        let metrics = &bench.admin.metrics;
        bench.complete_lists();
        let begin = |resource, scope| metrics.watch_health.begin(resource, scope, bench.admin.clock.clone());
        let cron_jobs = begin("cronjobs", Scope::Cluster);
        let jobs = begin("jobs", Scope::Namespace("shop".into()));
        tokio::time::sleep(Duration::from_mins(2)).await;
        bench.trust();
        assert_eq!(bench.get("/readyz").await.0, 200);
        cron_jobs.note_activity();
        tokio::time::sleep(Duration::from_secs(1)).await;
        let expected = "the watch of jobs in namespace shop has been silent for 121 seconds\n";
        assert_eq!(bench.get("/readyz").await, (503, expected.to_owned()));
        jobs.note_activity();
        assert_eq!(bench.get("/readyz").await.0, 200);
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_error_is_shown_while_the_replica_is_not_ready() {
        let bench = Bench::new();
        bench.trust();
        let metrics = &bench.admin.metrics;
        let jobs = metrics
            .watch_health
            .begin("jobs", Scope::Cluster, bench.admin.clock.clone());
        jobs.failed("jobs.batch is forbidden (403)".to_owned());
        let unlisted = "CronJobs and Jobs have not all been listed yet\n";
        let failing = "the watch of jobs in all namespaces fails: jobs.batch is forbidden (403)\n";
        assert_eq!(bench.get("/readyz").await, (503, format!("{unlisted}{failing}")));
        jobs.note_activity();
        assert_eq!(bench.get("/readyz").await, (503, unlisted.to_owned()));

        bench.complete_lists();
        jobs.failed("jobs.batch is forbidden (403)".to_owned());
        assert_eq!(bench.get("/readyz").await.0, 200);
        tokio::time::sleep(SILENCE_MAX + Duration::from_secs(1)).await;
        bench.trust();
        let silent = "the watch of jobs in all namespaces has been silent for 121 seconds\n";
        assert_eq!(bench.get("/readyz").await, (503, format!("{silent}{failing}")));
    }

    #[tokio::test(start_paused = true)]
    async fn health_fails_if_the_shard_task_hangs_after_its_first_turn() {
        let bench = Bench::new();
        tokio::time::sleep(Duration::from_hours(1)).await;
        assert_eq!(bench.get("/healthz").await.0, 200);
        let last_iteration = Some(bench.admin.clock.boot());
        bench
            .admin
            .metrics
            .shard
            .send_modify(|figures| figures.last_iteration = last_iteration);
        tokio::time::sleep(Duration::from_secs(30)).await;
        assert_eq!(bench.get("/healthz").await.0, 200);
        tokio::time::sleep(Duration::from_secs(31)).await;
        assert_eq!(bench.get("/healthz").await.0, 503);
    }

    #[tokio::test(start_paused = true)]
    async fn metrics_are_in_the_text_format() {
        let (status, text) = Bench::new().get("/metrics").await;
        assert_eq!(status, 200);
        assert!(text.contains("# TYPE cronwheel_lateness_seconds histogram"), "{text}");
    }
}
