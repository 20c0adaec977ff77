//! Tests of the pace of a lane, answer by answer.

mod comparison;

use super::*;

fn at(millis: u64) -> BootInstant {
    BootInstant::after_boot(Duration::from_millis(millis))
}

fn ticket(pacer: &mut Pacer, now: BootInstant) -> Ticket {
    assert_eq!(pacer.admission(now, 0), Admission::Now);
    pacer.on_sent(now)
}

#[test]
fn admission_is_full_at_the_in_flight_limit() {
    let pacer = Pacer::new(16);
    assert_eq!(pacer.admission(at(0), 15), Admission::Now);
    assert_eq!(pacer.admission(at(0), 16), Admission::Full);
}

#[test]
fn a_throttled_lane_waits_for_a_bounded_retry_after() {
    #[track_caller]
    fn check(retry_after_ms: Option<u64>, expected_ms: u64) {
        let mut pacer = Pacer::new(128);
        let sent = ticket(&mut pacer, at(0));
        pacer.on_throttled(sent, at(7), retry_after_ms.map(Duration::from_millis));
        assert_eq!(
            pacer.admission(at(7), 0),
            Admission::Wait(at(7 + expected_ms)),
            "{retry_after_ms:?}"
        );
        assert_eq!(
            pacer.admission(at(7 + expected_ms), 5),
            Admission::Now,
            "the lane opens for all requests"
        );
        assert_eq!(pacer.in_flight_limit(), 16, "the limit is lower");
    }
    check(None, 100);
    check(Some(1_000), 1_000);
    check(Some(0), 100);
    check(Some(3_600_000), 30_000);
}

#[test]
fn failures_of_one_burst_are_one_incident() {
    let mut pacer = Pacer::new(128);
    let burst: Vec<Ticket> = (0..64).map(|_| ticket(&mut pacer, at(0))).collect();
    for (millis, sent) in (1..).zip(burst) {
        pacer.on_throttled(sent, at(millis), None);
    }
    assert_eq!(pacer.in_flight_limit(), 16);
    assert_eq!(pacer.admission(at(50), 0), Admission::Wait(at(101)));
}

#[test]
fn retry_after_extends_the_pause_of_an_earlier_incident() {
    let mut pacer = Pacer::new(128);
    let (lost, throttled) = (ticket(&mut pacer, at(0)), ticket(&mut pacer, at(0)));
    pacer.on_unavailable(lost, at(1), None);
    pacer.on_throttled(throttled, at(2), Some(Duration::from_secs(3)));
    assert_eq!(pacer.admission(at(200), 0), Admission::Wait(at(3_002)));
}

#[test]
fn an_answer_to_an_earlier_request_does_not_end_a_retry_after_pause() {
    let mut pacer = Pacer::new(128);
    let (lost, throttled) = (ticket(&mut pacer, at(0)), ticket(&mut pacer, at(0)));
    pacer.on_unavailable(lost, at(1), None);
    let served = ticket(&mut pacer, at(101));
    pacer.on_throttled(throttled, at(102), Some(Duration::from_secs(3)));
    pacer.on_outcome(served, Duration::from_millis(2), 0);
    assert_eq!(pacer.admission(at(103), 0), Admission::Wait(at(3_102)));
}

#[test]
fn an_unreachable_server_is_probed_by_single_requests_at_doubling_intervals() {
    let mut pacer = Pacer::new(128);
    let mut now = at(0);
    let mut pauses = Vec::new();
    for _ in 0..8 {
        let probe = ticket(&mut pacer, now);
        pacer.on_unavailable(probe, now, None);
        let Admission::Wait(until) = pacer.admission(now, 0) else {
            panic!("the lane must wait")
        };
        pauses.push(until.since(now).as_millis());
        now = until;
    }
    assert_eq!(pauses, [100, 200, 400, 800, 1_600, 3_200, 5_000, 5_000]);

    let probe = ticket(&mut pacer, now);
    assert_eq!(
        pacer.admission(now, 1),
        Admission::Wait(now + Duration::from_secs(1)),
        "one probe at a time"
    );
    pacer.on_outcome(probe, Duration::from_millis(3), 0);
    assert_eq!(pacer.admission(now, 0), Admission::Now);
    let sent = ticket(&mut pacer, now);
    pacer.on_unavailable(sent, now, None);
    assert_eq!(
        pacer.admission(now, 0),
        Admission::Wait(now + Duration::from_millis(100)),
        "the pauses start again"
    );
}

