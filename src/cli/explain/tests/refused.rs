//! Tests of `--check` with manifests as people write them: what the API server refuses, with the whole answer, and what
//! `kubectl` accepts.

use super::*;

const TEMPLATE: &str = "{spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: busybox}]}}}}";

/// A CronJob with these lines in its metadata and in its spec.
fn manifest(metadata: &str, spec: &str) -> String {
    format!("apiVersion: batch/v1\nkind: CronJob\nmetadata: {{{metadata}}}\nspec:\n{spec}")
}

/// A CronJob `probe` that runs hourly, with this Job template.
fn with_template(template: &str) -> String {
    manifest(
        "name: probe",
        &format!("  schedule: \"5 * * * *\"\n  jobTemplate: {template}\n"),
    )
}

/// A CronJob with these lines in its spec, and a valid template.
fn with_spec(spec: &str) -> String {
    manifest("name: probe", &format!("{spec}  jobTemplate: {TEMPLATE}\n"))
}

/// Runs `--check`. Returns the output, and the error or the notes.
fn run_check(input: &str) -> (String, Result<String, String>) {
    let mut output = Vec::new();
    let result = run_into(input, &["--check"], &mut output);
    let notes = result.map(|notes| String::from_utf8(notes).unwrap());
    (String::from_utf8(output).unwrap(), notes)
}

/// Checks the lines about `probe`.
#[track_caller]
fn check_refused(input: &str, expected: &[&str]) {
    let (output, result) = run_check(input);
    let line = |text: &&str| format!("CronJob default/probe: refused by the API server: {text}");
    let mut lines: Vec<String> = expected.iter().map(line).collect();
    lines.push("0 of 1 CronJobs can run\n".to_owned());
    assert_eq!(output, lines.join("\n"), "{input}");
    assert!(result.unwrap_err().starts_with("1 of 1 CronJobs"));
}

/// Checks that the CronJob can run. Returns the notes.
#[track_caller]
fn check_accepted(input: &str) -> String {
    let (output, result) = run_check(input);
    assert_eq!(output, "1 of 1 CronJobs can run\n", "{input}");
    result.unwrap()
}

#[test]
fn invalid_names_and_missing_parts_of_the_template_are_refused() {
    let (output, _) = run_check(&with_template(TEMPLATE).replace("probe", "night_sync"));
    assert_eq!(
        output,
        "CronJob default/night_sync: refused by the API server: metadata.name: Invalid value: \"night_sync\": a lowercase \
         RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an \
         alphanumeric character (e.g. 'example.com', regex used for validation is \
         '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*'); write night-sync\n0 of 1 CronJobs can run\n"
    );
    let policy = "spec.jobTemplate.spec.template.spec.restartPolicy: ";
    check_refused(
        &with_template(&TEMPLATE.replace("restartPolicy: Never, ", "")),
        &[&format!(
            "{policy}Required value: valid values: \"OnFailure\", \"Never\"; write restartPolicy: Never, or OnFailure"
        )],
    );
    check_refused(
        &with_template(&TEMPLATE.replace("Never", "Sometimes")),
        &[
            &format!(
                "{policy}Unsupported value: \"Sometimes\": supported values: \"Always\", \"OnFailure\", \"Never\""
            ),
            &format!("{policy}Unsupported value: \"Sometimes\": supported values: \"OnFailure\", \"Never\""),
        ],
    );
    check_refused(
        &with_template("{spec: {template: {spec: {restartPolicy: Never}}}}"),
        &["spec.jobTemplate.spec.template.spec.containers: Required value; give at least one container"],
    );
    check_refused(
        &with_template(&TEMPLATE.replace("{spec: {template", "{spec: {selector: {matchLabels: {a: b}}, template")),
        &[
            "spec.jobTemplate.spec.selector: Invalid value: {\"matchLabels\":{\"a\":\"b\"}}: `selector` will be auto-generated; leave it out",
        ],
    );
}

