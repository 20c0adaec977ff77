//! The rules of the built-in controller that cronwheel follows, and its deliberate differences.

/// A deliberate difference.
pub(super) struct Difference {
    /// The rules that it differs from.
    pub(super) rules: &'static [&'static str],
    pub(super) built_in: &'static str,
    pub(super) ours: &'static str,
    /// The tests of the difference.
    pub(super) tests: &'static [&'static str],
}

/// Rules by number, with short descriptions.
pub(super) const RULES: &[(&str, &str)] = &[
    (
        "B-2.1",
        "the owner of a Job: the controller reference of kind CronJob, by uid",
    ),
    ("B-2.2", "a change of schedule or zone"),
    (
        "B-2.3",
        "the effect of a change on earlier slots and on the next wake-up",
    ),
    ("B-3.1", "the order of steps in a sync; history is always first"),
    ("B-3.2", "children are found by the uid of their controller"),
    ("B-3.3", "the work for one run"),
    ("B-4.1", "no limits, no deletes"),
    ("B-4.2", "finished: the first true condition of Complete and Failed"),
    (
        "B-4.3",
        "the oldest Jobs are deleted first, Jobs without a start time last, ties by name",
    ),
    ("B-4.4", "deletes use background propagation; an Event reports each"),
    ("B-4.5", "a delete that is repeated or gets 404"),
    (
        "B-4.6",
        "history before the active list: a limit of 0 hides `SawCompletedJob`",
    ),
    (
        "B-5.1",
        "comparison of children with the active list; completion; `lastSuccessfulTime`",
    ),
    ("B-5.2", "a look-up that fails"),
    ("B-5.3", "decisions while a write of the controller is in flight"),
    ("B-5.4", "an entry of the active list without a Job"),
    ("B-5.5", "a Job in foreground deletion stays active"),
    ("B-5.6", "a Job that was deleted before its end was observed"),
    ("B-6.1", "no run for a CronJob that is being deleted"),
    ("B-6.2", "an unknown time zone is reported even when suspended"),
    ("B-6.3", "no run while suspended"),
    ("B-6.4", "a schedule that does not parse"),
    ("B-6.5", "a schedule that never runs"),
    ("B-6.6", "resumed: one Job, for the latest slot"),
    ("B-7.1", "the effective schedule; `TZ` in the text"),
    ("B-7.2", "without a zone, the local zone applies"),
    ("B-7.3", "order of parsing, zone prefix, five fields"),
    ("B-7.4", "descriptors"),
    ("B-7.5", "`@every` and Go's durations"),
    ("B-7.6", "white space"),
    ("B-7.7", "the grammar of a field and its errors"),
    ("B-7.8", "the combination of the two day fields"),
    ("B-7.9", "a zone prefix without a space"),
    ("B-8.1", "strictly later, at whole seconds, or none"),
    ("B-8.2", "from wall-clock time to an instant, as Go's `time.Date`"),
    ("B-8.3", "the library's search, step by step"),
    ("B-8.4", "gaps, overlaps, dates that never occur, endless searches"),
    ("B-8.5", "`@every` steps from the reference"),
    ("B-9.1", "the earliest time of a missed slot"),
    (
        "B-9.2",
        "the built-in's estimate of the due slot and of the number of missed slots",
    ),
    ("B-9.3", "slots that the estimate loses"),
    ("B-9.4", "the due slot starts, regardless of the number of missed slots"),
    ("B-9.5", "no slot, no Event"),
    ("B-9.6", "the next wake-up"),
    ("B-9.7", "the traps of `startingDeadlineSeconds`"),
    ("B-10.1", "a slot past its deadline"),
    ("B-10.2", "the Job of the slot is already active"),
    ("B-10.3", "Forbid"),
    ("B-10.4", "Replace"),
    ("B-10.5", "Allow"),
    ("B-11.1", "the Job's name: minutes since the epoch"),
    ("B-11.2", "the metadata of the Job, from the template"),
    ("B-11.3", "the annotation with the slot, in the zone of the CronJob"),
    ("B-11.4", "the only owner reference"),
    ("B-11.5", "the template's spec, unchanged"),
    ("B-12.1", "created: Event, active list, cursor"),
    ("B-12.2", "the namespace is terminating: no Event"),
    ("B-12.3", "a Job of that name exists"),
    ("B-12.4", "a create that fails"),
    ("B-12.5", "the status after a run"),
    ("B-12.6", "the name is the lock against a second run after a crash"),
    ("B-13.1", "one status write, only when something changed"),
    ("B-13.2", "a status write that fails"),
    ("B-13.3", "the three fields of the status"),
    ("B-13.4", "no other field"),
    ("B-14.1", "Events are merged, counted and limited for each object"),
];

