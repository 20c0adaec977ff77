//! Tests of suspended CronJobs, incomplete input, objects that the API server refuses, `--check`, `-o wide` and
//! `--rule`.

use super::*;

/// The lines with these labels, for `hello` with these changes.
fn labelled(labels: &[&str], changes: Value, arguments: &[&str]) -> Vec<String> {
    let printed = run_on(&cron_job(changes).to_string(), arguments).unwrap_or_else(|error| panic!("{error}"));
    let is_wanted = |line: &&str| labels.iter().any(|label| line.starts_with(label));
    printed.output.lines().filter(is_wanted).map(str::to_owned).collect()
}

#[test]
fn b_6_3_a_suspended_cron_job_has_no_next_run() {
    assert_eq!(
        labelled(
            &["next  ", "decision", "reason"],
            json!({"spec": {"suspend": true}}),
            &[]
        ),
        [
            "next         none while spec.suspend is true",
            "decision     skip",
            "reason       Suspended: spec.suspend is true",
        ]
    );
    let deleting = json!({"metadata": {"deletionTimestamp": "2026-05-05T09:59:00Z"}});
    assert_eq!(
        labelled(&["next  "], deleting, &[]),
        ["next         none, since the CronJob is being deleted"]
    );
}

#[test]
fn an_active_job_missing_from_the_file_is_reported() {
    let changes = json!({"spec": {"concurrencyPolicy": "Forbid"}, "status": {"active": [entry(29_632_910)]}});
    assert_eq!(
        labelled(&["missing", "decision", "reason"], changes.clone(), &[]),
        [
            "missing      Job hello-29632910, named by status.active, in no file; add it by kubectl get cronjobs,jobs -o \
             yaml",
            "decision     unknown: skip if that Job still runs, otherwise fire, slot Tue 2026-05-05 10:00 UTC, 5s ago",
            "reason       Created: the slot is due and nothing holds it back, unless Job hello-29632910 still runs",
        ]
    );
    check(
        &[cron_job(changes)],
        &[],
        json!({
            "decision": "fire", "missingJobs": ["hello-29632910"],
            "message": "the slot is due and nothing holds it back, unless Job hello-29632910 still runs",
        }),
    );
    // Under Allow the entry does not delay the run, unless it names the Job of the slot.
    for (minutes, decision) in [
        (29_632_910, "fire"),
        (29_632_920, "unknown: skip if that Job still runs, otherwise fire"),
    ] {
        assert_eq!(
            labelled(&["decision"], json!({"status": {"active": [entry(minutes)]}}), &[]),
            [format!(
                "decision     {decision}, slot Tue 2026-05-05 10:00 UTC, 5s ago"
            )]
        );
    }
    let suspended = json!({"spec": {"suspend": true}, "status": {"active": [entry(29_632_910)]}});
    assert_eq!(labelled(&["decision"], suspended, &[]), ["decision     skip"]);
}

#[test]
fn wide_output_has_the_rules() {
    assert_eq!(
        labelled(&["rules", "events"], json!({}), &["-o", "wide"]),
        [
            "rules        B-9.2, B-12.1; print one by explain --rule",
            "events       Normal   SuccessfulCreate: Created job hello-29632920 (B-12.1)",
        ]
    );
}

#[test]
fn json_has_the_cron_job_and_its_next_runs() {
    check(
        &[cron_job(
            json!({"spec": {"startingDeadlineSeconds": 2, "timeZone": "Europe/Berlin"}}),
        )],
        &[],
        json!({
            "name": "hello", "namespace": "default", "schedule": "*/10 * * * *", "timeZone": "Europe/Berlin",
            "message": "the slot is older than startingDeadlineSeconds allows: it is missed \
                        (the slot is 5s old, and startingDeadlineSeconds is 2)",
            "rules": "B-10.1", "problems": [], "missingJobs": [],
            "nextRuns": ["2026-05-05T10:10:00Z", "2026-05-05T10:20:00Z", "2026-05-05T10:30:00Z"],
        }),
    );
    let broken = json!({"spec": {"suspend": "perhaps"}});
    check(
        &[cron_job(broken)],
        &[],
        json!({"name": "hello", "schedule": null, "nextRuns": []}),
    );
    check(
        &[cron_job(json!({"spec": {"suspend": true}}))],
        &[],
        json!({"nextRuns": []}),
    );
}

