//! Every metric by name, with what it says and what to do when it moves: the one list that the documentation, the
//! dashboards and the alerts are checked against.

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricSpec {
    /// Its name.
    pub name: &'static str,
    /// What kind of metric it is.
    pub kind: MetricKind,
    /// The names of its labels; each has a small, fixed set of values.
    pub labels: &'static [&'static str],
    /// What it says.
    pub help: &'static str,
    /// What to do when it moves.
    pub when_it_moves: &'static str,
}

/// The kind of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricKind {
    /// Only rises.
    Counter,
    /// Rises and falls.
    Gauge,
    /// Counts by size.
    Histogram,
}

macro_rules! table {
    ($($constant:ident: $kind:ident $name:literal [$($label:literal),*] $help:literal, $when:literal;)*) => {
        $(
            #[doc = $help]
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
        "The built-in controller's metric (B-15.1): compare with cronwheel_lateness_seconds; what is more is the API server's.";
    LATENESS: Histogram "cronwheel_lateness_seconds" []
        "Time from a slot to the moment when the first request for its Job is handed to a connection; not of starts that were held back or are caught up on.",
        "Look at cronwheel_dispatch_backlog and cronwheel_dispatch_inflight_limit: the API server is slow or throttles.";
    DUE_INSTANTS: Counter "cronwheel_due_instants_total" []
        "Instants that became due: always the outcomes and the open instants together.",
        "It follows the schedules of the cluster.";
    INSTANT_OUTCOMES: Counter "cronwheel_instant_outcomes_total" ["outcome"]
        "Due instants that ended, by how: as a Job or by a named reason.",
        "Anything but created is a run that did not start; the reason says which rule held it back, an Event says whose.";
    INSTANTS_OPEN: Gauge "cronwheel_instants_open" []
        "Due instants that have not ended: ordered, being retried, or held back by a running Job.",
        "It rises in a burst and falls again; if it stays up, look at the outcomes of requests.";
    UNEXPECTED_JOBS: Counter "cronwheel_unexpected_jobs_total" []
        "Jobs that name a CronJob as their controller and that no run of it explains: manual runs, Jobs in another namespace, Jobs for a slot in the future. They have no effect (B-5.1).",
        "Nothing, unless nobody starts Jobs by hand.";
    API_REQUESTS: Counter "cronwheel_api_requests_total" ["verb", "resource", "code"]
        "Answers of the API server to our requests by HTTP status, pages of lists and openings of watches among them; the code is none where there was no answer.",
        "429 is throttling, 403 a missing permission, 409 on statuses another writer, none a network or a server that is down.";
    PERMISSIONS_MISSING: Gauge "cronwheel_permissions_missing" ["verb", "resource"]
        "Namespaces in which the account lacks a permission; 1 where it lacks a cluster-wide one.",
        "Apply deploy/manifests/rbac.yaml. The log names the namespaces and the consequence; /readyz fails where no Job starts.";
    API_REQUEST_DURATION: Histogram "cronwheel_api_request_duration_seconds" ["verb", "resource"]
        "Time from handing a request to a connection to its answer; of lists and watches to the beginning of it.",
        "The API server or the way to it is slow; the limit of requests in flight follows by itself.";
    DISPATCH_BACKLOG: Gauge "cronwheel_dispatch_backlog" ["lane"]
        "Requests about Jobs that wait to be sent: creates, and what goes behind them.",
        "A burst; if it does not fall, the API server takes fewer creates than are due.";
    DISPATCH_INFLIGHT: Gauge "cronwheel_dispatch_inflight" []
        "Requests about Jobs that are on the way.",
        "At cronwheel_dispatch_inflight_limit for long: the API server is the limit.";
    DISPATCH_INFLIGHT_LIMIT: Gauge "cronwheel_dispatch_inflight_limit" []
        "How many requests about Jobs may be on the way at once, as learnt from the API server's answers.",
        "At its least: the API server throttles us, see its priority and fairness configuration.";
    QUEUE_OVERFLOWS: Counter "cronwheel_queue_overflows_total" ["queue"]
        "Requests that found their queue full and were handed back to be retried.",
        "More CronJobs than one replica is built for, or an API server that has been away for long; of labels, an admission policy that refuses the label of the shard.";
    STATUS_PENDING: Gauge "cronwheel_status_pending" []
        "Status writes that wait to be flushed, merged per CronJob.",
        "It rises in a burst, statuses go behind creates; if it does not fall, the API server is slow or away.";
    STATUS_AGE: Histogram "cronwheel_status_age_seconds" []
        "Time from the first change that a status write carries to the moment when it is sent.",
        "Above the flush interval: statuses wait behind creates, or the API server is slow.";
    WHEEL_ENTRIES: Gauge "cronwheel_wheel_entries" []
        "Timers that are armed.",
        "It follows the number of CronJobs.";
    CRON_JOBS: Gauge "cronwheel_cron_jobs" []
        "CronJobs that are kept.",
        "It follows the cluster.";
    JOBS: Gauge "cronwheel_jobs" []
        "Jobs of CronJobs that are kept.",
        "It follows the cluster; history limits and ttlSecondsAfterFinished bound it.";
    TEMPLATE_BYTES: Gauge "cronwheel_template_bytes" []
        "Bytes of templates and metadata of CronJobs that are kept in memory; --max-template-memory bounds them.",
        "It follows the cluster. Near half of the bound one namespace may have large CronJobs.";
    TEMPLATES_NOT_KEPT: Gauge "cronwheel_templates_not_kept" []
        "CronJobs whose template is not kept in memory. They run as the others, after one more request.",
        "Large CronJobs in one namespace, see the Events TemplateNotKept; if they are wanted, raise --max-template-memory.";
    EVENTS: Counter "cronwheel_events_total" ["result"]
        "Events by what became of them: posted, raised in count, or dropped and why.",
        "Drops lose no runs, only their notices. dropped_over_budget: more Events than --max-events-per-second; dropped_too_many: of one CronJob; dropped_filtered: by --events; dropped_queue_full: all at once; dropped_failed: the API server refused it or was away.";
    UNDECODABLE_OBJECTS: Counter "cronwheel_undecodable_objects_total" ["resource"]
        "Objects that were received and could not be understood.",
        "An Event on the CronJob says why; others are not affected.";
    WATCH_ERRORS: Counter "cronwheel_watch_errors_total" ["resource"]
        "Watches that broke and were begun again.",
        "Now and then is normal; a steady rise is a network or a permission.";
    WATCH_SILENCE: Gauge "cronwheel_watch_silence_seconds" ["resource"]
        "Time since the last sign of life of a watch: an event, a bookmark, a page of a list or its opening; of several watches of a resource the longest.",
        "Up to a minute is normal; beyond two minutes /readyz fails: the API server or the way to it is down, or a permission is missing.";
    RELISTS: Counter "cronwheel_relists_total" ["resource"]
        "Lists begun anew, the first included.",
        "A steady rise: watches break and their place in the history is gone.";
    START_OVERS: Counter "cronwheel_start_overs_total" []
        "Times that this process forgot everything and began anew because the history of the API server went back, as after a restore of etcd.",
        "Restore etcd with --bump-revision and --mark-compacted, and restart the API servers with it.";
    CRON_JOB_LISTS: Counter "cronwheel_cron_job_lists_total" ["selected_by"]
        "Lists of the CronJobs of some shards, by who left out those of others: the API server (shardSelector, KEP-5866), or this replica after it received them.",
        "With the feature gate ShardedListAndWatch on, replica counts an API server that does not have it; without, all are by the replica.";
    CRON_JOBS_PASSED_OVER: Counter "cronwheel_cron_jobs_passed_over_total" []
        "CronJobs that were received, in lists and watches, although their shards are not held here; only their uid was read.",
        "The work of an API server without ShardedListAndWatch, by other replicas' status writes; with it, a few when shards move.";
    CRON_JOBS_KEEP_OVERFLOWS: Counter "cronwheel_cron_jobs_keep_overflows_total" []
        "Times when an API server that does not select by shard sent more CronJobs than are kept, 64 MiB: those of a shard that is taken over are listed then.",
        "In a large cluster once after each list of the CronJobs; with the feature gate ShardedListAndWatch on it does not happen, and handovers are quicker.";
    CLOCK_SKEW: Gauge "cronwheel_clock_skew_seconds" []
        "Our clock minus the API server's, --clock-offset taken off, to about half a second; of several API servers the median.",
        "Mend the time service of this node or of the API server's.";
    CLOCK_ALARM: Gauge "cronwheel_clock_alarm" []
        "1 while our clock is further than --max-clock-skew from the API server's, over more than half of our connections, and nothing is fired.",
        "Runs are held back: mend the time service of this node or of the API server's.";
    CLOCK_RETIRED_CONNECTIONS: Counter "cronwheel_clock_retired_connections_total" []
        "Connections that were replaced because their API server's clock contradicts ours.",
        "If cronwheel_clock_alarm stays at 0, one API server's clock is wrong: mend its time service. Runs go on.";
    LEADER: Gauge "cronwheel_leader" []
        "Number of shards that this process leads; one without sharding.",
        "It moves when replicas come and go.";
    TAKES_NO_SHARDS: Gauge "cronwheel_takes_no_shards" ["reason"]
        "1 with the reason for which this replica takes no shards; nothing while it takes them.",
        "installation_differs and protocol_differs end by a change of its configuration or version alone, see its log; settings_differ ends when the last member with other settings stops taking shards; fenced is the API server or the way to it, unwilling the clock.";
    SHARDS_UNOWNED: Gauge "cronwheel_shards_unowned" []
        "Shards that no live replica leads, as this replica sees it.",
        "A moment of it is normal when a replica crashes; if it stays up, no replica is ready.";
    SHARDS_UNOWNED_AGE: Gauge "cronwheel_shards_unowned_age_seconds" []
        "For how long the shard that has been without a leader for longest has been so.",
        "Above 11 seconds: replicas see the Leases and cannot take them; look at their logs and at their permissions.";
    SHARDS_QUARANTINED: Gauge "cronwheel_shards_quarantined" []
        "Shards whose leaders crashed three times in a row soon after they took them: one replica leads these and nothing else.",
        "One of their CronJobs crashes cronwheel: report it with the log of the replica that died; cronwheel shards names the shard.";
    LEASE_RENEW_AGE: Gauge "cronwheel_lease_renew_age_seconds" []
        "Time since the renewal that this replica's leadership goes by was sent.",
        "Up to 3 seconds is normal; at 7 the replica stops acting: the API server is slow or away.";
    HANDOVER_DURATION: Histogram "cronwheel_handover_duration_seconds" ["side"]
        "Time that shards take to change hands: given, from being sealed to the Lease that names another; taken, from such a Lease to acting.",
        "The API server is slow, or creates of shards that are handed over are not answered for seven seconds.";
    LEASE_FENCES: Counter "cronwheel_fences_total" []
        "How often this replica stopped acting because its Lease was not renewed in time.",
        "The API server was away or slow, or the process did not run: look at its CPU limit.";
    FENCED_REQUESTS: Counter "cronwheel_fenced_requests_total" ["queue"]
        "Requests that were not sent because the replica did not lead their shard any more.",
        "It rises when replicas come and go; whoever leads next derives them anew.";
    LEASE_EVICTIONS: Counter "cronwheel_evictions_total" []
        "Members that this replica tried to evict because they were silent.",
        "A replica died, froze or lost the API server.";
    LEASE_REJOINS: Counter "cronwheel_rejoins_total" []
        "How often this replica lost its membership and came back as a new member.",
        "It was evicted, frozen or its Lease was deleted: see its log.";
    INSTALLATIONS_OVERLAPPING: Gauge "cronwheel_overlapping_installations" []
        "Other installations that work in namespaces of this one, as the leader of shard 0 sees them.",
        "Both start the runs of these namespaces: give them other --namespace flags, see its log.";
    JOBS_LABELLED: Counter "cronwheel_jobs_labelled_total" []
        "Jobs of CronJobs that lacked the label of their shard and were given it by this replica.",
        "Manual runs, Jobs of the built-in controller after a migration, or somebody who takes labels away.";
    BUILD: Gauge "cronwheel_build_info" ["version", "tzdb"]
        "1, with the version of cronwheel and of its time zone data.",
        "It changes with an upgrade.";
}
