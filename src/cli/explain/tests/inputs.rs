//! Tests of the forms of input, of default values, and of input that is refused.

use super::*;

#[test]
fn annotations_without_an_effect_are_noted() {
    let annotations = json!({"cronwheel.dev/spreads": "1m", "cronwheel.dev/freeze-until": "2026-05-06T00:00:00Z"});
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace",
        "metadata": {"name": "default", "annotations": {"cronwheel.dev/not-on": "holidays"}}});
    let labels = json!({"cronwheel.dev/missed-runs": "skip"});
    let objects = [
        cron_job(json!({"metadata": {"annotations": annotations, "labels": labels}})),
        namespace,
    ];
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects}).to_string();
    let sentences = [
        "annotation cronwheel.dev/freeze-until has no effect on a CronJob; set it on the namespace",
        "annotation cronwheel.dev/spreads has no effect; did you mean cronwheel.dev/spread?",
        "label cronwheel.dev/missed-runs has no effect; set it as an annotation",
        "annotation cronwheel.dev/not-on of the namespace has no effect; set it on each CronJob",
    ];
    let printed = run_on(&list, &[]).unwrap().output;
    let mut checked = Vec::new();
    run_into(&list, &["--check"], &mut checked).unwrap_err();
    let checked = String::from_utf8(checked).unwrap();
    for sentence in sentences {
        assert!(printed.contains(sentence), "{printed}");
        assert!(
            checked.contains(&format!("CronJob default/hello: {sentence}\n")),
            "{checked}"
        );
    }
    assert!(checked.ends_with("1 of 1 CronJobs can run\n"), "{checked}");
}

/// Lists as `kubectl get --raw` prints them: their items have neither kind nor version.
#[test]
fn items_of_a_list_have_its_version() {
    let holidays = json!({"metadata": {"name": "holidays", "namespace": "default",
        "labels": {"cronwheel.dev/calendar": "true"}}, "data": {"dates": "2026-05-06"}});
    let mut item = cron_job(json!({"metadata": {"annotations": {"cronwheel.dev/not-on": "holidays"}}}));
    item.as_object_mut()
        .unwrap()
        .retain(|name, _| name != "kind" && name != "apiVersion");
    let namespace = json!({"metadata": {"name": "default", "annotations": {"cronwheel.dev/missed-runs": "skip"}}});
    let lists = [
        json!({"kind": "NamespaceList", "apiVersion": "v1", "items": [namespace]}),
        json!({"kind": "ConfigMapList", "apiVersion": "v1", "items": [holidays]}),
        json!({"kind": "PodList", "apiVersion": "v1", "items": [{"metadata": {"name": "web"}}]}),
        json!({"kind": "CronJobList", "apiVersion": "batch/v1", "items": [item]}),
    ];
    let printed = run_on(&lists.map(|list| list.to_string()).join("\n"), &[]).unwrap();
    for sentence in [
        "missed-runs: a slot that has not started 60 s after its time does not start\n",
        "not-on: nothing starts on the dates of the ConfigMap holidays\n",
    ] {
        assert!(printed.output.contains(sentence), "{}", printed.output);
    }
    let left_out = printed.notes.lines().filter(|note| note.contains(" left out "));
    assert!(
        left_out.eq(["cronwheel: note: v1 Pod left out (1): only batch/v1 CronJobs and Jobs are used, with namespaces and calendars"]),
        "{}",
        printed.notes
    );
}

#[test]
fn an_annotation_that_is_no_text_hides_no_other() {
    let changes = json!({"metadata": {"annotations": {
        "cronwheel.dev/pass-scheduled-time": true, "cronwheel.dev/spread": "2m", "cronwheel.dev/not-on": "",
        "cronwheel.dev/late-after-seconds": 5,
    }}});
    let printed = run_on(&cron_job(changes.clone()).to_string(), &[]).unwrap().output;
    assert!(printed.contains("in a window of 2m\n"), "{printed}");
    let mut checked = Vec::new();
    run_into(&cron_job(changes).to_string(), &["--check"], &mut checked).unwrap_err();
    let checked = String::from_utf8(checked).unwrap();
    assert!(
        checked.contains(": InvalidOption: annotation cronwheel.dev/not-on is \"\": "),
        "{checked}"
    );
}

#[test]
fn the_check_lists_what_options_change() {
    let annotations = json!({"cronwheel.dev/missed-runs": "skip", "cronwheel.dev/pass-scheduled-time": "true"});
    let list = json!({"kind": "List", "items": [cron_job(json!({"metadata": {"annotations": annotations}}))]});
    let checked = run_on(&list.to_string(), &["--check"]).unwrap().output;
    let expected = "CronJob default/hello: option missed-runs: a slot that has not started 60 s after its time does not start\n\
                    CronJob default/hello: option pass-scheduled-time: the Pods get the time of the slot as an annotation\n\
                    1 of 1 CronJobs can run\n";
    assert_eq!(checked, expected);
}

