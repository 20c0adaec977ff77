//! Tests of the guard with steps, drifts and answers, on simulated clocks.

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

    /// Sends one request that takes `round_trip` and is answered halfway.
    fn request(&mut self, round_trip: Duration) {
        self.request_over(None, round_trip, self.server_ahead);
    }

    /// Sends one request over a connection to a server whose clock is ahead by `server_ahead`.
    fn request_over(&mut self, connection: Option<ConnectionId>, round_trip: Duration, server_ahead: SignedDuration) {
        let sent = BootInstant::after_boot(self.boot);
        self.pass(round_trip / 2);
        let server = true_time(self.boot) + server_ahead;
        let date = Timestamp::from_second(server.as_second()).unwrap();
        self.pass(round_trip / 2);
        self.read_ahead();
        let received = BootInstant::after_boot(self.boot);
        self.guard.observe(sent, received, Some((connection, date)));
    }

    /// Sends three requests over each connection. The pairs are the connection and its server's lead in milliseconds.
    fn request_all(&mut self, servers_ahead: &[(u64, i64)]) {
        for _ in 0..3 {
            for (connection, ahead_ms) in servers_ahead {
                self.request_over(
                    Some(ConnectionId(*connection)),
                    Duration::from_millis(4),
                    millis(*ahead_ms),
                );
            }
            self.pass(Duration::from_millis(273));
        }
    }

    fn retire(&mut self, connection: u64) -> bool {
        self.guard
            .retire(ConnectionId(connection), BootInstant::after_boot(self.boot))
    }

    fn request_often(&mut self, n_requests: u32) {
        for _ in 0..n_requests {
            self.request(Duration::from_millis(4));
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
fn the_clock_is_unknown_before_two_answers_agree() {
    let mut world = World::new(SignedDuration::ZERO);
    assert_eq!(world.guard.verdict(), ClockVerdict::Unknown);
    world.request(Duration::from_millis(4));
    assert_eq!(world.guard.verdict(), ClockVerdict::Unknown);
    world.request(Duration::from_millis(4));
    assert_eq!(world.guard.verdict(), ClockVerdict::Fine);
}

#[test]
fn a_clock_too_far_from_the_api_server_raises_an_alarm() {
    #[track_caller]
    fn check(wall_ahead_ms: i64, expected: ClockVerdict) {
        let mut world = World::new(millis(wall_ahead_ms));
        world.request_often(10);
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
        world.request_often(40);
        let skew = world.guard.skew().unwrap();
        assert!((skew - millis(ahead)).abs() < millis(100), "{skew:?} for {ahead} ms");
    }
}

#[test]
fn slow_answers_raise_no_alarm() {
    let mut world = World::new(SignedDuration::ZERO);
    for _ in 0..5 {
        world.request(Duration::from_secs(40));
    }
    assert_eq!(world.guard.verdict(), ClockVerdict::Fine);
}

#[test]
fn one_wrong_answer_raises_no_alarm() {
    let mut world = World::new(SignedDuration::ZERO);
    world.request_often(5);
    world.server_ahead = SignedDuration::from_hours(1);
    world.request(Duration::from_millis(4));
    assert_eq!(world.guard.verdict(), ClockVerdict::Fine);
    world.server_ahead = SignedDuration::ZERO;
    world.request_often(2);
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
        world.request_often(20);
        world.wall_ahead = step;
        assert_eq!(world.read_ahead(), SignedDuration::ZERO, "step of {step:?}");
        assert!(world.guard.is_holding_step());
        world.request_often(20);
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
        world.request_often(8);
        world.wall_ahead = SignedDuration::ZERO;
        assert_eq!(world.read_ahead(), wrong_by, "held at first");
        world.request_often(2);
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
    world.request_often(5);
    world.server_ahead = SignedDuration::from_secs(30);
    world.request_often(3);
    assert_eq!(world.guard.verdict(), ClockVerdict::Alarm);
    world.server_ahead = SignedDuration::ZERO;
    world.request_often(3);
    assert_eq!(world.guard.verdict(), ClockVerdict::Fine);
}

#[test]
fn answers_without_a_date_do_not_block_the_guard() {
    let mut world = World::new(SignedDuration::ZERO);
    let now = BootInstant::after_boot(world.boot);
    for _ in 0..3 {
        assert_eq!(world.guard.verdict(), ClockVerdict::Unknown);
        world.guard.observe(now, now, None);
    }
    assert_eq!(world.guard.verdict(), ClockVerdict::Fine);
    assert_eq!(world.guard.skew(), None);
}

#[test]
fn the_alarm_needs_a_majority_of_connections() {
    #[track_caller]
    fn check(wrong_ms: [i64; 4], expected: ClockVerdict) {
        let mut world = World::new(SignedDuration::ZERO);
        let servers: Vec<(u64, i64)> = (1..).zip(wrong_ms).collect();
        world.request_all(&servers);
        assert_eq!(world.guard.verdict(), expected, "{wrong_ms:?}");
        let is_near = world.guard.skew().unwrap().abs() < SignedDuration::from_secs(1);
        assert_eq!(
            is_near,
            expected == ClockVerdict::Fine,
            "{wrong_ms:?}: {:?}",
            world.guard.skew()
        );
    }
    check([5_000, 0, 0, 0], ClockVerdict::Fine);
    check([0, 0, 0, -5_000], ClockVerdict::Fine);
    check([5_000, 5_000, 0, 0], ClockVerdict::Fine);
    check([5_000, 5_000, 5_000, 0], ClockVerdict::Alarm);
    check([5_000, 5_000, 5_000, 5_000], ClockVerdict::Alarm);
}

#[test]
fn a_wrong_server_raises_no_alarm_before_others_answer_twice() {
    let mut world = World::new(SignedDuration::ZERO);
    for connection in [1, 2, 3] {
        let ahead = if connection == 1 {
            millis(5_000)
        } else {
            SignedDuration::ZERO
        };
        world.request_over(Some(ConnectionId(connection)), Duration::from_millis(4), ahead);
    }
    for _ in 0..3 {
        world.request_over(Some(ConnectionId(1)), Duration::from_millis(4), millis(5_000));
        assert_eq!(world.guard.verdict(), ClockVerdict::Unknown);
    }
}

#[test]
fn at_most_one_contradicting_connection_is_replaced_in_ten_seconds() {
    let mut world = World::new(SignedDuration::ZERO);
    world.request_all(&[(1, 5_000), (2, 5_000), (3, 5_000), (4, 0)]);
    assert_eq!(world.guard.verdict(), ClockVerdict::Alarm);
    assert!(!world.retire(4), "the clock of the server agrees");
    assert!(!world.retire(9), "the connection is unknown");
    assert!(world.retire(1));
    assert!(!world.retire(2), "too soon");
    world.request_all(&[(5, 0)]);
    assert_eq!(world.guard.verdict(), ClockVerdict::Fine);
    world.pass(Duration::from_secs(10));
    assert!(world.retire(2), "one server's clock is still wrong");
}

#[test]
fn a_connection_silent_for_30_seconds_does_not_count() {
    let mut world = World::new(SignedDuration::ZERO);
    world.request_all(&[(1, 5_000), (2, 0)]);
    assert_eq!(world.guard.verdict(), ClockVerdict::Fine);
    world.pass(Duration::from_secs(20));
    world.request_all(&[(1, 5_000)]);
    assert_eq!(world.guard.verdict(), ClockVerdict::Fine);
    world.pass(Duration::from_secs(11));
    world.request_all(&[(1, 5_000)]);
    assert_eq!(world.guard.verdict(), ClockVerdict::Alarm, "the only server counts");
}

#[test]
fn a_clock_step_is_followed_if_a_majority_confirms_it() {
    for (n_right, is_followed) in [(1, false), (2, false), (3, true)] {
        let mut world = World::new(SignedDuration::ZERO);
        let servers: Vec<(u64, i64)> = (1..=4).map(|id| (id, if id <= n_right { 5_000 } else { 0 })).collect();
        world.request_all(&servers);
        world.wall_ahead = millis(5_000);
        world.request_all(&servers);
        let ahead = world.read_ahead();
        assert_eq!(ahead == millis(5_000), is_followed, "{n_right} of 4");
    }
}

#[test]
fn old_connections_are_forgotten() {
    let mut world = World::new(SignedDuration::ZERO);
    for connection in 0..1_000 {
        world.request_over(
            Some(ConnectionId(connection)),
            Duration::from_millis(4),
            SignedDuration::ZERO,
        );
        assert!(world.guard.connections.len() <= N_CONNECTIONS_MAX);
        world.pass(Duration::from_secs(1));
    }
}
