//! Tests of the guard with steps, drifts and answers, on simulated clocks.

use std::time::Duration;

use super::*;

/// A machine and an API server with independent clocks. The boot clock starts at an odd fraction of a second.
struct World {
    guard: ClockGuard,
    boot: Duration,
    wall_ahead: SignedDuration,
    server_ahead: SignedDuration,
}

const EPOCH: i64 = 1_800_000_000;

impl World {
    fn new(wall_ahead: SignedDuration) -> World {
        let boot = Duration::from_millis(98_765);
        let wall = true_time(boot) + wall_ahead;
        World {
            guard: ClockGuard::new(SignedDuration::from_secs(2), wall, BootInstant::after_boot(boot)),
            boot,
            wall_ahead,
            server_ahead: SignedDuration::ZERO,
        }
    }

    fn pass(&mut self, time: Duration) {
        self.boot += time;
    }

    /// The lead of the guard's time over the true time.
    fn read_ahead(&mut self) -> SignedDuration {
        let truth = true_time(self.boot);
        let given = self
            .guard
            .read(truth + self.wall_ahead, BootInstant::after_boot(self.boot));
        given.duration_since(truth)
    }

    /// Sends one round of probes, which take `round_trip` each and are answered halfway.
    fn probe(&mut self, round_trip: Duration) {
        let answers: Vec<ProbeAnswer> = (0..N_WRITE_CONNECTIONS)
            .map(|_| self.answer(round_trip, self.server_ahead))
            .collect();
        self.guard.observe(&answers);
    }

    /// Sends one probe to a server whose clock is ahead by `server_ahead`.
    fn answer(&mut self, round_trip: Duration, server_ahead: SignedDuration) -> ProbeAnswer {
        let sent = BootInstant::after_boot(self.boot);
        self.pass(round_trip / 2);
        let server = true_time(self.boot) + server_ahead;
        let date = Timestamp::from_second(server.as_second()).unwrap();
        self.pass(round_trip / 2);
        self.read_ahead();
        ProbeAnswer {
            sent,
            received: BootInstant::after_boot(self.boot),
            date: Some(date),
        }
    }

    /// Sends a round of probes to servers with these leads in milliseconds. Returns whether the clock of each is too far.
    fn probe_servers(&mut self, servers_ahead_ms: &[i64]) -> Vec<bool> {
        self.pass(Duration::from_millis(273));
        let ahead = servers_ahead_ms.iter();
        let answers: Vec<ProbeAnswer> = ahead
            .map(|ahead| self.answer(Duration::from_millis(4), millis(*ahead)))
            .collect();
        self.guard.observe(&answers);
        answers.iter().map(|answer| self.guard.contradicts(answer)).collect()
    }

    fn probe_often(&mut self, n_rounds: u32) {
        for _ in 0..n_rounds {
            self.probe(Duration::from_millis(4));
            self.pass(Duration::from_millis(273));
        }
    }
}

fn true_time(boot: Duration) -> Timestamp {
    Timestamp::from_second(EPOCH).unwrap() + boot
}

fn millis(count: i64) -> SignedDuration {
    SignedDuration::from_millis(count)
}

#[test]
fn a_round_with_one_answer_does_not_count() {
    let mut world = World::new(SignedDuration::ZERO);
    world.probe_servers(&[5_000]);
    assert_eq!(world.guard.verdict(), ClockVerdict::Unknown);
    world.probe_servers(&[0, 5_000]);
    assert_eq!(world.guard.verdict(), ClockVerdict::Fine);
    world.probe_servers(&[5_000]);
    assert_eq!(world.guard.verdict(), ClockVerdict::Fine);
}

#[test]
fn small_steps_that_add_up_are_in_doubt() {
    let mut world = World::new(SignedDuration::ZERO);
    world.probe(Duration::from_millis(4));
    for is_in_doubt in [false, true, true] {
        world.wall_ahead += millis(300);
        world.read_ahead();
        assert_eq!(world.guard.is_in_doubt(), is_in_doubt, "{:?}", world.wall_ahead);
    }
    world.probe(Duration::from_millis(4));
    assert!(!world.guard.is_in_doubt());
}

#[test]
fn a_clock_too_far_from_the_api_server_raises_an_alarm() {
    #[track_caller]
    fn check(wall_ahead_ms: i64, expected: ClockVerdict) {
        let mut world = World::new(millis(wall_ahead_ms));
        world.probe_often(10);
        assert_eq!(world.guard.verdict(), expected, "{wall_ahead_ms} ms ahead");
    }
    for ahead in [0, 400, -400, 1_900, -1_900, 2_000, -2_000] {
        check(ahead, ClockVerdict::Fine);
    }
    for ahead in [3_010, -3_010, 3_600_000, -3_600_000] {
        check(ahead, ClockVerdict::Alarm);
    }
}

#[test]
fn many_answers_measure_the_skew_within_100_ms() {
    for ahead in [-700, 0, 250, 1_300] {
        let mut world = World::new(millis(ahead));
        world.probe_often(40);
        let skew = world.guard.skew().unwrap();
        assert!((skew - millis(ahead)).abs() < millis(100), "{skew:?} for {ahead} ms");
    }
}