/// The explanation of a text, as JSON.
#[track_caller]
fn run_json_text(input: &str) -> Value {
    let printed = run_on(input, &["-o", "json"]).unwrap_or_else(|error| panic!("{error}"));
    serde_json::from_str(&printed.output).unwrap()
}

const HAND_WRITTEN: &str = "
apiVersion: batch/v1
kind: CronJob
metadata:
  name: hello
spec:
  schedule: 0 10 * * *   # no quotes needed
  jobTemplate: {spec: {template: {spec: {restartPolicy: Never}}}}
status:
  lastScheduleTime: 2026-05-04T10:00:00Z
";

#[test]
fn yaml_is_parsed_as_by_kubectl() {
    let yaml = HAND_WRITTEN.replace(
        "restartPolicy: Never",
        "args: [yes, \"yes\", 0644, \"0644\", 1e3, 2026-05-05, ~, null, \"null\"]",
    );
    let answer = run_json_text(&yaml);
    assert_eq!(answer["slot"], "2026-05-05T10:00:00Z");
    assert_eq!(
        answer["job"]["spec"]["template"]["spec"]["args"],
        json!([true, "yes", 420, "0644", 1000, "2026-05-05", null, null, "null"])
    );
}

#[test]
fn yaml_anchors_are_expanded_within_a_limit() {
    let yaml = HAND_WRITTEN.replace("{restartPolicy: Never}", "{a: &a {x: 1}, b: {<<: *a, y: 2}, c: *a}");
    let answer = run_json_text(&yaml);
    assert_eq!(
        answer["job"]["spec"]["template"]["spec"],
        json!({"a": {"x": 1}, "b": {"x": 1, "y": 2}, "c": {"x": 1}})
    );
    let level = |level: usize| {
        let before = vec![format!("*a{level}"); 10].join(", ");
        format!("a{}: &a{} [{before}]\n", level + 1, level + 1)
    };
    let bomb: String = std::iter::once("a0: &a0 [1, 1]\n".to_owned())
        .chain((0..10).map(level))
        .collect();
    assert!(run_on(&bomb, &[]).unwrap_err().contains("not YAML"));
}

#[test]
fn documents_and_lists_are_equivalent() {
    let (first, second) = (cron_job(json!({})), cron_job(json!({"metadata": {"name": "other"}})));
    let bare = |object: &Value| with(object.clone(), json!({"kind": null, "apiVersion": null}));
    let json_list =
        |kind: &str, items: Value| json!({"apiVersion": "batch/v1", "kind": kind, "items": items}).to_string();
    let inputs = [
        format!("{first}\n{second}"),
        format!("---\n{first}\n---\n# nothing\n---\n{second}\n"),
        json_list("List", json!([first, second])),
        json_list("CronJobList", json!([bare(&first), bare(&second)])),
    ];
    for input in inputs {
        let answer = run_json_text(&input);
        let names = |answer: &Value| answer["job"]["metadata"]["name"].clone();
        let names: Vec<Value> = answer.as_array().unwrap().iter().map(names).collect();
        assert_eq!(names, ["hello-29632920", "other-29632920"], "{input}");
    }
}

#[test]
fn an_empty_job_list_is_accepted() {
    let input = format!("{HAND_WRITTEN}---\napiVersion: batch/v1\nkind: JobList\nitems: []\n");
    assert_eq!(run_json_text(&input)["decision"], "fire");
    let input = format!("{HAND_WRITTEN}---\napiVersion: batch/v1\nkind: JobList\nitems:\n");
    assert_eq!(run_json_text(&input)["decision"], "fire");
}

#[test]
fn defaults_of_the_api_server_are_added() {
    let answer = run_json_text(HAND_WRITTEN);
    let uid = &answer["job"]["metadata"]["ownerReferences"][0]["uid"];
    assert_eq!(
        uid, "348d4214-fd40-8972-9695-42178752c599",
        "the uid is the same in every run"
    );
    assert_eq!(answer["status"]["active"][0]["namespace"], "default");
}

