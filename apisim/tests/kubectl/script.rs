//! The commands that print the same on both servers. Nothing runs Jobs here: the script writes their statuses.

use crate::session::Session;

const HELLO: &str = "
apiVersion: batch/v1
kind: CronJob
metadata:
  name: hello
  labels: {app: hello}
spec:
  schedule: '*/5 * * * *'
  timeZone: Europe/Berlin
  jobTemplate:
    spec:
      template:
        spec:
          restartPolicy: Never
          containers:
          - name: hello
            image: busybox
            command: [echo, hello]
            env: [{name: A, value: a}, {name: B, value: b}]
";

const COMPLETE: &str = r#"{"status":{"startTime":"2026-01-02T03:04:05Z","completionTime":"2026-01-02T03:04:15Z","succeeded":1,"conditions":[{"type":"SuccessCriteriaMet","status":"True","lastTransitionTime":"2026-01-02T03:04:15Z"},{"type":"Complete","status":"True","lastTransitionTime":"2026-01-02T03:04:15Z"}]}}"#;

pub(crate) fn run(session: &mut Session) {
    session.run("create namespace team");
    session.run("create namespace team");
    session.run("get namespace team");
    session.run("label namespace team stage=test");
    session.run("get ns team --show-labels");
    session.run("get ns default kube-system -o yaml");
    apply(session);
    server_side(session);
    get(session);
    change(session);
    jobs(session);
    events(session);
    refusals(session);
    delete(session);
}

fn apply(session: &mut Session) {
    session.run_with("-n team apply -f -", HELLO);
    session.run_with("-n team apply -f -", HELLO);
    let changed = HELLO
        .replace("*/5", "*/7")
        .replace("[{name: A, value: a}, {name: B, value: b}]", "[{name: B, value: c}]");
    session.run_with("-n team diff -f -", &changed);
    session.run_with("-n team apply -f - --dry-run=server", &changed);
    session.run_with("-n team apply -f -", &changed);
    session.run("-n team get cj hello -o yaml");
    let two = changed.replace(
        "          - name: hello",
        "          - {name: more, image: more}\n          - name: hello",
    );
    session.run_with("-n team apply -f -", &two);
    session.run("-n team get cj -o wide");
    session.run_with("-n team apply -f -", HELLO);
    session.run("-n team get cj hello -o jsonpath={.spec.jobTemplate.spec.template.spec.containers}");
    session.run_with("-n team apply -f - --dry-run=client", HELLO);
    session.run_with("-n team replace -f -", &changed);
    session.run_with(
        "-n team apply -f -",
        "{apiVersion: batch/v1, kind: CronJob, metadata: {name: bad}, spec: {skedule: x}}",
    );
    session.run("-n team apply view-last-applied cj/hello");
}

fn server_side(session: &mut Session) {
    let second = HELLO.replace("name: hello\n  labels", "name: aside\n  labels");
    let of_other_manager = second.replace("labels: {app: hello}", "labels: {app: hello, also: there}");
    let changed = second.replace("busybox", "other");
    let changed_more = changed.replace("*/5", "*/8").replace("value: b", "value: c");
    session.run_with("-n team apply --server-side -f -", &second);
    session.run_with("-n team apply --server-side -f -", &second);
    session.run_with("-n team apply --server-side -f -", &second.replace("*/5", "*/9"));
    session.run_with(
        "-n team apply --server-side --field-manager=other -f -",
        &of_other_manager,
    );
    session.run_with(
        "-n team apply --server-side --field-manager=other --force-conflicts -f -",
        &of_other_manager,
    );
    session.run("-n team get cj aside -o yaml");
    session.run_with("-n team apply --server-side --dry-run=server -f -", &changed);
    session.run_with("-n team apply --server-side -f -", &changed_more);
    session.run_with("-n team diff --server-side -f -", &changed);
    session.run_with("-n team diff --server-side --force-conflicts -f -", &changed);
    session.run_with("-n team apply --server-side --force-conflicts -f -", &changed_more);
    session.run("-n team get cj aside -o yaml");
}