#[test]
fn json_has_the_options_and_what_they_change() {
    let without = json!({
        "schedules": null, "description": "every 10 minutes", "options": [], "offsetSeconds": 0, "excluded": [], "notes": [],
        "nextStarts": ["2026-05-05T10:10:00Z", "2026-05-05T10:20:00Z", "2026-05-05T10:30:00Z"],
    });
    check(&[cron_job(json!({}))], &[], without);
    let annotations = json!({
        "cronwheel.dev/schedule": "30 */15 * * * *\n30 0 12 1 1 * 2027", "cronwheel.dev/spread": "5m",
        "cronwheel.dev/missed-run": "skip", "cronwheel.dev/not-on": "holidays",
    });
    let changed = cron_job(json!({"metadata": {"annotations": annotations}}));
    let calendar = json!({
        "apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "holidays", "namespace": "default", "labels": {"cronwheel.dev/calendar": "true"}},
        "data": {"dates": "2026-05-06 Audit"},
    });
    let now = ["--now", "2026-05-05T23:40:00Z"];
    let answer = run_json(&[changed.clone(), calendar.clone()], &now);
    assert_eq!(answer["schedule"], "*/10 * * * *");
    assert_eq!(answer["schedules"], json!(["30 */15 * * * *", "30 0 12 1 1 * 2027"]));
    let description = answer["description"].as_str().unwrap();
    assert!(description.contains("2027"), "{description}");
    let options: Vec<&str> = answer["options"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one.as_str().unwrap())
        .collect();
    assert!(
        options[0].starts_with("schedule: replaces ") && options[1].starts_with("spread: "),
        "{options:?}"
    );
    assert!(options[2].starts_with("not-on: "), "{options:?}");
    let offset = answer["offsetSeconds"].as_i64().unwrap();
    assert!((0..300).contains(&offset), "{offset}");
    let instant = |list: &str, at: usize| answer[list][at].as_str().unwrap().parse::<Timestamp>().unwrap();
    for at in 0..3 {
        assert_eq!(
            (instant("nextStarts", at) - instant("nextRuns", at)).get_seconds(),
            offset
        );
    }
    assert_eq!(answer["nextRuns"][1], "2026-05-07T00:00:30Z");
    let excluded = json!([{"firstDate": "2026-05-06", "lastDate": "2026-05-06", "note": "Audit", "nActivations": 96}]);
    assert_eq!(answer["excluded"], excluded);
    let notes = answer["notes"].to_string();
    assert!(notes.contains("did you mean cronwheel.dev/missed-runs?"), "{notes}");
    // The uid determines the offset.
    let mut no_uid = changed;
    no_uid["metadata"].as_object_mut().unwrap().remove("uid");
    let answer = run_json(&[no_uid, calendar], &now);
    assert_eq!(
        (&answer["offsetSeconds"], &answer["nextStarts"]),
        (&Value::Null, &json!([]))
    );
}