#[test]
fn b_11_5_json_numbers_are_copied_verbatim() {
    let object = cron_job(json!({"spec": {"jobTemplate": {"spec": {"odd": "NUMBERS"}}}}));
    let list = json!({"kind": "List", "items": [job(1, json!({})), object]});
    for json in [object.to_string(), list.to_string()] {
        let numbers = r#"[ 12345678901234567890123,1.10, 1E2 ,{ }, "a\" : , \\"]"#;
        let json = json.replace("\"NUMBERS\"", numbers);
        let printed = run_on(&json, &["-o", "json"]).unwrap().output;
        assert!(printed.contains(numbers), "{printed}");
    }
}

#[test]
fn history_limits_default_to_three_and_one() {
    let complete = |minutes| job(minutes, ended("Complete", Some("09:00:00")));
    let mut objects: Vec<Value> = (0..5).map(|n| complete(29_632_800 + n * 10)).collect();
    objects.extend((0..3).map(|n| job(29_632_700 + n * 10, ended("Failed", None))));
    objects.push(cron_job(json!({"spec": {"successfulJobsHistoryLimit": null}})));
    check(
        &objects,
        &[],
        json!({"deletes": ["hello-29632800", "hello-29632810", "hello-29632700", "hello-29632710"]}),
    );
}

#[test]
fn a_missing_uid_is_taken_from_a_reference() {
    let active = json!({"spec": {"concurrencyPolicy": "Forbid"}, "status": {"active": [entry(29_632_910)]}});
    let without_uid = json!({"metadata": {"uid": null}});
    for (of_cron_job, of_job) in [(without_uid.clone(), json!({})), (json!({}), without_uid)] {
        let objects = [with(cron_job(active.clone()), of_cron_job), job(29_632_910, of_job)];
        // A Job with another uid would be missing in the active list, or belong to another CronJob.
        check(&objects, &[], json!({"reason": "Forbidden", "status": null}));
    }
}

#[test]
fn without_uids_objects_match_by_name() {
    let yaml = "
apiVersion: batch/v1
kind: CronJob
metadata: {name: hello}
spec: {schedule: '*/10 * * * *', concurrencyPolicy: Forbid, jobTemplate: {}}
status: {lastScheduleTime: 2026-05-05T09:50:00Z, active: [{name: hello-29632910}]}
---
apiVersion: batch/v1
kind: Job
metadata:
  name: hello-29632910
  ownerReferences: [{kind: CronJob, name: hello, controller: true}]
";
    assert_eq!(run_json_text(yaml)["reason"], "Forbidden");
    // Without the Job, the controller would report the entry of the active list as missing.
    let alone = yaml.split("---").next().unwrap();
    assert_eq!(run_json_text(alone)["events"][0]["reason"], "MissingJob");
}

#[test]
fn a_missing_creation_timestamp_means_now() {
    let changes = json!({"metadata": {"creationTimestamp": null}, "status": null});
    check(
        &[cron_job(changes)],
        &[],
        json!({"reason": "NotDue", "nextWakeup": "2026-05-05T10:10:00Z"}),
    );
}

#[test]
fn a_job_of_another_namespace_does_not_take_the_job_name() {
    let elsewhere = job(
        29_632_920,
        json!({"metadata": {"namespace": "other", "ownerReferences": null}}),
    );
    check(&[cron_job(json!({})), elsewhere], &[], json!({"reason": "Created"}));
}

#[test]
fn other_kinds_are_skipped_with_a_note() {
    let input = format!("{HAND_WRITTEN}---\napiVersion: v1\nkind: Pod\nmetadata: {{name: a}}\n");
    let printed = run_on(&input, &["-o", "json"]).unwrap();
    assert!(printed.notes.contains("v1 Pod left out (1)"), "{}", printed.notes);
    assert_eq!(printed.output, run_on(HAND_WRITTEN, &["-o", "json"]).unwrap().output);
}

#[test]
fn an_undecodable_cron_job_is_explained() {
    let objects = [cron_job(json!({"spec": {"suspend": "perhaps"}}))];
    let message =
        "CronJob default/hello cannot be decoded: spec.suspend: invalid type: string \"perhaps\", expected a boolean";
    check(
        &objects,
        &[],
        json!({
            "decision": "skip", "reason": "Undecodable",
            "events": [event("Warning", "UndecodableCronJob", message)],
        }),
    );
}

#[test]
fn an_undecodable_job_is_noted() {
    let broken = job(29_632_910, json!({"status": {"startTime": "yesterday"}}));
    let list = json!({"kind": "List", "items": [cron_job(json!({})), broken]});
    let printed = run_on(&list.to_string(), &["-o", "json"]).unwrap();
    assert!(
        printed.notes.contains("Job default/hello-29632910"),
        "{}",
        printed.notes
    );
}