fn get(session: &mut Session) {
    for output in [
        "",
        " -o wide",
        " -o yaml",
        " -o json",
        " -o name",
        " --show-labels",
        " --no-headers",
        " -L app",
        " --sort-by=.spec.schedule",
    ] {
        session.run(&format!("-n team get cronjobs{output}"));
    }
    session.run("get cj -A");
    session.run("get cronjob.batch -A --selector app=hello -o custom-columns=N:.metadata.name,S:.spec.schedule");
    session.run("-n team get cj --selector app!=hello");
    session.run("-n team get cj --field-selector metadata.name=hello");
    session.run("-n team get cj --field-selector spec.schedule=x");
    session.run("-n team get cj hello none");
    session.run("-n team get cj --chunk-size=1 -o name");
    session.run("-n team get all");
    session.run("get jobs -A");
    session.run("-n team get nothings");
    session.run("-n nowhere get cj");
    session.run("-n team get cj/hello -o jsonpath={.metadata.generation}");
}

fn change(session: &mut Session) {
    session.run("-n team annotate cj hello note=one");
    session.run("-n team annotate cj hello note=two");
    session.run("-n team annotate cj hello note=two --overwrite");
    session.run("-n team annotate cj hello note-");
    session.run("-n team label cj --all team=red");
    session.run("-n team label cj hello team-");
    session.run(r#"-n team patch cj hello -p {"spec":{"suspend":true}}"#);
    session.run(r#"-n team patch cj hello -p {"spec":{"suspend":true}}"#);
    session.run(r#"-n team patch cj hello --type=merge -p {"metadata":{"labels":{"merged":"1"}}}"#);
    session
        .run(r#"-n team patch cj hello --type=json -p [{"op":"replace","path":"/spec/schedule","value":"1_1_*_*_*"}]"#);
    session.run_arguments(
        &[
            "-n",
            "team",
            "patch",
            "cj",
            "hello",
            "--type=json",
            "-p",
            r#"[{"op":"replace","path":"/spec/schedule","value":"1 1 * * *"}]"#,
        ],
        "",
    );
    session.run(r#"-n team patch cj hello --type=json -p [{"op":"test","path":"/spec/suspend","value":false}]"#);
    session.run(r#"-n team patch cj hello --subresource=status --type=merge -p {"status":{"lastScheduleTime":"2026-01-02T03:04:05Z"}}"#);
    session.run(r#"-n team patch cj hello -p {"spec":{"concurrencyPolicy":"Never"}}"#);
    session.set_editor("sed -i 's/schedule: 1 1/schedule: 2 2/' \"$1\"");
    session.run("-n team edit cj hello");
    session.set_editor("true");
    session.run("-n team edit cj hello");
    session.run("-n team set image cj/hello hello=newer");
    session.run("-n team set env cj/hello C=c");
    session.run("-n team get cj hello -o yaml");
    session.run("-n team scale cj/hello --replicas=2");
    session.run("-n team describe cronjob hello");
}

fn jobs(session: &mut Session) {
    session.run("-n team create job manual --from=cronjob/hello");
    session.run("-n team create job manual --from=cronjob/hello");
    session.run("-n team create job plain --image=busybox -- echo hello");
    session.run("-n team get jobs");
    session.run("-n team get job manual -o yaml");
    session.run("-n team describe job plain");
    let mut watching = session.start("-n team get jobs -w");
    watching.wait_for(3);
    let waiting = session.start("-n team wait --for=condition=complete job/plain --timeout=300s");
    let complete = [
        "-n",
        "team",
        "patch",
        "job",
        "plain",
        "--subresource=status",
        "--type=merge",
        "-p",
        COMPLETE,
    ];
    session.run_arguments(&complete, "");
    session.wait(waiting);
    session.end(watching, 4);
    session.run("-n team wait --for=condition=failed job/plain --timeout=0");
    session.run("-n team wait --for=jsonpath={.status.succeeded}=1 job/plain --timeout=300s");
    session.run("-n team get jobs -o wide");
    session.run("-n team get jobs --field-selector status.successful=1 -o name");
    session.run("-n team describe job plain");
    session.run("-n team get cj,job");
    session.run("-n team create cronjob made --image=busybox --schedule=@hourly -- date");
    session.run("-n team get cj made -o yaml");
}

fn events(session: &mut Session) {
    let uid = session.run_unrecorded("-n team get cj hello -o jsonpath={.metadata.uid}");
    assert!(uid.is_success, "{uid:?}");
    let uid = session.run("-n team get cj hello -o jsonpath={.metadata.uid}");
    let event = format!(
        "{{apiVersion: v1, kind: Event, metadata: {{name: hello.1, namespace: team}}, reason: SuccessfulCreate, \
         message: Created job x, type: Normal, count: 2, firstTimestamp: 2026-01-02T03:04:05Z, \
         lastTimestamp: 2026-01-02T03:04:05Z, source: {{component: cronjob-controller}}, \
         involvedObject: {{apiVersion: batch/v1, kind: CronJob, name: hello, namespace: team, uid: {uid}}}}}"
    );
    session.run_with("-n team create -f -", &event);
    session.run("-n team get events");
    session.run("-n team get events -o wide");
    session.run("-n team events --for cronjob/hello");
    session.run("-n team describe cj hello");
    session.run("-n team create configmap settings --from-literal=a=1 --from-literal=b=2");
    session.run("-n team get configmap settings -o yaml");
    session.run("-n team describe configmap settings");
    session.run_with(
        "-n team create -f -",
        "{apiVersion: coordination.k8s.io/v1, kind: Lease, metadata: {name: l}, spec: {holderIdentity: me}}",
    );
    session.run("-n team get lease");
    session.run("-n team describe lease l");
}

fn refusals(session: &mut Session) {
    let bad = HELLO
        .replace("name: hello\n", "name: Bad_Name\n")
        .replace("restartPolicy: Never", "restartPolicy: Always")
        .replace("'*/5 * * * *'", "''");
    session.run_with("-n team create -f -", &bad);
    session.run_with("-n team create -f -", HELLO);
    session.run_with(
        "-n team create -f - --validate=ignore",
        &HELLO.replace("name: hello\n  labels", "name: a.b\n  labels"),
    );
    session.run_with(
        "-n team create -f - --validate=false",
        "{apiVersion: batch/v2, kind: CronJob, metadata: {name: x}}",
    );
    session.run_with(
        "-n team create -f -",
        "{apiVersion: example.com/v1, kind: Unknown, metadata: {name: x}}",
    );
    session.run_with("-n nowhere create -f -", HELLO);
    session.run(r#"-n team patch job plain -p {"spec":{"completions":3}}"#);
    session.run("-n team delete cj none");
    session.run("-n team annotate cj none a=b");
}

fn delete(session: &mut Session) {
    session.run("-n team delete job manual");
    session.run("-n team create job child --from=cronjob/hello");
    session.run("-n team delete cj hello --cascade=orphan");
    session.run("-n team get job child -o jsonpath={.metadata.ownerReferences}");
    session.run_with("-n team apply -f -", HELLO);
    session.run("-n team create job second --from=cronjob/hello");
    session.run("-n team delete cj hello --cascade=foreground");
    session.run("-n team get job second");
    session.run("-n team delete cj aside --dry-run=server");
    session.run("-n team delete jobs --all");
    session.run("-n team delete cj -l app=hello");
    session.run("-n team delete event hello.1");
    session.run("-n team get all");
    session.run("delete namespace team");
    session.run("get namespace team");
}
