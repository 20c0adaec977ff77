//! Decoding of watch events of about 4 KB into our records and into the typed objects of `k8s_openapi`, and the memory
//! of each decoded object.
//!
//! Memory is the average resident memory of [`N_OBJECTS`] objects with the allocator of the release binary, including
//! all overhead. It is printed before the timings, also with `--test`. Expected: constant per object. Aims: at most
//! 1.5 KiB for a CronJob without its template, and 256 B for a Job.
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs, reason = "a bench")]

use std::{hint::black_box, sync::Arc};

use criterion::{Criterion, Throughput, criterion_group};
use cronwheel::{
    kube_api::{Decoder, ReceivedJob, objects::decode::ReceivedCronJob},
    schedule::Zone,
    shard::{CronJobRecord, JobRecord},
};
use k8s_openapi::api::batch::v1::{CronJob, Job};
use kube::core::WatchEvent;
use serde::de::DeserializeOwned;

/// The allocator of the release binary.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// The number of objects of each kind in memory.
const N_OBJECTS: u32 = 20_000;

const POD_SPEC: &str = r#"{"containers":[{"name":"backup","image":"registry.example/shop/backup:v3.14.1","command":["/bin/sh","-c","set -e; pg_dump \"$DATABASE_URL\" | zstd -T0 | upload --bucket \"$BUCKET\" --retain 30d"],"env":[{"name":"DATABASE_URL","valueFrom":{"secretKeyRef":{"name":"database","key":"url"}}},{"name":"BUCKET","value":"shop-backups-eu-central"}],"resources":{"limits":{"cpu":"1","memory":"512Mi"},"requests":{"cpu":"100m","memory":"128Mi"}},"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File","imagePullPolicy":"IfNotPresent"}],"restartPolicy":"OnFailure","terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","serviceAccountName":"backup","securityContext":{},"schedulerName":"default-scheduler"}"#;

const MANAGED_FIELDS: &str = r#""managedFields":[{"manager":"kubectl-client-side-apply","operation":"Update","apiVersion":"batch/v1","time":"2026-01-02T03:04:05Z","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":{"f:annotations":{".":{},"f:kubectl.kubernetes.io/last-applied-configuration":{}},"f:labels":{".":{},"f:app.kubernetes.io/name":{},"f:team":{}}},"f:spec":{"f:backoffLimit":{},"f:completionMode":{},"f:suspend":{},"f:template":{"f:spec":{"f:containers":{"k:{\"name\":\"backup\"}":{".":{},"f:command":{},"f:env":{".":{},"k:{\"name\":\"BUCKET\"}":{".":{},"f:name":{},"f:value":{}},"k:{\"name\":\"DATABASE_URL\"}":{".":{},"f:name":{},"f:valueFrom":{}}},"f:image":{},"f:imagePullPolicy":{},"f:name":{},"f:resources":{".":{},"f:limits":{".":{},"f:cpu":{},"f:memory":{}},"f:requests":{".":{},"f:cpu":{},"f:memory":{}}},"f:terminationMessagePath":{},"f:terminationMessagePolicy":{}}},"f:dnsPolicy":{},"f:restartPolicy":{},"f:schedulerName":{},"f:securityContext":{},"f:serviceAccountName":{},"f:terminationGracePeriodSeconds":{}}}}}}]"#;

/// A watch event of a CronJob that was applied with kubectl, which stores a copy of it in an annotation.
fn cron_job_event(number: u32) -> String {
    let last_applied = serde_json::to_string(&POD_SPEC).unwrap();
    format!(
        r#"{{"type":"MODIFIED","object":{{"kind":"CronJob","apiVersion":"batch/v1","metadata":{{"name":"backup-{number:06}","namespace":"shop-{:03}","uid":"0b1c2d3e-4f50-6172-8394-a5b6c7{number:06x}","resourceVersion":"{number}","generation":3,"creationTimestamp":"2026-01-02T03:04:05Z","labels":{{"app.kubernetes.io/name":"backup","team":"shop"}},"annotations":{{"kubectl.kubernetes.io/last-applied-configuration":{last_applied}}},{MANAGED_FIELDS}}},"spec":{{"schedule":"*/5 * * * *","timeZone":"Europe/Berlin","startingDeadlineSeconds":60,"concurrencyPolicy":"Forbid","suspend":false,"jobTemplate":{{"metadata":{{"creationTimestamp":null}},"spec":{{"backoffLimit":2,"template":{{"metadata":{{"creationTimestamp":null}},"spec":{POD_SPEC}}}}}}},"successfulJobsHistoryLimit":3,"failedJobsHistoryLimit":1}},"status":{{"active":[{{"kind":"Job","namespace":"shop","name":"backup-29600000","uid":"1b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0","apiVersion":"batch/v1","resourceVersion":"8141"}}],"lastScheduleTime":"2026-04-12T09:20:00Z","lastSuccessfulTime":"2026-04-12T09:15:09Z"}}}}}}"#,
        number % 100
    )
}

