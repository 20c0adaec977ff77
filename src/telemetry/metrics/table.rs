//! The table of all metrics, with the meaning of each, and the action when it moves. Documentation, dashboards and
//! alerts are checked against this list.

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricSpec {
    /// The name of the metric.
    pub name: &'static str,
    /// The kind of the metric.
    pub kind: MetricKind,
    /// The names of the labels; each label has a small, fixed set of values, except those that name a CronJob.
    pub labels: &'static [&'static str],
    /// The help text.
    pub help: &'static str,
    /// What an operator should do when the metric moves.
    pub when_it_moves: &'static str,
}

/// The kind of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// Only rises.
    Counter,
    /// Rises and falls.
    Gauge,
    /// Counts observations by size.
    Histogram,
}

macro_rules! table {
    ($($constant:ident: $kind:ident $name:literal [$($label:literal),*] $help:literal, $when:literal;)*) => {
        $(
            #[doc = concat!("The metric `", $name, "`.")]
            pub const $constant: MetricSpec = MetricSpec {
                name: $name,
                kind: MetricKind::$kind,
                labels: &[$($label),*],
                help: $help,
                when_it_moves: $when,
            };
        )*

        /// Every metric.
        pub const ALL: &[MetricSpec] = &[$($constant),*];
    };
}