#[test]
fn fields_refused_by_the_api_server_are_reported() {
    for (changes, problem) in [
        (
            json!({"apiVersion": "batch/v1beta1"}),
            "apiVersion: Kubernetes has no CronJob of batch/v1beta1; write batch/v1",
        ),
        (
            json!({"apiVersion": "v1"}),
            "apiVersion: Kubernetes has no CronJob of v1; write batch/v1",
        ),
        (
            json!({"kind": "Cronjob"}),
            "kind: Kubernetes has no Cronjob; write CronJob",
        ),
        (
            json!({"status": null, "specs": {}}),
            "specs: unknown field; did you mean spec?",
        ),
        (json!({"suspend": true}), "suspend: unknown field; it belongs in spec"),
        (
            json!({"spec": {"timezone": "UTC"}}),
            "spec.timezone: unknown field; did you mean timeZone?",
        ),
        (
            json!({"spec": {"retries": 3}}),
            "spec.retries: unknown field; leave it out",
        ),
        (
            json!({"spec": {"jobTemplate": {"template": {}}}}),
            "spec.jobTemplate.template: unknown field; it belongs in spec.jobTemplate.spec",
        ),
        (
            json!({"spec": {"concurrencyPolicy": "forbid"}}),
            "spec.concurrencyPolicy: Unsupported value: \"forbid\": supported values: \"Allow\", \"Forbid\", \"Replace\"; did you \
             mean Forbid?",
        ),
        (
            json!({"spec": {"concurrencyPolicy": "Never"}}),
            "spec.concurrencyPolicy: Unsupported value: \"Never\": supported values: \"Allow\", \"Forbid\", \"Replace\"",
        ),
        (
            json!({"spec": {"startingDeadlineSeconds": -1}}),
            "spec.startingDeadlineSeconds: Invalid value: -1: must be greater than or equal to 0",
        ),
        (
            json!({"spec": {"schedule": null}}),
            "spec.schedule: Required value; write five fields or a descriptor such as @daily",
        ),
        (
            json!({"metadata": {"name": "a".repeat(53)}}),
            "metadata.name: Invalid value: \"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\": must be no more than 52 \
             characters; shorten it from 53 characters to 52",
        ),
        (
            json!({"spec": {"schedule": "TZ=UTC @daily"}}),
            "spec.schedule: Invalid value: \"TZ=UTC @daily\": cannot use TZ or CRON_TZ in schedule, use timeZone field instead",
        ),
        (json!({"apiVersion": null}), "apiVersion: missing; write batch/v1"),
    ] {
        check(&[cron_job(changes.clone())], &[], json!({"problems": [problem]}));
        assert_eq!(
            labelled(&["problem"], changes, &[]),
            [format!("problem      refused by the API server: {problem}")]
        );
    }
}

#[test]
fn an_empty_policy_is_the_default() {
    check(
        &[cron_job(json!({"spec": {"concurrencyPolicy": ""}}))],
        &[],
        json!({"problems": [], "decision": "fire"}),
    );
}

#[test]
fn the_check_fails_for_annotations_that_cannot_be_used() {
    let with_annotation = |name: &str, value: &str| json!({"metadata": {"annotations": {(name): value}}});
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "default", "annotations": {"cronwheel.dev/spread": "10m"}},
    });
    let one = Some("1 of 1 CronJobs has an annotation that cannot be used; correct what the answer lists");
    for (changes, expected) in [
        (with_annotation("cronwheel.dev/spread", "9m"), None),
        (with_annotation("cronwheel.dev/spread", "10m"), one),
        (with_annotation("cronwheel.dev/missed-run", "skip"), one),
        (with_annotation("cronwheel.dev/not-on", "holidays"), None),
    ] {
        // A default of the namespace that does not fit one CronJob is no fault of this CronJob.
        for objects in [
            vec![cron_job(changes.clone())],
            vec![cron_job(changes.clone()), namespace.clone()],
        ] {
            let list = json!({"kind": "List", "items": objects}).to_string();
            assert_eq!(run_on(&list, &["--check"]).err().as_deref(), expected, "{list}");
            run_on(&list, &[]).unwrap();
        }
    }
    let both = [
        with(cron_job(json!({})), json!({"spec": {"schedule": "@reboot"}})),
        cron_job(with(
            with_annotation("cronwheel.dev/spread", "1"),
            json!({"metadata": {"name": "b"}}),
        )),
        cron_job(with(
            with_annotation("cronwheel.dev/spread", "1"),
            json!({"metadata": {"name": "c"}}),
        )),
    ];
    assert_eq!(
        run_on(&json!({"kind": "List", "items": both}).to_string(), &["--check"]).unwrap_err(),
        "1 of 3 CronJobs can never run or would be refused by the API server, and 2 of 3 CronJobs have an annotation that \
         cannot be used; correct what the answer lists"
    );
}