/// The rules that the design differs from. Each must have a row in the table of differences.
pub(super) const DEPARTED_FROM: &[&str] = &[
    "B-1.9", "B-2.2", "B-3.3", "B-4.5", "B-5.1", "B-5.3", "B-7.2", "B-9.3", "B-9.6", "B-9.7", "B-10.1", "B-12.3",
    "B-12.4", "B-13.1", "B-14.1",
];

/// Deliberate differences, in the order of their first rule.
pub(super) const DIFFERENCES: &[Difference] = &[
    Difference {
        rules: &["B-1.9", "B-9.6"],
        built_in: "wakes 100 ms after the slot",
        ours: "at the slot",
        tests: &["b_9_6_next_wakeup_is_the_slot"],
    },
    Difference {
        rules: &["B-1.3"],
        built_in: "an object that does not decode stops the list, and thus every CronJob",
        ours: "an Event `UndecodableCronJob`; only this CronJob is affected, and its latest slot starts once it decodes; a Job keeps its last decoded state",
        tests: &[
            "an_undecodable_cron_job_starts_nothing_until_it_is_fixed",
            "a_relist_keeps_undecodable_jobs",
        ],
    },
    Difference {
        rules: &["B-2.2"],
        built_in: "a schedule change waits for some later event, which may start a slot before the change",
        ours: "decided again at once; a slot before the change is not started, and pending requests are withdrawn; a replica that did not observe the change follows the built-in (B-2.3): at most one Job, for the latest slot of the new schedule before the change",
        tests: &[
            "b_2_2_a_slot_before_a_schedule_change_is_not_started",
            "b_2_3_after_a_restart_the_new_schedule_applies_to_the_past",
            "a_queued_create_is_withdrawn_when_the_schedule_changes",
        ],
    },
    Difference {
        rules: &["B-3.3"],
        built_in: "6 to 12 syncs per run, each over all children",
        ours: "one incremental update for each event; watch events of the controller's writes change nothing",
        tests: &["b_3_3_the_echo_of_a_created_job_changes_nothing"],
    },
    Difference {
        rules: &["B-3.2"],
        built_in: "before 1.37, children are selected in the CronJob's namespace; since 1.37, only by the uid of their controller, so that a Job of any namespace can count",
        ours: "a Job belongs to a CronJob only in the same namespace; a Job in another namespace that names the CronJob as its controller is reported once as `UnexpectedJob` and has no effect",
        tests: &[
            "b_3_2_a_job_of_another_namespace_is_reported_once_and_has_no_effect",
            "b_3_2_forbid_ignores_an_active_job_of_another_namespace",
        ],
    },
    Difference {
        rules: &["B-4.4"],
        built_in: "a delete that fails waits for the next event",
        ours: "retried after 5 s, later after 30 s",
        tests: &["b_4_4_a_failed_delete_is_reported_and_retried"],
    },
    Difference {
        rules: &["B-4.5"],
        built_in: "repeats deletes, `FailedDelete` 404",
        ours: "404 is success, without an Event; deletes carry the uid as precondition",
        tests: &["b_4_5_a_delete_is_not_repeated_and_404_is_success"],
    },
    Difference {
        rules: &["B-4.3"],
        built_in: "deletes finished Jobs over a limit at once",
        ours: "deletes a Job after its slot is stored as `lastScheduleTime`, and after the Jobs that precede it",
        tests: &[
            "no_job_is_deleted_before_its_slot_is_stored",
            "b_4_3_a_job_waiting_for_the_cursor_delays_later_deletions",
        ],
    },
    Difference {
        rules: &["B-5.1"],
        built_in: "warns repeatedly about a running Job that is missing from `active`",
        ours: "adopted if its controller is the CronJob by uid, its name matches its scheduled timestamp, and its slot is not later than now plus `--max-clock-skew`; it advances the cursor; any other child (a manual run) gets one Warning, and Forbid and Replace count it only if it is on the active list",
        tests: &[
            "b_5_1_a_job_of_a_future_slot_does_not_move_the_cursor",
            "b_5_1_a_job_of_a_slot_within_the_clock_tolerance_is_adopted",
            "b_5_1_a_running_job_is_adopted_and_moves_the_cursor",
            "b_5_1_a_manual_run_gets_one_event_and_is_not_adopted",
            "b_10_3_forbid_ignores_a_manual_run",
            "b_10_3_forbid_waits_for_a_manual_run_on_the_active_list",
        ],
    },
    Difference {
        rules: &["B-5.3"],
        built_in: "decides on the live object, writes the stale one and gets 409",
        ours: "remembers its writes; decides only after it has observed them",
        tests: &["b_5_3_an_event_with_an_older_status_keeps_the_pending_cursor"],
    },
    Difference {
        rules: &["B-5.4"],
        built_in: "a live GET for each entry without a Job, in every sync",
        ours: "the watch is authoritative; a GET only for entries that no watch has delivered, once per run; such an entry blocks neither Forbid nor Replace, but both wait for the response, for two minutes if the account may not read the Job",
        tests: &[
            "b_5_4_an_active_entry_without_a_job_is_looked_up_and_removed",
            "b_10_3_forbid_waits_for_the_look_up_of_an_unknown_active_job",
            "forbid_waits_two_minutes_for_an_active_entry_that_may_not_be_looked_up",
        ],
    },
    Difference {
        rules: &["B-6.2", "B-6.4", "B-6.5", "B-7.1"],
        built_in: "the same Warning in every sync",
        ours: "once for each schedule during the life of the process",
        tests: &[
            "b_6_2_an_unknown_zone_is_reported_once_even_when_suspended",
            "b_6_4_an_unparseable_schedule_is_reported_once",
            "b_6_5_a_schedule_without_activations_is_reported_once",
            "b_7_1_a_zone_in_the_schedule_is_reported_once_and_used",
        ],
    },
    Difference {
        rules: &["B-7.2"],
        built_in: "no zone: the process's local zone",
        ours: "`--default-time-zone`, UTC unless set, printed at start and by `explain`",
        tests: &["b_7_2_schedule_without_a_zone_uses_the_default_zone"],
    },
    Difference {
        rules: &["B-7.3"],
        built_in: "parses a schedule of any length",
        ours: "a schedule of more than 4096 bytes is not parsed and starts nothing; Warning `UnparseableSchedule`",
        tests: &["a_schedule_of_more_than_4096_bytes_is_rejected_b_7_3"],
    },
    Difference {
        rules: &["B-9.1"],
        built_in: "waits silently for a `lastScheduleTime` in the future",
        ours: "also waits, and reports it once by the Warning `LastScheduleTimeInFuture`",
        tests: &["a_last_schedule_time_in_the_future_is_reported_once"],
    },
    Difference {
        rules: &["B-9.3"],
        built_in: "an estimate from the first gap may drop a missed run",
        ours: "the most recent missed slot is computed exactly",
        tests: &["b_9_3_an_irregular_schedule_loses_no_slot"],
    },
    Difference {
        rules: &["B-9.4", "B-10.3"],
        built_in: "`TooManyMissedTimes` and `JobAlreadyActive` in every sync",
        ours: "once per slot",
        tests: &[
            "b_9_4_more_than_100_missed_slots_cause_only_a_warning",
            "b_10_3_forbid_waits_and_starts_when_the_job_ends",
        ],
    },
    Difference {
        rules: &["B-9.7"],
        built_in: "`@every X` with a deadline below X never fires; deadline 0 never fires",
        ours: "`@every` keeps its grid; the deadline applies when the slot is decided, at its instant; a queued create expires only after the larger of the deadline and ten seconds; a slot that is found later, for instance after a restart, starts only within its deadline",
        tests: &[
            "b_9_7_every_with_a_deadline_below_its_period_fires_on_its_grid",
            "b_9_7_deadline_zero_tolerates_a_late_wake_up",
            "b_9_7_a_create_expires_at_its_deadline_but_not_within_ten_seconds",
        ],
    },
    Difference {
        rules: &["B-10.1"],
        built_in: "a run that is lost to its deadline is not reported (`MissSchedule` is dead code)",
        ours: "Warning `MissSchedule`, once per slot during the life of the process",
        tests: &["b_10_1_a_missed_slot_is_reported_once"],
    },
    Difference {
        rules: &["B-10.4"],
        built_in: "a GET, `FailedGet`, and a delete for each Job that is replaced",
        ours: "a delete with the uid as precondition; a 404 counts as success",
        tests: &["b_10_4_replace_treats_a_missing_job_as_deleted"],
    },
    Difference {
        rules: &["B-11.3"],
        built_in: "copies every annotation of the template",
        ours: "omits annotations under `cronwheel.dev/` and reports them by the Warning `ReservedAnnotations`; adds three of its own, which name the replica that created the Job and limit its creation time",
        tests: &[
            "a_job_is_annotated_with_its_stamp",
            "reserved_annotations_of_the_template_are_removed",
            "reserved_template_annotations_are_reported_once",
        ],
    },
    Difference {
        rules: &["B-12.3"],
        built_in: "a foreign Job with the name of the slot leaves the CronJob without a next wake-up",
        ours: "Warning `FailedCreate`; the slot is given up and the next one is scheduled; after a restart or a handover, the latest slot is tried once more, and its Job starts if the foreign Job no longer exists",
        tests: &[
            "b_12_3_a_foreign_job_loses_the_slot_but_not_the_next",
            "a_slot_whose_job_name_is_taken_starts_nothing",
        ],
    },
    Difference {
        rules: &["B-12.4"],
        built_in: "after a failed create, only back-off of up to 1000 s",
        ours: "retried after 100 ms doubling to 1 min while the slot is the latest and within its deadline; after a refusal of the Job as invalid (400, 413, 422) after one minute doubling to five, and at once when the CronJob changes; the back-off carries over to the next slot, which is always armed and waits for 9 s of it at most",
        tests: &[
            "b_12_4_a_failed_create_is_retried_with_back_off_until_the_next_slot",
            "b_12_4_the_next_slot_supersedes_a_failed_create",
            "each_slot_of_a_refused_cron_job_costs_one_request",
            "b_12_4_a_job_refused_as_invalid_is_retried_with_long_back_off",
            "b_12_4_a_job_refused_as_invalid_is_retried_at_once_with_a_new_template",
        ],
    },
    Difference {
        rules: &["B-12.4"],
        built_in: "reports a lack of permission at once, even while an API server has not loaded its roles yet",
        ours: "retries, and reports by the Warning `FailedCreate` after 5 s",
        tests: &[
            "b_12_4_a_brief_lack_of_permission_is_not_reported",
            "b_12_4_a_lasting_lack_of_permission_is_reported",
        ],
    },
    Difference {
        rules: &["B-12.3"],
        built_in: "creates a Job for each slot, also where slots of one minute share its name",
        ours: "a slot in the minute of the last one counts as started without a create if the Job of that minute is known to have ended",
        tests: &["b_12_3_a_slot_whose_job_is_known_to_have_ended_is_not_created_again"],
    },
    Difference {
        rules: &["B-12.3"],
        built_in: "waits with back-off while the Job of the slot's name may not be read",
        ours: "Warning `FailedLookUp` once a slot; under Allow the slot ends as `look_up_refused` when the next one is due, under Forbid and Replace after two minutes; it is not started again",
        tests: &[
            "a_look_up_that_is_not_permitted_does_not_stop_later_slots_under_allow",
            "forbid_waits_two_minutes_for_a_look_up_that_is_not_permitted",
        ],
    },
    Difference {
        rules: &["B-12.6"],
        built_in: "a create whose response is lost is sent again",
        ours: "the Job is looked up first: it may have run and been deleted, and Forbid must know it",
        tests: &["b_12_6_an_unanswered_create_is_looked_up_before_any_retry"],
    },
    Difference {
        rules: &["B-12.6"],
        built_in: "a Job that ended before its slot was recorded stays out of `lastScheduleTime` if the CronJob is suspended or the slot is past its deadline",
        ours: "recorded, and not reported as missed",
        tests: &[
            "b_10_1_an_unrecorded_finished_job_is_recorded_and_not_missed",
            "an_unrecorded_finished_job_is_recorded_while_suspended",
        ],
    },
    Difference {
        rules: &["B-13.1"],
        built_in: "a status write after each create",
        ours: "merged and delayed, but immediate if `ttlSecondsAfterFinished` is under a minute: the Job, which is the lock against a second run, may be deleted before the flush",
        tests: &[
            "b_13_1_a_run_that_ends_before_the_flush_is_one_status_write",
            "b_13_1_the_slot_of_a_short_lived_job_is_stored_at_once",
        ],
    },
    Difference {
        rules: &["B-13.2"],
        built_in: "a status that cannot be written is only logged",
        ours: "Warning `FailedStatusUpdate` on the CronJob when a write fails again after 5 s, and about every hour until one succeeds",
        tests: &["a_status_write_that_keeps_failing_is_reported_about_once_an_hour"],
    },
    Difference {
        rules: &["B-14.1"],
        built_in: "Events share the budget of Job creates, in a fixed order in each sync",
        ours: "Events have a separate queue of low priority and a budget, 60 a second or `--max-events-per-second`; dropped Events are counted; after ten differing messages of one reason all later ones are merged, also repeats of the first ten; `SuccessfulDelete` follows the answer to the delete",
        tests: &["b_14_1_a_cron_job_has_a_burst_of_25_events"],
    },
];