#[test]
fn a_job_without_a_name_is_left_out_with_a_note() {
    let generated = "apiVersion: batch/v1\nkind: Job\nmetadata: {generateName: hello-}\n";
    let input = format!("{HAND_WRITTEN}---\n{generated}---\n{generated}");
    let printed = run_on(&input, &["-o", "json"]).unwrap();
    let note = |number: u8| {
        format!("cronwheel: note: document {number} of standard input left out: the Job has no metadata.name\n")
    };
    assert_eq!(printed.notes, note(2) + &note(3));
    assert_eq!(printed.output, run_on(HAND_WRITTEN, &["-o", "json"]).unwrap().output);
}

#[test]
fn invalid_input_is_refused_with_a_fix() {
    #[track_caller]
    fn refuse(input: &str, what: &str, fix: &str) {
        let error = run_on(input, &[]).unwrap_err();
        assert!(error.contains(what) && error.contains(fix), "{input}: {error}");
    }
    refuse("", "standard input: no batch/v1 CronJob", "give at least one");
    refuse("{}", "document 1 of standard input has no kind", "apiVersion");
    refuse(
        "hello",
        "document 1 of standard input is not an object",
        "Kubernetes objects",
    );
    refuse("a: b: c", "document 1 of standard input: not YAML", "line 1");
    refuse("spec:\n  schedule: * * * * *", "not YAML", "begins with * in quotes");
    refuse("spec:\n  schedule: */5 * * * *", "not YAML", "begins with * in quotes");
    refuse(
        "metadata:\n  name: {{ .Release.Name }}",
        "not YAML",
        "render a Helm template first, such as helm template CHART | cronwheel explain -f -",
    );
    refuse(
        "schedule: @daily",
        "not YAML",
        "line 1, column 11; put @daily in quotes",
    );
    refuse("a:\n\tb: 1", "not YAML", "indent with spaces, not with tabs");
    refuse("{\"kind\": ", "document 1 of standard input: not JSON", "line 1");
    refuse("kind: Job\nmetadata: {name: a}", "no batch/v1 CronJob", "at least one");
}

#[test]
fn a_file_in_another_encoding_is_refused_with_a_fix() {
    let text = format!("\u{feff}{HAND_WRITTEN}");
    let utf_16: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let objects = object_files::read_all(&["-".to_owned()], &*utf_16).unwrap();
    assert_eq!(objects.broken, ["-f -: not UTF-8; save it as UTF-8"]);
}

#[test]
fn invalid_flags_are_refused_with_a_remedy() {
    #[track_caller]
    fn refuse(arguments: &[&str], flag: &str, remedy: &str) {
        let error = run_on(HAND_WRITTEN, arguments).unwrap_err();
        assert!(error.contains(flag) && error.contains(remedy), "{arguments:?}: {error}");
    }
    refuse(&["--now", "yesterday"], "--now", "2026-11-21T10:30:00Z");
    refuse(
        &["--now", "2100-01-01T00:00:00Z"],
        "--now",
        "from 1973 to the end of 2099",
    );
    refuse(
        &["--now", "9999-01-01T00:00:00Z"],
        "--now",
        "from 1973 to the end of 2099",
    );
    refuse(
        &["--now", "1972-12-31T23:59:59Z"],
        "--now",
        "from 1973 to the end of 2099",
    );
    refuse(
        &["--assume", "create=maybe"],
        "--assume",
        "create=created, create=exists",
    );
    refuse(
        &["--assume", "delete=error"],
        "--assume",
        "create=foreign or create=error",
    );
    refuse(
        &["--default-time-zone", "europe/berlin"],
        "--default-time-zone",
        "write Europe/Berlin",
    );
    refuse(&["-o", "yaml"], "--output", "json");
}

#[test]
fn extreme_timestamps_are_answered() {
    let times = [
        "0001-01-01T00:00:00Z",
        "1969-07-20T00:00:00Z",
        "2099-12-31T23:59:59Z",
        "9999-12-30T22:00:00Z",
    ];
    for now in ["1973-01-01T00:00:00Z", "2099-12-31T23:59:59.9Z"] {
        for (created, last) in times.iter().flat_map(|created| times.map(|last| (created, last))) {
            for (schedule, zone) in [
                ("30 2 * * 0", "Africa/Monrovia"),
                ("* * * * *", "America/New_York"),
                ("@every 1s", "UTC"),
            ] {
                let objects = [cron_job(json!({
                    "metadata": {"creationTimestamp": created},
                    "spec": {"schedule": schedule, "timeZone": zone}, "status": {"lastScheduleTime": last},
                }))];
                let answer = run_json(&objects, &["--now", now]);
                assert!(
                    answer["reason"] == "Created" || answer["reason"] == "NotDue",
                    "{answer:#}"
                );
            }
        }
    }
}