#[test]
fn a_field_at_another_level_is_told_its_place() {
    check_refused(
        &with_template(&TEMPLATE.replace("{spec: {template", "{spec: {successfulJobsHistoryLimit: 1, template")),
        &["spec.jobTemplate.spec.successfulJobsHistoryLimit: unknown field; it belongs in spec"],
    );
    check_refused(
        &with_spec("  schedule: 5 * * * *\n  backoffLimit: 2\n"),
        &["spec.backoffLimit: unknown field; it belongs in spec.jobTemplate.spec"],
    );
    check_refused(
        &with_template(&TEMPLATE.replace("{spec: {template", "{ttlSecondsAfterFinished: 100, spec: {template")),
        &["spec.jobTemplate.ttlSecondsAfterFinished: unknown field; it belongs in spec.jobTemplate.spec"],
    );
    check_refused(
        &with_template(&TEMPLATE.replace("containers: [{", "image: x, containers: [{imagepullPolicy: Always, ")),
        &[
            "spec.jobTemplate.spec.template.spec.containers[0].imagepullPolicy: unknown field; did you mean imagePullPolicy?",
            "spec.jobTemplate.spec.template.spec.image: unknown field; it belongs in \
             spec.jobTemplate.spec.template.spec.containers[]",
        ],
    );
}

#[test]
fn a_value_of_another_type_is_told_its_form() {
    let env = |value: &str| {
        TEMPLATE.replace(
            "image: busybox",
            &format!("image: busybox, env: [{{name: DAYS, value: {value}}}]"),
        )
    };
    let place = "spec.jobTemplate.spec.template.spec.containers[0].env[0].value";
    check_refused(
        &with_template(&env("30")),
        &[&format!("{place}: 30 is a number; put it in quotes, as it is written")],
    );
    check_refused(
        &with_template(&env("true")),
        &[&format!(
            "{place}: true is a boolean; put it in quotes, as it is written"
        )],
    );
    for (spec, problem) in [
        (
            "startingDeadlineSeconds: \"60\"",
            "\"60\" is text; write a whole number, without quotes",
        ),
        ("startingDeadlineSeconds: 1m", "\"1m\" is text; write a whole number"),
        ("startingDeadlineSeconds: 1.5", "1.5 is a number; write a whole number"),
        (
            "failedJobsHistoryLimit: 3000000000",
            "3000000000 is a number; write a whole number from -2147483648 to 2147483647",
        ),
        (
            "suspend: \"true\"",
            "\"true\" is text; write true or false, without quotes",
        ),
        ("timeZone: [UTC]", "a list; write text"),
    ] {
        let field = spec.split(':').next().unwrap();
        let input = with_spec(&format!("  schedule: 5 * * * *\n  {spec}\n"));
        check_refused(&input, &[&format!("spec.{field}: {problem}")]);
    }
    let labels = manifest(
        "name: probe, labels: {version: 2}",
        &format!("  schedule: 5 * * * *\n  jobTemplate: {TEMPLATE}\n"),
    );
    check_refused(
        &labels,
        &["metadata.labels[version]: 2 is a number; put it in quotes, as it is written"],
    );
}

#[test]
fn line_breaks_and_quotes_inside_values_are_named() {
    check_refused(
        &with_spec("  schedule: >\n    15 4 * * *\n  timeZone: |\n    Europe/Paris\n"),
        &[
            "spec.timeZone: Invalid value: \"Europe/Paris\\n\": unknown time zone Europe/Paris\\n; remove the line break: write \
           Europe/Paris",
        ],
    );
    check_refused(
        &with_spec("  schedule: \"'*/5 * * * *'\"\n"),
        &[
            "spec.schedule: Invalid value: \"'*/5 * * * *'\": failed to parse int from '*: strconv.Atoi: parsing \"'*\": invalid \
           syntax; remove the quote ' inside the value: write '*/5 * * * *' (every 5 minutes)",
        ],
    );
    check_refused(
        &with_spec("  schedule: 0 5 * * *\n  timeZone: GMT+2\n"),
        &[
            "spec.timeZone: Invalid value: \"GMT+2\": unknown time zone GMT+2; write Etc/GMT-2, which is 2 h ahead of UTC: the \
           sign is reversed in these names",
        ],
    );
}