#[test]
fn check_fails_only_for_cron_jobs_that_cannot_run() {
    let list = |changes: &[Value]| {
        let named = changes.iter().enumerate().map(|(position, changes)| {
            with(
                cron_job(json!({"metadata": {"name": format!("a{position}")}})),
                changes.clone(),
            )
        });
        json!({"kind": "List", "items": named.collect::<Vec<_>>()}).to_string()
    };
    let fit = [
        json!({}),
        json!({"spec": {"suspend": true}}),
        json!({"spec": {"startingDeadlineSeconds": 2}}),
    ];
    assert_eq!(
        run_on(&list(&fit), &["--check"]).unwrap().output,
        "3 of 3 CronJobs can run\n"
    );
    let unfit = [
        json!({}),
        json!({"spec": {"schedule": "0 0 30 2 *"}}),
        json!({"spec": {"schedule": "@reboot"}}),
        json!({"spec": {"timeZone": "Europe/Berln"}}),
        json!({"spec": {"suspend": "perhaps"}}),
        json!({"spec": {"timezone": "UTC"}}),
    ];
    run_on(&list(&unfit), &[]).unwrap();
    assert_eq!(
        run_on(&list(&unfit), &["--check"]).unwrap_err(),
        "5 of 6 CronJobs can never run or would be refused by the API server; correct what the answer lists"
    );
    let mut listed = Vec::new();
    run_into(&list(&unfit), &["--check"], &mut listed).unwrap_err();
    assert_eq!(
        String::from_utf8(listed).unwrap(),
        "CronJob default/a1: NeverRuns: no instant matches the schedule (spec.schedule: correct its day of month or its \
         month)\n\
         CronJob default/a2: refused by the API server: spec.schedule: Invalid value: \"@reboot\": unrecognized descriptor: \
         @reboot; write five fields (minute, hour, day of month, month, day of week), or one of @yearly, @monthly, @weekly, \
         @daily, @hourly, or @every with a duration such as 1h30m\n\
         CronJob default/a3: refused by the API server: spec.timeZone: Invalid value: \"Europe/Berln\": unknown time zone \
         Europe/Berln; did you mean Europe/Berlin?\n\
         CronJob default/a4: refused by the API server: spec.suspend: \"perhaps\" is text; write true or false\n\
         CronJob default/a5: refused by the API server: spec.timezone: unknown field; did you mean timeZone?\n\
         1 of 6 CronJobs can run\n"
    );
}

#[test]
fn b_6_2_a_misspelled_zone_gets_a_suggestion() {
    assert_eq!(
        labelled(&["reason"], json!({"spec": {"timeZone": "Europe/Berln"}}), &[]),
        [
            "reason       UnknownTimeZone: spec.timeZone is not a known time zone (unknown time zone Europe/Berln; did you \
             mean Europe/Berlin?)"
        ]
    );
}

#[test]
fn explain_rule_prints_one_rule() {
    let printed = |number: &str| {
        let mut output = Vec::new();
        print_rule(number, &mut output).map_err(|error| error.to_string())?;
        Ok::<_, String>(String::from_utf8(output).unwrap())
    };
    let expected = "**B-6.3** `spec.suspend` true: stop. No event.\n";
    assert_eq!(printed("B-6.3").unwrap(), expected);
    assert_eq!(printed("b-6.3").unwrap(), expected);
    assert_eq!(printed("6.3").unwrap(), expected);
    let rule = printed("B-4.4").unwrap();
    let difference = "\n\nDifference. Built-in: a delete that fails waits for the next event. cronwheel: retried after 5 s, \
                      later after 30 s.\n";
    assert!(rule.starts_with("**B-4.4") && rule.ends_with(difference), "{rule}");
    assert_eq!(
        printed("B-99").unwrap_err(),
        "no rule B-99; the rules are in docs/spec, give a number such as B-10.3 or O-7.1"
    );
    for meaning in explain::reasons() {
        let numbers = meaning.rules.split(", ");
        for number in numbers.filter(|number| number.starts_with("B-")) {
            let rule = printed(number).unwrap();
            assert_eq!(rule.matches("**B-").count(), 1, "{rule}");
        }
    }
}