/// A watch event of a complete Job with a CronJob as its owner.
fn job_event(number: u32) -> String {
    format!(
        r#"{{"type":"MODIFIED","object":{{"kind":"Job","apiVersion":"batch/v1","metadata":{{"name":"backup-{number:06}-29600000","namespace":"shop-{:03}","uid":"1b1c2d3e-4f50-6172-8394-a5b6c7{number:06x}","resourceVersion":"{number}","generation":1,"creationTimestamp":"2026-04-12T09:20:00Z","labels":{{"batch.kubernetes.io/controller-uid":"1b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0","batch.kubernetes.io/job-name":"backup-29600000","controller-uid":"1b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0","job-name":"backup-29600000"}},"annotations":{{"batch.kubernetes.io/cronjob-scheduled-timestamp":"2026-04-12T11:20:00+02:00"}},"ownerReferences":[{{"apiVersion":"batch/v1","kind":"CronJob","name":"backup","uid":"0b1c2d3e-4f50-6172-8394-a5b6c7{number:06x}","controller":true,"blockOwnerDeletion":true}}],{MANAGED_FIELDS}}},"spec":{{"parallelism":1,"completions":1,"backoffLimit":2,"selector":{{"matchLabels":{{"batch.kubernetes.io/controller-uid":"1b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0"}}}},"template":{{"metadata":{{"creationTimestamp":null,"labels":{{"batch.kubernetes.io/controller-uid":"1b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0","batch.kubernetes.io/job-name":"backup-29600000","controller-uid":"1b1c2d3e-4f50-6172-8394-a5b6c7d8e9f0","job-name":"backup-29600000"}}}},"spec":{POD_SPEC}}},"completionMode":"NonIndexed","suspend":false,"podReplacementPolicy":"TerminatingOrFailed"}},"status":{{"conditions":[{{"type":"SuccessCriteriaMet","status":"True","lastProbeTime":"2026-04-12T09:20:09Z","lastTransitionTime":"2026-04-12T09:20:09Z","reason":"CompletionsReached","message":"Reached expected number of succeeded pods"}},{{"type":"Complete","status":"True","lastProbeTime":"2026-04-12T09:20:09Z","lastTransitionTime":"2026-04-12T09:20:09Z","reason":"CompletionsReached","message":"Reached expected number of succeeded pods"}}],"startTime":"2026-04-12T09:20:00Z","completionTime":"2026-04-12T09:20:09Z","succeeded":1,"terminating":0,"uncountedTerminatedPods":{{}},"ready":0}}}}}}"#,
        number % 100
    )
}

fn object<T: DeserializeOwned>(event: &str) -> T {
    match serde_json::from_str(event).unwrap() {
        WatchEvent::Modified(object) => object,
        WatchEvent::Added(_) | WatchEvent::Deleted(_) | WatchEvent::Bookmark(_) | WatchEvent::Error(_) => {
            panic!("no modification")
        }
    }
}

fn cron_job_record(event: &str) -> CronJobRecord {
    let decoder = Decoder {
        default_zone: Zone::utc(),
        ..Decoder::default()
    };
    decoder.cron_job(object::<ReceivedCronJob>(event).text()).unwrap()
}

fn job_record(event: &str) -> JobRecord {
    object::<ReceivedJob>(event).into_record().unwrap()
}

fn timings(criterion: &mut Criterion) {
    let (cron_job, job) = (cron_job_event(1), job_event(1));
    let mut group = criterion.benchmark_group("decode_cron_job");
    group.throughput(Throughput::Bytes(cron_job.len() as u64));
    group.bench_function("ours", |bencher| bencher.iter(|| cron_job_record(black_box(&cron_job))));
    group.bench_function("passed over", |bencher| {
        bencher.iter(|| object::<ReceivedCronJob>(black_box(&cron_job)));
    });
    group.bench_function("typed", |bencher| {
        bencher.iter(|| object::<CronJob>(black_box(&cron_job)));
    });
    group.finish();
    let mut group = criterion.benchmark_group("decode_job");
    group.throughput(Throughput::Bytes(job.len() as u64));
    group.bench_function("ours", |bencher| bencher.iter(|| job_record(black_box(&job))));
    group.bench_function("typed", |bencher| bencher.iter(|| object::<Job>(black_box(&job))));
    group.finish();
}

/// Resident memory of this process, in bytes.
fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    let kibibytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kibibytes * 1024
}

/// Creates objects and prints the memory of one. It leaks them, because later objects would reuse freed memory.
fn print_kept<T>(what: &str, make: impl Fn(u32) -> T) {
    let mut kept = Vec::with_capacity(N_OBJECTS as usize);
    let before = resident_bytes();
    kept.extend((0..N_OBJECTS).map(make));
    let bytes = resident_bytes().saturating_sub(before) / u64::from(N_OBJECTS);
    println!("{what}: {bytes} bytes kept of an object");
    std::mem::forget(kept);
}

fn print_memory() {
    let (cron_job, job) = (cron_job_event(1), job_event(1));
    println!(
        "events: CronJob {} bytes, Job {} bytes; {N_OBJECTS} objects of each",
        cron_job.len(),
        job.len()
    );
    let shared_template = cron_job_record(&cron_job).template;
    println!(
        "job template: {} bytes",
        shared_template.body.as_str().map_or(0, str::len)
    );
    let besides_template = |event: &str| {
        let mut record = cron_job_record(event);
        record.template = Arc::clone(&shared_template);
        Box::new(record)
    };
    print_kept("CronJob, ours, besides its template", |number| {
        besides_template(&cron_job_event(number))
    });
    print_kept(
        "CronJob, ours, besides its template and kubectl's copy of it",
        |number| {
            let event = cron_job_event(number);
            let (before, annotations) = event.split_once(r#","annotations":"#).unwrap();
            let (_, after) = annotations.split_once(r#","managedFields""#).unwrap();
            besides_template(&format!(r#"{before},"managedFields"{after}"#))
        },
    );
    print_kept("CronJob, ours", |number| {
        Box::new(cron_job_record(&cron_job_event(number)))
    });
    print_kept("CronJob, typed", |number| {
        Box::new(object::<CronJob>(&cron_job_event(number)))
    });
    print_kept("Job, ours", |number| Box::new(job_record(&job_event(number))));
    print_kept("Job, typed", |number| Box::new(object::<Job>(&job_event(number))));
}

criterion_group!(benches, timings);

fn main() {
    print_memory();
    benches();
    Criterion::default().configure_from_args().final_summary();
}