#[test]
fn numbers_are_read_as_kubectl_sends_them() {
    for number in ["1.2096e+06", "1e3", "08", "600.0"] {
        let input = with_spec(&format!("  schedule: 5 * * * *\n  startingDeadlineSeconds: {number}\n"));
        assert_eq!(check_accepted(&input), "", "{number}");
    }
    let object = cron_job(json!({"spec": {"startingDeadlineSeconds": "NUMBER"}})).to_string();
    check_accepted(&object.replace("\"NUMBER\"", "1.2096e+06"));
}

#[test]
fn a_generated_name_is_accepted() {
    let generated = with_template(TEMPLATE).replace("name: probe", "generateName: probe-");
    check_accepted(&generated);
    let printed = run_on(&generated, &[]).unwrap().output;
    assert!(printed.starts_with("CronJob default/probe-xxxxx at"), "{printed}");
    let note = "note         metadata.generateName: kubectl create accepts it, and kubectl apply does not\n";
    assert!(printed.contains(note), "{printed}");
    let (output, _) = run_check(&with_template(TEMPLATE).replace("name: probe", ""));
    assert_eq!(
        output,
        "CronJob of document 1 of standard input: refused by the API server: metadata.name: Required value: name or \
         generateName is required; give it one\n0 of 1 CronJobs can run\n"
    );
}

#[test]
fn one_bad_document_hides_no_other() {
    let good = with_template(TEMPLATE);
    let bad = with_spec("  schedule: \"61 * * * *\"\n").replace("name: probe", "name: other");
    let (output, result) = run_check(&format!(
        "{good}---\n# nothing\n---\nspec:\n  schedule: */5 * * * *\n---\nhello\n---\n{bad}"
    ));
    assert_eq!(
        output,
        "document 2 of standard input: not YAML: reference to unknown value at line 11, column 13; put a schedule that begins with * in quotes\n\
         document 3 of standard input is not an object; give Kubernetes objects, with apiVersion, kind, metadata and spec\n\
         CronJob default/other: refused by the API server: spec.schedule: Invalid value: \"61 * * * *\": end of range (61) \
         above maximum (59): 61; correct the minute field, which takes 0-59, as lists, ranges and steps\n\
         1 of 2 CronJobs can run\n"
    );
    assert_eq!(
        result.unwrap_err(),
        "1 of 2 CronJobs can never run or would be refused by the API server, and 2 documents cannot be read; correct what \
         the answer lists"
    );
    // Without --check, the others are explained all the same.
    let mut output = Vec::new();
    let error = run_into(&format!("{good}---\na: b: c\n"), &[], &mut output).unwrap_err();
    assert_eq!(error, "1 document cannot be read; correct what the answer lists");
    assert!(
        String::from_utf8(output)
            .unwrap()
            .starts_with("CronJob default/probe at")
    );
}

#[test]
fn the_last_of_equal_keys_counts_with_a_note() {
    let deployment =
        "apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: web\n  labels:\n    app: web\n    app: web\n";
    assert_eq!(
        check_accepted(&format!("{deployment}---\n{}", with_template(TEMPLATE))),
        "cronwheel: note: apps/v1 Deployment left out (1): only batch/v1 CronJobs and Jobs are used, with namespaces \
         and calendars\n\
         cronwheel: note: standard input: duplicate mapping key: app at line 7, column 5; kubectl keeps the last\n"
    );
}

