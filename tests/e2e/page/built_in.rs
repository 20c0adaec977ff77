//! What the page and the report say of the built-in controller at its default limits, compared with the audit log.

use std::{collections::BTreeMap, time::Duration};

use jiff::{SignedDuration, Timestamp};
use libtest_mimic::Trial;
use serde_json::{Value, json};
use testbed::ReferenceLimits;

use crate::{
    audit::Audit,
    block_on,
    cases::viewing::{Page, report},
    control_plane::{Purpose, take},
    kubernetes::{ControlPlane, Namespace},
};

/// More than the built-in controller starts in a minute with its default limits, which takes it 58 seconds for 500.
const N_CRON_JOBS: usize = 600;

/// Four minutes have slots.
const OBSERVED: Duration = Duration::from_secs(4 * 60 + 20);

const DURATION_MAX: Duration = Duration::from_mins(8);

pub(super) fn trials() -> impl Iterator<Item = Trial> {
    let name = "page::built_in::report_agrees_with_the_audit_log";
    let trial = Trial::test(name, move || {
        take(Purpose::Beside, |testbed, access| {
            testbed.start_reference(ReferenceLimits::default()).expect("a start");
            block_on(DURATION_MAX, async {
                let namespace = Namespace::create_for(name, ControlPlane::connect(access).await).await;
                agrees(&namespace).await;
            });
            testbed.stop_reference().expect("an end");
        });
        Ok(())
    });
    // It takes six minutes, in which no other case runs.
    [trial.with_ignored_flag(true)].into_iter()
}

async fn agrees(namespace: &Namespace) {
    for number in 0..N_CRON_JOBS {
        let name = json!({"metadata": {"name": format!("minutely-{number:03}")}});
        namespace.create_cron_job(json!({"run-for": "1s"}), name).await;
    }
    let kubeconfig = namespace.control_plane.admin_kubeconfig.clone();
    let history = kubeconfig.with_file_name("built-in.sqlite");
    let history = history.to_str().expect("a path");
    let page = Page::start_with_history(&kubeconfig, history, &["-n", &namespace.name]).await;
    let begun = Timestamp::now();
    tokio::time::sleep(OBSERVED).await;
    page.end().await;
    let arguments = [
        "-n",
        &namespace.name,
        "--history",
        history,
        "--since",
        "1h",
        "-o",
        "json",
    ];
    let report = report(&kubeconfig, &arguments).await;
    let audit = Audit::read(namespace).await;
    let first_slot = Timestamp::from_second(begun.as_second() / 60 * 60 + 60).expect("an instant");
    let now: Timestamp = report["now"].as_str().expect("a time").parse().expect("a time");
    compare(&report, &slots(&audit), first_slot, now);
}

/// The arrival of the create of each slot, by CronJob and slot.
fn slots(audit: &Audit) -> BTreeMap<(String, Timestamp), Timestamp> {
    let slot = |(name, received): (&str, Vec<Timestamp>)| {
        let (cron_job, minutes) = name.rsplit_once('-').expect("minutes");
        let minutes: i64 = minutes.parse().expect("minutes");
        (
            (
                cron_job.to_owned(),
                Timestamp::from_second(minutes * 60).expect("an instant"),
            ),
            received[0],
        )
    };
    audit.created_jobs().into_iter().map(slot).collect()
}

fn compare(report: &Value, created: &BTreeMap<(String, Timestamp), Timestamp>, first_slot: Timestamp, now: Timestamp) {
    let mut seconds: Vec<i64> = created
        .iter()
        .filter(|((_, slot), received)| *slot >= first_slot && **received <= now)
        .map(|((_, slot), received)| received.duration_since(*slot).as_secs())
        .collect();
    seconds.sort_unstable();
    let minute = SignedDuration::from_mins(1);
    let closed = std::iter::successors(Some(first_slot), |slot| slot.checked_add(minute).ok());
    let closed: Vec<Timestamp> = closed.take_while(|slot| *slot + minute <= now).collect();
    let names = (0..N_CRON_JOBS).map(|number| format!("minutely-{number:03}"));
    let n_lost = names
        .flat_map(|name| closed.iter().map(move |slot| (name.clone(), *slot)))
        .filter(|slot| !created.contains_key(slot))
        .count();
    let percentile = |percent: usize| seconds[(seconds.len() * percent).div_ceil(100).saturating_sub(1)];
    let expected = [percentile(50), percentile(90), percentile(99), percentile(100)];
    let lateness = &report["lateness"];
    let reported =
        ["p50Seconds", "p90Seconds", "p99Seconds", "maxSeconds"].map(|name| lateness[name].as_i64().unwrap_or(-1));
    let with_cronwheel = &report["withCronwheel"];
    eprintln!(
        "{} Jobs: lateness p50, p90, p99, most: {expected:?} s by the audit log, {reported:?} s by the report; {n_lost} and {} lost; \
         with cronwheel: {with_cronwheel}",
        seconds.len(),
        report["slots"]["nLost"]
    );
    for (expected, reported) in expected.into_iter().zip(reported) {
        assert!((expected - reported).abs() <= 1, "{expected} s and {reported} s");
    }
    assert_eq!(report["slots"]["nLost"], n_lost, "lost");
    // The Jobs take a second, so nothing holds cronwheel back.
    assert_eq!(with_cronwheel["lost"]["nOnTime"], with_cronwheel["lost"]["nSlots"]);
    assert_eq!(with_cronwheel["late"]["nOnTime"], with_cronwheel["late"]["nSlots"]);
}