#[test]
fn slow_answers_raise_no_alarm() {
    let mut world = World::new(SignedDuration::ZERO);
    for _ in 0..5 {
        world.probe(Duration::from_secs(40));
    }
    assert_eq!(world.guard.verdict(), ClockVerdict::Fine);
}

#[test]
fn a_clock_step_without_confirmation_is_never_followed() {
    for step in [
        millis(1_100),
        SignedDuration::from_hours(1),
        SignedDuration::from_hours(-1),
    ] {
        let mut world = World::new(SignedDuration::ZERO);
        world.probe_often(20);
        world.wall_ahead = step;
        assert_eq!(world.read_ahead(), SignedDuration::ZERO, "step of {step:?}");
        assert!(world.guard.is_holding_step());
        world.probe_often(20);
        assert_eq!(world.read_ahead(), SignedDuration::ZERO, "step of {step:?}");
        assert_eq!(world.guard.verdict(), ClockVerdict::Fine);
        world.wall_ahead = SignedDuration::ZERO;
        world.read_ahead();
        assert!(!world.guard.is_holding_step());
    }
}

#[test]
fn a_clock_step_is_followed_once_answers_confirm_it() {
    for wrong_by in [
        SignedDuration::from_hours(1),
        SignedDuration::from_hours(-1),
        millis(2_500),
    ] {
        let mut world = World::new(wrong_by);
        world.probe_often(8);
        world.wall_ahead = SignedDuration::ZERO;
        assert_eq!(world.read_ahead(), wrong_by, "held at first");
        world.probe_often(2);
        assert_eq!(world.read_ahead(), SignedDuration::ZERO);
        assert_eq!(world.guard.verdict(), ClockVerdict::Fine);
    }
}

#[test]
fn small_clock_steps_are_followed_at_once() {
    let mut world = World::new(SignedDuration::ZERO);
    for _ in 0..100 {
        world.wall_ahead += millis(90);
        world.pass(Duration::from_secs(1));
        assert_eq!(world.read_ahead(), world.wall_ahead);
    }
}

#[test]
fn the_alarm_ends_when_the_clocks_agree_again() {
    let mut world = World::new(SignedDuration::ZERO);
    world.probe_often(5);
    world.server_ahead = SignedDuration::from_secs(30);
    world.probe_often(3);
    assert_eq!(world.guard.verdict(), ClockVerdict::Alarm);
    world.server_ahead = SignedDuration::ZERO;
    world.probe_often(3);
    assert_eq!(world.guard.verdict(), ClockVerdict::Fine);
}

#[test]
fn answers_without_a_date_do_not_block_the_guard() {
    let mut world = World::new(SignedDuration::ZERO);
    let undated = ProbeAnswer {
        date: None,
        ..world.answer(Duration::ZERO, SignedDuration::ZERO)
    };
    world.guard.observe(&[undated]);
    assert_eq!(world.guard.verdict(), ClockVerdict::Unknown);
    world.guard.observe(&[undated; N_WRITE_CONNECTIONS]);
    assert_eq!(world.guard.verdict(), ClockVerdict::Fine);
    assert_eq!(world.guard.skew(), None);
}

#[test]
fn the_alarm_needs_a_majority_of_connections() {
    #[track_caller]
    fn check(wrong_ms: [i64; 4], expected: ClockVerdict) {
        let mut world = World::new(SignedDuration::ZERO);
        world.probe_servers(&wrong_ms);
        let is_far = world.probe_servers(&wrong_ms);
        assert_eq!(world.guard.verdict(), expected, "{wrong_ms:?}");
        assert_eq!(is_far, wrong_ms.map(|wrong| wrong != 0), "{wrong_ms:?}");
        let skew = world.guard.skew().unwrap();
        let is_near = skew.abs() < SignedDuration::from_secs(1);
        assert_eq!(is_near, expected == ClockVerdict::Fine, "{wrong_ms:?}: {skew:?}");
    }
    check([5_000, 0, 0, 0], ClockVerdict::Fine);
    check([0, 0, 0, -5_000], ClockVerdict::Fine);
    check([5_000, 5_000, 0, 0], ClockVerdict::Fine);
    check([5_000, 5_000, 5_000, 0], ClockVerdict::Alarm);
    check([5_000, 5_000, 5_000, 5_000], ClockVerdict::Alarm);
}

#[test]
fn a_clock_step_is_followed_if_a_majority_confirms_it() {
    for (n_right, is_followed) in [(1, false), (2, false), (3, true)] {
        let mut world = World::new(SignedDuration::ZERO);
        let mut servers = [0; 4];
        servers[..n_right].fill(5_000);
        world.probe_servers(&servers);
        world.wall_ahead = millis(5_000);
        world.read_ahead();
        for _ in 0..3 {
            world.probe_servers(&servers);
        }
        let ahead = world.read_ahead();
        assert_eq!(ahead == millis(5_000), is_followed, "{n_right} of 4");
    }
}