table! {
    JOB_CREATION_SKEW: Histogram "cronjob_controller_job_creation_skew_duration_seconds" []
        "Time between when a cronjob is scheduled to be run, and when the corresponding job is created.",
        "A metric of the built-in controller too. The difference from cronwheel_lateness_seconds is time in the API server.";
    LATENESS: Histogram "cronwheel_lateness_seconds" []
        "Time from a slot until the request that creates its Job is handed to a connection, for each created Job. A run that is caught up on counts from its slot. Runs that their tenant delays do not count.",
        "The API server is slow or throttles, or there was an outage. Look at cronwheel_dispatch_backlog and cronwheel_dispatch_inflight_limit.";
    DUE_INSTANTS: Counter "cronwheel_due_instants_total" []
        "Instants that became due. The sum of the outcomes and the open instants.",
        "Follows the schedules of the cluster.";
    INSTANT_OUTCOMES: Counter "cronwheel_instant_outcomes_total" ["outcome"]
        "Due instants that ended, by outcome: a Job, or the reason why there is none.",
        "created and adopted are runs that started; handed_over counts again at the next leader. Every other outcome is a run that did not start; the log names those that are lost.";
    INSTANTS_OPEN: Gauge "cronwheel_instants_open" []
        "Due instants that have not ended: ordered, retried, or held back by a running Job.",
        "Rises in a burst and falls again. If it stays up, look at the outcomes of requests.";
    RUNS_ASKED_FOR: Counter "cronwheel_runs_asked_for_total" ["result"]
        "Runs that users asked for by the option run-now, by result: created, refused by Forbid, or failed.",
        "The Events RunNowRefused and FailedCreate on the CronJob have the reason.";
    UNEXPECTED_JOBS: Counter "cronwheel_unexpected_jobs_total" []
        "Jobs whose controller is a CronJob but that no run of it explains: manual runs, Jobs in another namespace, Jobs for a slot in the future. They have no effect on the schedule.",
        "Expected where people start Jobs by hand. Otherwise find out who creates them.";
    API_REQUESTS: Counter "cronwheel_api_requests_total" ["verb", "resource", "code"]
        "Requests to the API server by HTTP status of the answer, including pages of lists and openings of watches. The code is none if there was no answer.",
        "429: the API server throttles. 403: a permission is missing. 409 on statuses: another writer. none: the network or the API server is down.";
    PERMISSIONS_MISSING: Gauge "cronwheel_permissions_missing" ["verb", "resource"]
        "Namespaces in which the account lacks a permission; 1 for a missing cluster-wide permission.",
        "Apply deploy/manifests/rbac.yaml. The log names the namespaces and the consequence; /readyz fails if no Job starts.";
    API_REQUEST_DURATION: Histogram "cronwheel_api_request_duration_seconds" ["verb", "resource"]
        "Time from handing a request to a connection until its answer. Lists, watches and Lease requests: until the beginning of the answer.",
        "The API server or the network is slow. The limit of requests in flight adapts by itself.";
    DISPATCH_BACKLOG: Gauge "cronwheel_dispatch_backlog" ["lane"]
        "Job requests that wait to be sent, by kind of queue.",
        "Rises in a burst. If it does not fall, the API server accepts fewer creates than are due.";
    DISPATCH_BUSY: Gauge "cronwheel_dispatch_busy_seconds" []
        "Time for which creates have waited to be sent without a pause; 0 while none waits.",
        "Up to a minute in a burst is normal. If it grows for minutes, the API server accepts fewer creates than are due.";
    DISPATCH_INFLIGHT: Gauge "cronwheel_dispatch_inflight" []
        "Job requests in flight.",
        "At cronwheel_dispatch_inflight_limit for long: the API server is the bottleneck. Above it: creates wait for admission webhooks.";
    DISPATCH_INFLIGHT_LIMIT: Gauge "cronwheel_dispatch_inflight_limit" []
        "Current limit of Job requests that were sent within the last second and are in flight. It adapts to the answers of the API server.",
        "At its minimum: the API server throttles cronwheel. Look at its priority and fairness configuration.";
    QUEUE_OVERFLOWS: Counter "cronwheel_queue_overflows_total" ["queue"]
        "Requests that found their queue full and are retried later.",
        "More CronJobs than one replica can serve, or a long outage of the API server.";
    STATUS_PENDING: Gauge "cronwheel_status_pending" []
        "Status writes that wait, merged per CronJob.",
        "Rises in a burst, since statuses wait behind creates. If it does not fall, the API server is slow or down.";
    STATUS_OLDEST: Gauge "cronwheel_status_oldest_seconds" []
        "Time since the first change in the oldest status write that waits; 0 while none waits.",
        "Above the flush interval and the duration of a burst: the API server is slow or down, or refuses the writes.";
    STATUS_AGE: Histogram "cronwheel_status_age_seconds" []
        "Time from the first change in a status write until the write is sent.",
        "Above the flush interval: statuses wait behind creates, or the API server is slow.";
    WHEEL_ENTRIES: Gauge "cronwheel_wheel_entries" []
        "Armed timers.",
        "Follows the number of CronJobs.";
    MANAGED_NAMESPACES: Gauge "cronwheel_managed_namespaces" []
        "Namespaces that match --namespace-selector. No series without that flag.",
        "Follows the labels. 0: cronwheel runs nothing; /readyz names the command that labels a namespace.";
    CRON_JOBS: Gauge "cronwheel_cron_jobs" []
        "CronJobs of managed namespaces in memory.",
        "Follows the cluster.";
    CRON_JOBS_LED: Gauge "cronwheel_cron_jobs_led" []
        "CronJobs of managed namespaces in the shards that this replica leads. 0 while it may not act.",
        "Follows the cluster and the number of replicas. An autoscaler uses it: docs/operate/sizing.md.";
    LED_RATIO: Gauge "cronwheel_led_ratio" []
        "Part of the installation's shards that this replica leads. The sum over all replicas is 1 unless a shard has no leader or a replica was not scraped.",
        "Changes when replicas come and go. A sum below 1 for long: look at cronwheel_shards_unowned, and at the scrapes.";
    JOBS: Gauge "cronwheel_jobs" []
        "Jobs of CronJobs in memory, of all watched namespaces.",
        "Follows the cluster. History limits and ttlSecondsAfterFinished bound it.";
    TEMPLATE_BYTES: Gauge "cronwheel_template_bytes" []
        "Memory for templates and metadata of CronJobs, in bytes. --max-template-memory bounds it.",
        "Follows the cluster. Near half of the bound, one namespace may have large CronJobs.";
    TEMPLATES_NOT_KEPT: Gauge "cronwheel_templates_not_kept" []
        "CronJobs whose template is not in memory. They run like all others, at the cost of one more request per run.",
        "One namespace has large CronJobs; the Events TemplateNotKept name them. If they are legitimate, raise --max-template-memory.";
    CRON_JOBS_REFUSED: Gauge "cronwheel_cron_jobs_refused" []
        "CronJobs whose last create the API server refused. Each is tried again by its own back-off.",
        "The Events FailedCreate name the causes: a quota, an admission webhook or policy, or a permission.";
    NAMESPACES_REFUSED: Gauge "cronwheel_namespaces_refused" []
        "Namespaces with a CronJob whose last create the API server refused, of the CronJobs that this replica leads.",
        "One: a quota, or the Job itself. Many at once: an admission webhook or policy of the cluster, or a permission.";
    CRON_JOB_TROUBLE: Gauge "cronwheel_cron_job_trouble" ["namespace", "cronjob", "kind", "owner"]
        "1 for a CronJob in trouble, by kind; no series while it is in none. owner is the value of --trouble-label. At most 500 series in an installation.",
        "Tell the owner of the namespace, and look at the Events of the CronJob. The section below describes the kinds.";
    CRON_JOB_TROUBLE_SINCE: Gauge "cronwheel_cron_job_trouble_since_timestamp_seconds" ["namespace", "cronjob", "kind"]
        "Unix time at which the trouble began, for each series of cronwheel_cron_job_trouble.",
        "Tells trouble of years from trouble of this night: compare it with restarts, deployments and other CronJobs.";
    CRON_JOB_TROUBLE_OMITTED: Gauge "cronwheel_cron_job_trouble_omitted" ["kind"]
        "CronJobs in trouble without a series in cronwheel_cron_job_trouble, by kind, because there are too many.",
        "Very many CronJobs fail at once: look for one cause, such as an image registry, a quota or an admission webhook.";
    EVENTS: Counter "cronwheel_events_total" ["result"]
        "Events by result: posted, count raised, or dropped with the reason.",
        "Dropped Events lose no runs. dropped_over_budget: above --max-events-per-second. dropped_too_many: too many of one CronJob. dropped_filtered: by --events. dropped_queue_full: too many at once. dropped_failed: the API server refused the Event or was down.";
    UNDECODABLE_OBJECTS: Counter "cronwheel_undecodable_objects_total" ["resource"]
        "Received objects that could not be decoded.",
        "An Event on the CronJob names the field. Other CronJobs are not affected.";
    PANICS: Counter "cronwheel_panics_total" []
        "Panics while a CronJob was handled or examined for trouble. If handled, it starts nothing until it changes; all others go on.",
        "A fault of cronwheel. The log names the CronJob and the cause: report them.";
    CRON_JOBS_UNDECODABLE: Gauge "cronwheel_cron_jobs_undecodable" []
        "CronJobs of managed namespaces that cannot be decoded. They start nothing. Every replica counts all of them.",
        "An Event on the CronJob names the field. Other CronJobs are not affected.";
    CRON_JOBS_PANICKED: Gauge "cronwheel_cron_jobs_panicked" []
        "CronJobs of managed namespaces on which cronwheel panicked, until they change. Every replica counts its own panics.",
        "A fault of cronwheel. The log names the CronJob and the cause: report them.";
    WATCH_ERRORS: Counter "cronwheel_watch_errors_total" ["resource"]
        "Watches that failed and were reopened.",
        "Occasional failures are normal. A steady rise points to the network or to a permission.";
    WATCH_SILENCE: Gauge "cronwheel_watch_silence_seconds" ["resource"]
        "Time since a watch last received something: an event, a bookmark, or a part of a list. The longest of all watches of the resource.",
        "Up to a minute is normal. Above two minutes /readyz fails: the API server or the network is down, or a permission is missing.";
    RELISTS: Counter "cronwheel_relists_total" ["resource"]
        "Complete lists, including the first.",
        "A steady rise: watches fail and cannot resume at their resource version, or do not deliver what a takeover waits for.";
    CLOCK_SKEW: Gauge "cronwheel_clock_skew_seconds" []
        "This replica's clock minus the API server's, without --clock-offset, to about half a second. Of several API servers, the one of median distance.",
        "Fix the time service of this node or of the API server's.";
    CLOCK_ALARM: Gauge "cronwheel_clock_alarm" []
        "1 while the clock differs from the API server's by more than --max-clock-skew over more than half of the connections. No Job starts meanwhile.",
        "Runs are held back. Fix the time service of this node or of the API server's.";
    CLOCK_RETIRED_CONNECTIONS: Counter "cronwheel_clock_retired_connections_total" []
        "Connections that were replaced because the clock of their API server differs from this replica's.",
        "If cronwheel_clock_alarm stays at 0, the clock of one API server is wrong: fix its time service. Runs are not affected.";
    LEADER: Gauge "cronwheel_leader" []
        "Shards that this replica leads.",
        "Changes when replicas come and go.";
    TAKES_NO_SHARDS: Gauge "cronwheel_takes_no_shards" ["reason"]
        "1 with the reason why this replica takes no shards; no series while it takes them.",
        "protocol_differs: change the version. settings_differ: ends when the last replica with other settings stops. fenced: the API server or the network. unwilling: the clock.";
    SHARDS_UNOWNED: Gauge "cronwheel_shards_unowned" []
        "Shards without a live leader, as this replica observes.",
        "Briefly after a crash. If it stays up, no replica is ready.";
    SHARDS_UNOWNED_AGE: Gauge "cronwheel_shards_unowned_age_seconds" []
        "Longest time that a shard has been without a leader.",
        "Above 11 seconds: replicas observe the Leases and cannot take the shards. Look at their logs and permissions.";
    LEASE_RENEW_AGE: Gauge "cronwheel_lease_renew_age_seconds" []
        "Time since this replica sent the renewal that its leadership is based on.",
        "Up to 3 seconds is normal. At 7 seconds the replica stops acting: the API server is slow or down.";
    HANDOVER_DURATION: Histogram "cronwheel_handover_duration_seconds" ["side"]
        "Duration of handovers. side given: from the seal until the Lease names the next leader. side taken: from that Lease until this replica acts.",
        "The API server is slow, or creates of moving shards stay unanswered for nine seconds.";
    LEASE_FENCES: Counter "cronwheel_fences_total" []
        "Times that this replica stopped acting because its Lease was not renewed in time.",
        "The API server was slow or down, or the process did not run: look at its CPU limit.";
    FENCED_REQUESTS: Counter "cronwheel_fenced_requests_total" ["queue"]
        "Requests that were not sent because this replica no longer led their shard.",
        "Rises when replicas come and go. The next leader decides them again.";
    LEASE_EVICTIONS: Counter "cronwheel_evictions_total" []
        "Members that this replica tried to evict because their Lease expired.",
        "A replica crashed, froze or lost the API server.";
    LEASE_REJOINS: Counter "cronwheel_rejoins_total" []
        "Times that this replica lost its membership and returned as a new member.",
        "It was evicted or frozen, or its Lease was deleted: see its log.";
    OTHER_CONTROLLER: Gauge "cronwheel_other_controller_active" ["evidence"]
        "1 for ten minutes after another controller acted on CronJobs of this replica: a status write by another field manager, a Job that cronwheel did not create, or a Job of another installation. policy is 1 while a policy of --built-in-policy is missing.",
        "The built-in controller was not switched off, its admission policy is gone, or another installation works in the same namespaces. The log and /readyz name the CronJob and the field manager, or the Job and the installation.";
    BUILD: Gauge "cronwheel_build_info" ["version", "tzdb"]
        "1, labelled with the version of cronwheel and of its time zone data.",
        "Changes with an upgrade.";
    PROCESS_CPU: Counter "process_cpu_seconds_total" []
        "Total user and system CPU time spent in seconds.",
        "Follows the runs. The rate times 1000 is the processor time in millicores.";
    PROCESS_OPEN_FDS: Gauge "process_open_fds" []
        "Number of open file descriptors.",
        "A few connections to each API server and each scraper. A steady rise is a leak: report it.";
    PROCESS_MAX_FDS: Gauge "process_max_fds" []
        "Maximum number of open file descriptors.",
        "A setting of the container runtime.";
    PROCESS_VIRTUAL_MEMORY: Gauge "process_virtual_memory_bytes" []
        "Virtual memory size in bytes.",
        "Reserved address space, not memory in use.";
    PROCESS_RESIDENT_MEMORY: Gauge "process_resident_memory_bytes" []
        "Resident memory size in bytes.",
        "Follows the number and size of CronJobs. Near the memory limit, raise the limit: docs/operate/sizing.md.";
    PROCESS_START_TIME: Gauge "process_start_time_seconds" []
        "Start time of the process since unix epoch in seconds.",
        "Changes when the container restarts: look at the log of the former container.";
    PROCESS_THREADS: Gauge "process_threads" []
        "Number of OS threads in the process.",
        "Constant after the start.";
}