/// Returns the next pseudorandom number (xorshift).
fn next_number(state: &mut u64) -> usize {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    usize::try_from(*state >> 33).unwrap()
}

/// Picks a random element.
fn pick<'a, T: ?Sized>(state: &mut u64, of: &[&'a T]) -> &'a T {
    of[next_number(state) % of.len()]
}

/// A random CronJob with random Jobs, some of them running and some invalid, and an active list of any length.
fn any_list(state: &mut u64) -> String {
    let zone = pick(
        state,
        &[
            "Europe/Berlin",
            "Africa/Cairo",
            "Australia/Lord_Howe",
            "America/Santiago",
            "Local",
            "",
            "Mars/Base",
        ],
    );
    let schedule = pick(
        state,
        &[
            "*/10 * * * *",
            "0 12 * * 5",
            "30 2 29 2 *",
            "TZ=Local @daily",
            "@every 7s",
        ],
    );
    let policy = pick(state, &["Allow", "Forbid", "Replace"]);
    let longest = if next_number(state).is_multiple_of(20) { 120 } else { 12 };
    let n_active = i64::try_from(next_number(state) % longest).unwrap();
    let active: Vec<Value> = (0..n_active).map(|n| entry(29_632_900 + n)).collect();
    let mut items = vec![cron_job(json!({
        "spec": {"schedule": schedule, "timeZone": zone, "concurrencyPolicy": policy},
        "status": {"active": active},
    }))];
    for minutes in 29_632_909..29_632_922 {
        match next_number(state) % 8 {
            0 => items.push(job(minutes, json!({}))),
            1 => items.push(job(minutes, ended("Complete", Some("09:59:00")))),
            2 => items.push(job(minutes, json!({"status": {"startTime": "yesterday"}}))),
            3 => items.push(job(minutes, json!({"metadata": {"ownerReferences": null}}))),
            _ => {}
        }
    }
    json!({"kind": "List", "items": items}).to_string()
}

/// Random flags that are valid with any input.
fn any_flags(state: &mut u64) -> Vec<String> {
    let now = match next_number(state) % 3 {
        0 => "2026-05-05T10:00:05Z".to_owned(),
        1 => pick(
            state,
            &["2026-04-24T09:00:00Z", "2026-04-04T20:00:00Z", "2099-12-31T23:59:59Z"],
        )
        .to_owned(),
        _ => {
            let seconds = INSTANTS_SECONDS.start + i64::try_from(next_number(state)).unwrap() * 2;
            let seconds = seconds.min(INSTANTS_SECONDS.end - 1);
            Timestamp::from_second(seconds).unwrap().to_string()
        }
    };
    let zone = pick(state, &["UTC", "Europe/Berlin", "Africa/Casablanca"]);
    let assumed = pick(state, &["created", "exists", "foreign", "error"]);
    let format = pick(state, &["text", "json"]);
    [
        ["--now".to_owned(), now],
        ["--default-time-zone".to_owned(), zone.to_owned()],
        ["--assume".to_owned(), format!("create={assumed}")],
        ["--output".to_owned(), format.to_owned()],
    ]
    .concat()
}

#[test]
fn mutated_input_does_not_loop_or_panic() {
    let pieces = [
        "",
        "-",
        "\n",
        ": ",
        "null",
        "[",
        "}",
        "&a",
        "*a",
        "9999999999999999999",
        "\"",
        "TZ=",
        "@every ",
        "0 0 31 2 *",
    ];
    let mut state = 42;
    let mut n_answered = 0;
    for round in 0..2_000 {
        let source = if round % 2 == 0 {
            HAND_WRITTEN.to_owned()
        } else {
            any_list(&mut state)
        };
        let mut text: Vec<char> = source.chars().collect();
        // One text in four stays unchanged.
        for _ in 0..next_number(&mut state) % 4 {
            let at = next_number(&mut state) % text.len();
            let end = (at + next_number(&mut state) % 12).min(text.len());
            let piece = pieces[next_number(&mut state) % pieces.len()];
            text.splice(at..end, piece.chars());
        }
        let text: String = text.into_iter().collect();
        let flags = any_flags(&mut state);
        let flags: Vec<&str> = flags.iter().map(String::as_str).collect();
        match run_on(&text, &flags) {
            Ok(_) => n_answered += 1,
            Err(error) => assert!(
                !error.contains("finds no end"),
                "round {round}, {flags:?}: {error}\n{text}"
            ),
        }
    }
    assert!(
        (200..1_800).contains(&n_answered),
        "{n_answered} answered: the mutations are too mild or too wild"
    );
}
