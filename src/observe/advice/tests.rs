//! The sentences as whole texts.

use super::*;
use crate::{
    observe::sample::{cron_job, instant},
    schedule::{ClockChange, ConcurrencyPolicy},
};

const NOW: &str = "2026-10-01T12:00:00Z";

/// A CronJob that no advice concerns.
fn quiet(name: &str, schedule: &str, time_zone: Option<&str>) -> CronJobFacts {
    let mut facts = cron_job(name, schedule, time_zone);
    facts.has_active_deadline = true;
    facts.last_successful_time = Some(instant(NOW));
    facts
}

fn input(facts: &CronJobFacts) -> CronJobAdviceInput<'_> {
    CronJobAdviceInput {
        facts,
        run_time_p50: None,
        run_time_p95: None,
        n_succeeded: 0,
        n_failed: 0,
        ignores_options: false,
        frozen_until: None,
    }
}

fn advice_of(inputs: &[CronJobAdviceInput<'_>]) -> Vec<Advice> {
    let now = instant(NOW);
    let facts = inputs.iter().map(|input| input.facts);
    let forecast = Forecast::new(facts, now, now + SignedDuration::from_hours(24));
    advice(inputs.iter().copied(), &forecast, now)
}

/// Checks the sentences, and the kinds with their numbers of CronJobs.
#[track_caller]
fn check(inputs: &[CronJobAdviceInput<'_>], expected: &[(&str, usize, &str)]) {
    let advice = advice_of(inputs);
    let found: Vec<_> = advice
        .iter()
        .map(|advice| (advice.kind, advice.n_cron_jobs, advice.sentence.as_str()))
        .collect();
    assert_eq!(found, expected);
    for advice in advice {
        assert_eq!(advice.cron_jobs.len(), advice.n_cron_jobs.min(Advice::NAMES_MAX));
    }
}

#[test]
fn options_that_change_nothing_are_told() {
    let set = |option: &'static str, value: &'static str| {
        move |facts: &mut CronJobFacts| {
            let get = |name: &str| (name == option).then_some(value);
            facts.schedule = facts.schedule.clone().with_options("hello", get, 0);
        }
    };
    let annotate = |value| set("cronwheel.dev/missed-runs", value);
    let mut invalid = quiet("shop/report", "0 4 * * *", None);
    annotate("<b>")(&mut invalid);
    check(
        &[input(&invalid)],
        &[(
            "InvalidOption",
            1,
            "shop/report has an annotation cronwheel.dev/missed-runs whose value cannot be used, and runs as without it; \
             a valid value is \"all 10\".",
        )],
    );
    // The recommended value fits the schedule.
    let mut frequent = quiet("shop/report", "*/10 * * * *", None);
    set("cronwheel.dev/spread", "20m")(&mut frequent);
    check(
        &[input(&frequent)],
        &[(
            "InvalidOption",
            1,
            "shop/report has an annotation cronwheel.dev/spread whose value cannot be used, and runs as without it; a valid \
             value is \"5m\".",
        )],
    );
    let mut skip = quiet("shop/report", "0 4 * * *", None);
    annotate("skip")(&mut skip);
    check(&[input(&skip)], &[]);
    let ignored = CronJobAdviceInput {
        ignores_options: true,
        frozen_until: None,
        ..input(&skip)
    };
    check(
        &[ignored],
        &[(
            "IgnoredOption",
            1,
            "shop/report has options that change nothing, because the built-in controller creates the Jobs and ignores \
             them.",
        )],
    );
    let plain = quiet("shop/other", "0 4 * * *", None);
    let plain = CronJobAdviceInput {
        ignores_options: true,
        frozen_until: None,
        ..input(&plain)
    };
    check(&[plain], &[]);
}

/// Checks the advice about a single CronJob, and about two of them.
#[track_caller]
fn check_one_and_two(change: fn(&mut CronJobFacts), kind: &str, of_one: &str, of_two: &str) {
    let mut one = quiet("data/compact", "0 4 * * *", None);
    change(&mut one);
    check(&[input(&one)], &[(kind, 1, of_one)]);
    let mut other = one.clone();
    other.name = "other".into();
    check(&[input(&one), input(&other)], &[(kind, 2, of_two)]);
}

#[test]
fn a_quiet_cron_job_has_no_advice() {
    check(&[], &[]);
    check(&[input(&quiet("a/b", "0 4 * * *", Some("Europe/Berlin")))], &[]);
    let mut deleting = cron_job("a/b", "0 2 * * *", None);
    deleting.is_deleting = true;
    check(&[input(&deleting)], &[]);
}

#[test]
fn missing_deadlines() {
    check_one_and_two(
        |facts| facts.concurrency_policy = ConcurrencyPolicy::Forbid,
        "ForbidWithoutDeadline",
        "data/compact uses Forbid without startingDeadlineSeconds, so a run that is held back may start hours after its \
         slot.",
        "2 CronJobs use Forbid without startingDeadlineSeconds, so a run that is held back may start hours after its \
         slot.",
    );
    check_one_and_two(
        |facts| facts.has_active_deadline = false,
        "NoActiveDeadline",
        "data/compact has no activeDeadlineSeconds, so a Job that hangs never ends.",
        "2 CronJobs have no activeDeadlineSeconds, so a Job that hangs never ends.",
    );
    check_one_and_two(
        |facts| {
            facts.has_active_deadline = false;
            facts.concurrency_policy = ConcurrencyPolicy::Forbid;
            facts.starting_deadline_seconds = Some(60);
        },
        "NoActiveDeadline",
        "data/compact has no activeDeadlineSeconds, so a Job that hangs never ends, and Forbid then holds back every \
         later run.",
        "2 CronJobs have no activeDeadlineSeconds, so a Job that hangs never ends; in 2 of them Forbid then holds back \
         every later run.",
    );
}

#[test]
fn suspended_for_a_month() {
    check_one_and_two(
        |facts| {
            facts.is_suspended = true;
            facts.spec_changed = Some(instant("2026-08-31T12:00:00Z"));
        },
        "SuspendedForMonth",
        "data/compact has been suspended for more than a month.",
        "2 CronJobs have been suspended for more than a month.",
    );
    let mut recent = quiet("a/b", "0 4 * * *", None);
    recent.is_suspended = true;
    check(&[input(&recent)], &[]);
    recent.spec_changed = Some(instant("2026-09-02T12:00:00Z"));
    check(&[input(&recent)], &[]);
}

#[test]
fn never_succeeded() {
    fn failed(facts: &CronJobFacts, n_failed: u64) -> CronJobAdviceInput<'_> {
        CronJobAdviceInput {
            n_failed,
            ..input(facts)
        }
    }
    let mut facts = quiet("billing/dunning", "0 4 * * *", None);
    check(&[failed(&facts, 3)], &[]);
    facts.last_successful_time = None;
    check(&[input(&facts)], &[]);
    let kind = "NeverSucceeded";
    check(
        &[failed(&facts, 1)],
        &[(kind, 1, "billing/dunning never succeeded: 1 known run failed.")],
    );
    check(
        &[failed(&facts, 3), failed(&facts, 1_000)],
        &[(kind, 2, "2 CronJobs never succeeded: 1,003 known runs failed.")],
    );
    let succeeded = CronJobAdviceInput {
        n_succeeded: 1,
        ..failed(&facts, 3)
    };
    check(&[succeeded], &[]);
}

#[test]
fn run_times_above_the_period() {
    #[track_caller]
    fn check_schedule(schedule: &str, policy: ConcurrencyPolicy, (p50, p95): (i64, i64), sentence: &str) {
        let mut facts = quiet("data/compact", schedule, None);
        facts.concurrency_policy = policy;
        facts.starting_deadline_seconds = Some(60);
        let input = CronJobAdviceInput {
            run_time_p50: Some(SignedDuration::from_secs(p50)),
            run_time_p95: Some(SignedDuration::from_secs(p95)),
            ..input(&facts)
        };
        let expected = [("RunTimeAbovePeriod", 1, sentence)];
        check(&[input], if sentence.is_empty() { &[] } else { &expected });
    }
    use ConcurrencyPolicy::{Allow, Forbid, Replace};
    let check_policy =
        |policy, run_times, sentence: &str| check_schedule("*/20 8-17 * * *", policy, run_times, sentence);
    check_policy(Allow, (60, 1_200), "");
    check_policy(
        Forbid,
        (1_320, 1_860),
        "data/compact takes 22 minutes and is due every 20 minutes, so Forbid holds runs back.",
    );
    check_policy(
        Allow,
        (60, 1_860),
        "data/compact takes 31 minutes or more in one run of twenty and is due every 20 minutes, so runs overlap.",
    );
    check_policy(
        Replace,
        (1_320, 1_320),
        "data/compact takes 22 minutes and is due every 20 minutes, so Replace ends runs before they finish.",
    );
    check_schedule("@every 7s", Allow, (60, 60), "");
    check_schedule(
        "@every 7s",
        Allow,
        (61, 61),
        "data/compact takes 1 minute 1 second and is due every minute, so runs overlap.",
    );
}

#[test]
fn the_longest_run_times_have_sentences_of_their_own() {
    let mut all = Vec::new();
    for number in 0..8 {
        all.push(quiet(&format!("a/job-{number}"), "*/10 * * * *", None));
    }
    let minutes = |number: usize| Some(SignedDuration::from_mins(20 + i64::try_from(number).unwrap()));
    let inputs: Vec<_> = all
        .iter()
        .enumerate()
        .map(|(number, facts)| CronJobAdviceInput {
            run_time_p50: minutes(number),
            run_time_p95: minutes(number),
            ..input(facts)
        })
        .collect();
    let advice = advice_of(&inputs);
    assert_eq!(advice.len(), 6);
    assert_eq!(
        advice[0].sentence,
        "a/job-7 takes 27 minutes and is due every 10 minutes, so runs overlap."
    );
    assert_eq!(
        advice[5].sentence,
        "3 other CronJobs take longer than the time to their next slot."
    );
}

#[test]
fn clock_changes_of_the_next_sixty_days() {
    #[track_caller]
    fn check_zone(schedule: &str, zone: &str, now: &str, sentence: &str) {
        let facts = quiet("billing/invoice-export", schedule, Some(zone));
        let now = instant(now);
        let forecast = Forecast::new([&facts].into_iter(), now, now);
        let found = advice([input(&facts)].into_iter(), &forecast, now);
        let found: Vec<&str> = found.iter().map(|advice| advice.sentence.as_str()).collect();
        let expected = [sentence];
        assert_eq!(
            found,
            if sentence.is_empty() { &[] } else { &expected[..] },
            "{schedule} in {zone}"
        );
    }
    let berlin = "Europe/Berlin";
    check_zone(
        "30 2 * * *",
        berlin,
        NOW,
        "billing/invoice-export runs twice at 02:30 on 25 October 2026: clocks in Europe/Berlin go back from 03:00 to \
         02:00.",
    );
    check_zone(
        "30 2 * * *",
        berlin,
        "2027-02-01T00:00:00Z",
        "billing/invoice-export skips its run at 02:30 on 28 March 2027: clocks in Europe/Berlin go forward from 02:00 \
         to 03:00.",
    );
    check_zone(
        "*/20 1-3 * * *",
        berlin,
        "2027-02-01T00:00:00Z",
        "billing/invoice-export skips 3 runs, the first at 02:00, on 28 March 2027: clocks in Europe/Berlin go forward \
         from 02:00 to 03:00.",
    );
    check_zone("30 2 * * *", berlin, "2026-08-01T00:00:00Z", "");
    check_zone("30 2 * * *", "UTC", NOW, "");
    check_zone("30 4 * * *", berlin, NOW, "");
    check_zone("0 * * * *", berlin, NOW, "");
    check_zone("@every 24h", berlin, NOW, "");
    check_zone("30 2 * * *", "Mars/Base", NOW, "");
    check_zone("30 2 * * 1", berlin, NOW, "");
}

#[test]
fn clock_changes_concern_only_the_cron_jobs_without_the_option_o_6_1() {
    let literal = quiet("billing/literal", "30 2 * * *", Some("Europe/Berlin"));
    let mut once = quiet("billing/once", "30 2 * * *", Some("Europe/Berlin"));
    once.schedule = once.schedule.with_clock_change(ClockChange::Once);
    for order in [[&literal, &once], [&once, &literal]] {
        let now = instant(NOW);
        let forecast = Forecast::new(std::iter::empty::<&CronJobFacts>(), now, now);
        let found = advice(order.into_iter().map(input), &forecast, now);
        let found: Vec<&str> = found.iter().map(|advice| advice.sentence.as_str()).collect();
        let sentence = "billing/literal runs twice at 02:30 on 25 October 2026: clocks in Europe/Berlin go back from 03:00 \
                        to 02:00.";
        assert_eq!(found, [sentence]);
    }
}

#[test]
fn a_clock_change_of_several_cron_jobs_is_one_sentence() {
    let mut all = Vec::new();
    for number in 0..25 {
        all.push(quiet(
            &format!("shop/night-{number:02}"),
            "30 2 * * *",
            Some("Europe/Paris"),
        ));
    }
    let inputs: Vec<_> = all.iter().map(input).collect();
    let sentence = "25 CronJobs, shop/night-00 among them, run twice on 25 October 2026: clocks in Europe/Paris go back \
                    from 03:00 to 02:00.";
    check(&inputs, &[("ClockChange", 25, sentence)]);
}

#[test]
fn a_peak_names_those_who_could_move() {
    let mut all = Vec::new();
    for number in 0..1_100 {
        let schedule = if number < 40 { "0 2 * * *" } else { "*/30 * * * *" };
        all.push(quiet(&format!("data/job-{number:04}"), schedule, None));
    }
    let inputs: Vec<_> = all.iter().map(input).collect();
    let sentence = "02:00 UTC starts 1,100 Jobs in one minute; 40 of them run hourly or less often and could be spread over ten \
         minutes.";
    check(&inputs, &[("PeakMinute", 40, sentence)]);
    check(&inputs[..40], &[]);
    check(&inputs[32..], &[]);
    let now = instant(NOW);
    let facts = inputs.iter().map(|input| input.facts);
    let forecast = Forecast::new(facts, now, now + SignedDuration::from_hours(48));
    let found = advice(inputs.iter().copied(), &forecast, now);
    assert!(
        found[0].sentence.starts_with("2 Oct 02:00 UTC starts"),
        "{}",
        found[0].sentence
    );
}