#[test]
fn cron_job_names_are_accepted_as_kubectl_prints_them() {
    const NAME_ADVICE: &str = "write a name as Kubernetes has it: lower-case letters, digits, '-' and '.', at most 253";
    for text in [
        "report",
        "cronjob/report",
        "cronjobs/report",
        "cj/report",
        "cronjob.batch/report",
    ] {
        assert_eq!(parse_cron_job(text), Ok("report".to_owned()), "{text}");
    }
    for (text, hint) in [
        ("job/report", "for a CronJob in a namespace write report -n job"),
        ("shop/report", "for a CronJob in a namespace write report -n shop"),
        (
            "manifests/report.yaml",
            "for a file or a directory write -f manifests/report.yaml",
        ),
        ("report.yml", "for a file or a directory write -f report.yml"),
        (".yaml", "for a file or a directory write -f .yaml"),
        ("/", "for a file or a directory write -f /"),
        ("-", "for a file or a directory write -f -"),
        ("B-12.3", "for a rule write --rule B-12.3"),
        ("O-7", "for a rule write --rule O-7"),
        ("a/b/c", NAME_ADVICE),
        ("report.yaml/", NAME_ADVICE),
    ] {
        assert_eq!(parse_cron_job(text), Err(hint.to_owned()), "{text}");
    }
}

#[test]
fn a_name_selects_a_cron_job_from_files() {
    let hello_of = |namespace: &str| cron_job(json!({"metadata": {"namespace": namespace, "uid": namespace}}));
    let other = cron_job(json!({"metadata": {"name": "other", "uid": "other"}}));
    let list = json!({"kind": "List", "items": [hello_of("a"), other, hello_of("b")]}).to_string();
    let named = |arguments: &[&str]| {
        let output = run_on(&list, arguments)?.output;
        let heads = output.lines().filter_map(|line| line.strip_prefix("CronJob "));
        Ok::<_, String>(
            heads
                .map(|head| head.split(' ').next().unwrap().to_owned())
                .collect::<Vec<_>>(),
        )
    };
    assert_eq!(named(&["hello"]).unwrap(), ["a/hello", "b/hello"]);
    assert_eq!(named(&["cronjob/hello", "-n", "b"]).unwrap(), ["b/hello"]);
    assert_eq!(named(&["cronjob", "other"]).unwrap(), ["default/other"]);
    assert_eq!(
        named(&["hello", "-n", "c"]).unwrap_err(),
        "standard input: no CronJob hello in it; check the name and the namespace"
    );
    assert_eq!(
        named(&["hello", "other"]).unwrap_err(),
        "hello and other are two CronJobs; give one, or the files of several by -f"
    );
    for arguments in [["hello", "--context", "a"], ["--rule", "B-6.3", "hello"]] {
        assert!(run_on(&list, &arguments).unwrap_err().contains("cannot be used with"));
    }
}

#[test]
fn b_6_6_a_suspended_cron_job_shows_its_run_if_resumed() {
    let resumed = |changes: Value| {
        let changes = with(json!({"spec": {"suspend": true}}), changes);
        let output = run_on(&cron_job(changes).to_string(), &[]).unwrap().output;
        let line = output
            .lines()
            .find(|line| line.contains("resumed"))
            .unwrap()
            .trim()
            .to_owned();
        line.strip_prefix("if it were resumed now: ").unwrap().to_owned()
    };
    assert_eq!(
        resumed(json!({})),
        "at once, slot Tue 2026-05-05 10:00 UTC, 5s ago; then in 9m 55s, Tue 2026-05-05 10:10 UTC"
    );
    assert_eq!(
        resumed(json!({"status": {"lastScheduleTime": "2026-05-05T10:00:00Z"}})),
        "in 9m 55s, Tue 2026-05-05 10:10 UTC"
    );
    assert_eq!(
        resumed(json!({"spec": {"startingDeadlineSeconds": 4}})),
        "not at once, since the slot is older than startingDeadlineSeconds allows: it is missed (the slot is 5s old, and \
         startingDeadlineSeconds is 4); then in 9m 55s, Tue 2026-05-05 10:10 UTC"
    );
    assert_eq!(
        resumed(json!({"spec": {"schedule": "0 0 30 2 *"}})),
        "not at once, since no instant matches the schedule (spec.schedule: correct its day of month or its month); then \
         never"
    );
}