#[test]
fn both_of_two_with_one_name_are_checked() {
    let bad = with_spec("  schedule: \"61 * * * *\"\n");
    let (output, result) = run_check(&format!("{}---\n{bad}", with_template(TEMPLATE)));
    assert!(
        output.starts_with(
            "CronJob default/probe (document 2 of standard input): refused by the API server: spec.schedule: "
        ),
        "{output}"
    );
    assert!(result.unwrap_err().starts_with("1 of 2 CronJobs"));
    let twice = format!("{}---\n{}", with_template(TEMPLATE), with_template(TEMPLATE));
    assert_eq!(
        run_check(&twice).1.unwrap(),
        "cronwheel: note: CronJob default/probe occurs in document 1 of standard input and document 2 of standard input: each \
         is checked, and the last one that is applied stays\n"
    );
    let jobs = [
        cron_job(json!({})),
        job(1, json!({})),
        job(2, json!({"metadata": {"uid": "job-1"}})),
        job(1, json!({})),
    ];
    let printed = run_on(&json!({"kind": "List", "items": jobs}).to_string(), &[]).unwrap();
    for note in [
        "item 4 of document 1 of standard input left out: Job default/hello-1 is also in item 2 of document 1 of standard input",
        "item 3 of document 1 of standard input left out: Job hello-2 has the metadata.uid job-1 of another Job",
    ] {
        assert!(printed.notes.contains(note), "{}", printed.notes);
    }
}

#[test]
fn forbid_says_why_the_job_is_still_active() {
    let message = |changes: Value| {
        let forbid = json!({"spec": {"concurrencyPolicy": "Forbid"}, "status": {"active": [entry(29_632_910)]}});
        let answer = run_json(&[cron_job(forbid), job(29_632_910, changes)], &[]);
        assert_eq!(answer["reason"], "Forbidden");
        let message = answer["message"].as_str().unwrap();
        message.rsplit_once('(').unwrap().1.trim_end_matches(')').to_owned()
    };
    let deleted = |finalizers: Value| json!({"metadata": {"deletionTimestamp": "2026-05-05T09:55:00Z", "finalizers": finalizers}});
    for (changes, expected) in [
        (json!({}), "is active since Tue 2026-05-05 09:50 UTC"),
        (
            json!({"spec": {"suspend": true}}),
            "is suspended by its spec.suspend and does not end before it is resumed",
        ),
        (
            json!({"spec": {"managedBy": "kueue.x-k8s.io/multikueue"}}),
            "is active since Tue 2026-05-05 09:50 UTC, and its manager kueue.x-k8s.io/multikueue has not ended it",
        ),
        (
            json!({"spec": {"managedBy": "kubernetes.io/job-controller"}}),
            "is active since Tue 2026-05-05 09:50 UTC",
        ),
        (
            deleted(json!(["foregroundDeletion"])),
            "is being deleted since Tue 2026-05-05 09:55 UTC, and the finalizer foregroundDeletion holds it",
        ),
        (
            deleted(json!(["a.example.com/x", "b.example.com/y"])),
            "is being deleted since Tue 2026-05-05 09:55 UTC, and the finalizers a.example.com/x, b.example.com/y hold it",
        ),
        (deleted(Value::Null), "is being deleted since Tue 2026-05-05 09:55 UTC"),
    ] {
        assert_eq!(message(changes), format!("Job hello-29632910 {expected}"));
    }
}

#[test]
fn a_replaced_job_that_a_finalizer_holds_does_not_become_active_again() {
    let replace = json!({"spec": {"concurrencyPolicy": "Replace"}, "status": {
        "lastScheduleTime": "2026-05-05T10:00:00Z", "active": [entry(29_632_920)],
    }});
    let held = json!({"metadata": {"deletionTimestamp": "2026-05-05T10:00:00Z", "finalizers": ["example.com/hold"]}});
    let objects = [cron_job(replace), job(29_632_910, held), job(29_632_920, json!({}))];
    check(
        &objects,
        &[],
        json!({"reason": "NotDue", "status": null, "deletes": [], "events": []}),
    );
}