#[test]
fn an_answer_to_an_earlier_request_ends_a_pause_without_retry_after() {
    #[track_caller]
    fn check(name: &str, fail: impl Fn(&mut Pacer, Ticket), expected: Admission, then: Admission) {
        let mut pacer = Pacer::new(128);
        let (early, late) = (ticket(&mut pacer, at(0)), ticket(&mut pacer, at(0)));
        fail(&mut pacer, late);
        pacer.on_outcome(early, Duration::from_millis(2), 0);
        assert_eq!(pacer.admission(at(2), 0), expected, "{name}");
        ticket(&mut pacer, at(5_001));
        assert_eq!(pacer.admission(at(5_001), 1), then, "{name}");
    }
    let retry_after = Some(Duration::from_secs(5));
    check(
        "throttled",
        |pacer, late| pacer.on_throttled(late, at(1), None),
        Admission::Wait(at(101)),
        Admission::Now,
    );
    check(
        "unavailable",
        |pacer, late| pacer.on_unavailable(late, at(1), None),
        Admission::Now,
        Admission::Now,
    );
    check(
        "unavailable for a time",
        |pacer, late| pacer.on_unavailable(late, at(1), retry_after),
        Admission::Wait(at(5_001)),
        Admission::Now,
    );
    check(
        "lost",
        |pacer, late| pacer.on_lost(late, at(1)),
        Admission::Now,
        Admission::Now,
    );
}

#[test]
fn a_hanging_probe_is_followed_by_another_after_a_second() {
    let mut pacer = Pacer::new(128);
    let early = ticket(&mut pacer, at(0));
    let sent = ticket(&mut pacer, at(0));
    pacer.on_unavailable(sent, at(1), None);
    for number in 0..3 {
        let now = 101 + number * 1_000;
        let _hanging = ticket(&mut pacer, at(now));
        assert_eq!(pacer.admission(at(now), 1), Admission::Wait(at(now + 1_000)));
    }
    pacer.on_outcome(early, Duration::from_millis(2_500), 3);
    assert_eq!(pacer.admission(at(2_500), 3), Admission::Now, "the server answers");
}

#[test]
fn a_lost_connection_is_no_incident_while_others_are_answered() {
    #[track_caller]
    fn check(name: &str, answered_ms: u64, lost_ms: u64, expected: Admission) {
        let mut pacer = Pacer::new(128);
        let (answered, lost) = (ticket(&mut pacer, at(0)), ticket(&mut pacer, at(100)));
        pacer.on_outcome(answered, Duration::from_millis(answered_ms), 1);
        pacer.on_lost(lost, at(lost_ms));
        assert_eq!(pacer.admission(at(lost_ms), 0), expected, "{name}");
    }
    check("others were answered since", 150, 160, Admission::Now);
    check("nothing was answered since", 90, 160, Admission::Wait(at(260)));
    check("others were answered long ago", 150, 1_150, Admission::Wait(at(1_250)));
}

#[test]
fn more_than_96_lost_requests_within_a_second_are_an_incident() {
    let mut pacer = Pacer::new(128);
    let n_passed_over = (0..200)
        .take_while(|_| {
            let (answered, lost) = (ticket(&mut pacer, at(0)), ticket(&mut pacer, at(0)));
            pacer.on_outcome(answered, Duration::from_millis(1), 1);
            pacer.on_lost(lost, at(2));
            pacer.admission(at(2), 0) == Admission::Now
        })
        .count();
    assert_eq!(n_passed_over, 96);
}

#[test]
fn a_timed_out_request_neither_pauses_nor_opens_a_lane() {
    let given_up = Answered {
        answer: Answer::Outcome(()),
        code: None,
        server_date: None,
        not_permitted: None,
        fenced_over: None,
    };
    let mut pacer = Pacer::new(128);
    let hung = ticket(&mut pacer, at(0));
    pacer.on_answered(hung, &given_up, at(35_000), Duration::from_secs(35), 0);
    assert_eq!(pacer.admission(at(35_000), 0), Admission::Now);
    let (hung, failed) = (ticket(&mut pacer, at(35_000)), ticket(&mut pacer, at(35_000)));
    pacer.on_unavailable(failed, at(70_000), None);
    pacer.on_answered(hung, &given_up, at(70_000), Duration::from_secs(35), 0);
    assert_eq!(pacer.admission(at(70_000), 0), Admission::Wait(at(70_100)));
}

#[test]
fn answers_that_admission_delays_do_not_lower_the_limit() {
    for millis in [300, 600, 10_000] {
        let mut pacer = Pacer::new(128);
        for number in 0..1_000 {
            let sent = ticket(&mut pacer, at(number));
            let latency = Duration::from_millis(if number % 20 == 0 { 3 } else { millis });
            pacer.on_outcome(sent, latency, 63);
            assert_eq!(pacer.in_flight_limit(), 64, "{millis} ms");
        }
    }
}