#[test]
fn o_3_a_suspended_cron_job_shows_what_on_resume_starts() {
    let skipped = "not at once, since the slot passed while the CronJob was held back, and cronwheel.dev/on-resume, or \
                   without it missed-runs, is skip";
    for (on_resume, missed_runs, policy, expected) in [
        ("skip", "latest", "Allow", skipped),
        ("none", "skip", "Allow", skipped),
        (
            "latest",
            "skip",
            "Allow",
            "at once, slot Tue 2026-05-05 09:30 UTC, 30m 5s ago",
        ),
        (
            "all 2",
            "latest",
            "Allow",
            "at once, slot Tue 2026-05-05 08:30 UTC, 1h 30m ago, and 1 later slot",
        ),
        (
            "all",
            "skip",
            "Forbid",
            "at once, slot Tue 2026-05-05 07:30 UTC, 2h 30m ago, and 2 later slots",
        ),
        (
            "all",
            "skip",
            "Replace",
            "at once, slot Tue 2026-05-05 09:30 UTC, 30m 5s ago",
        ),
    ] {
        let changes = json!({
            "metadata": {"annotations": {"cronwheel.dev/on-resume": on_resume, "cronwheel.dev/missed-runs": missed_runs}},
            "spec": {"suspend": true, "schedule": "30 * * * *", "concurrencyPolicy": policy},
            "status": {"lastScheduleTime": "2026-05-05T06:30:00Z"},
        });
        let line = labelled(&["             if it were resumed now: "], changes, &[]).concat();
        let expected =
            format!("             if it were resumed now: {expected}; then in 29m 55s, Tue 2026-05-05 10:30 UTC");
        assert_eq!(line, expected, "{on_resume}, {missed_runs}");
    }
}

#[test]
fn o_5_6_a_schedule_without_a_later_instant_is_named() {
    let by_option = |schedule: &str| json!({"metadata": {"annotations": {"cronwheel.dev/schedule": schedule}}});
    let suspended = with(by_option("0 0 3 1 1 * 2020"), json!({"spec": {"suspend": true}}));
    let ended = "never: the schedules of the annotation cronwheel.dev/schedule match no later instant; correct them";
    let nothing_of_option = "NeverRuns: no instant matches the schedule (annotation cronwheel.dev/schedule: correct its days \
                             of month or its months)";
    let nothing = "NeverRuns: no instant matches the schedule (spec.schedule: correct its day of month or its month)";
    for (changes, problem, next) in [
        (
            by_option("0 0 3 1 1 * 2020"),
            Some(ended),
            "never: no later instant matches",
        ),
        (suspended, Some(ended), "none while spec.suspend is true"),
        (
            by_option("0 0 3 1 1 * 2040"),
            None,
            "in 4988d 16h, Sun 2040-01-01 03:00 UTC",
        ),
        // Its last slot is due.
        (by_option("0 0 10 5 5 * 2026"), None, "never: no later instant matches"),
        (
            by_option("0 0 3 30 2 *"),
            Some(nothing_of_option),
            "never: no later instant matches",
        ),
        (
            json!({"spec": {"schedule": "0 0 30 2 *"}}),
            Some(nothing),
            "never: no instant within five years matches",
        ),
    ] {
        let mut listed = Vec::new();
        let result = run_into(&cron_job(changes.clone()).to_string(), &["--check"], &mut listed);
        let expected = match problem {
            Some(problem) => format!("CronJob default/hello: {problem}\n0 of 1 CronJobs can run\n"),
            None => "1 of 1 CronJobs can run\n".to_owned(),
        };
        let listed = String::from_utf8(listed).unwrap();
        let problems = listed.split_inclusive('\n').filter(|line| !line.contains(": option "));
        assert_eq!(problems.collect::<String>(), expected);
        assert_eq!(result.is_err(), problem.is_some(), "{changes}");
        let line = labelled(&["next  "], changes, &[]).concat();
        assert_eq!(line, format!("next         {next}"));
    }
}

#[test]
fn b_9_7_a_short_deadline_is_explained() {
    let note = |seconds: i64| labelled(&["note"], json!({"spec": {"startingDeadlineSeconds": seconds}}), &[]);
    assert_eq!(
        note(5),
        [
            "note         startingDeadlineSeconds is 5: enough for cronwheel, which misses only a run that it finds more \
             than 5 s late, as after an outage; the built-in controller also loses runs when it is that late"
        ]
    );
    assert_eq!(
        note(0),
        [
            "note         startingDeadlineSeconds is 0: enough for cronwheel, which misses only a run that it finds more \
             than 0 s late, as after an outage; the built-in controller starts nothing"
        ]
    );
    assert!(note(10).is_empty());
}
