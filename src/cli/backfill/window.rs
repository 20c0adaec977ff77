//! The time whose slots start.

use jiff::{SignedDuration, Timestamp};

use crate::cli::{
    args::values::{duration, parse_since},
    explain::parse_instant,
};

/// A point in time, as a flag gives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    At(Timestamp),
    /// This long before now.
    Before(SignedDuration),
}

/// Parses an instant or a duration before now, each as other commands accept it.
pub(super) fn parse_moment(text: &str) -> Result<Moment, String> {
    if duration(text).is_some() {
        return parse_since(text).map(Moment::Before);
    }
    let at = parse_instant(text).map(Moment::At);
    at.map_err(|error| format!("{error}; or give a duration before now, such as 6h"))
}

impl Moment {
    fn instant(self, now: Timestamp) -> Timestamp {
        match self {
            Moment::At(at) => at,
            Moment::Before(duration) => now.saturating_sub(duration).unwrap_or(now),
        }
    }
}

/// The first and the last instant. None is in the future.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Window {
    pub(super) from: Timestamp,
    pub(super) to: Timestamp,
}

impl Window {
    /// The window from whole second to whole second.
    pub(super) fn new(from: Moment, to: Option<Moment>, now: Timestamp) -> Result<Window, String> {
        let (from, to) = (from.instant(now), to.map_or(now, |to| to.instant(now)));
        for (flag, instant) in [("--from", from), ("--to", to)] {
            if instant > now {
                return Err(format!(
                    "{flag} {instant} is in the future, and the controller starts those slots itself; give {flag} {} or \
                     earlier",
                    whole(now)
                ));
            }
        }
        if from > to {
            return Err(format!("--from {from} is after --to {to}; exchange them"));
        }
        Ok(Window {
            from: whole(from),
            to: whole(to),
        })
    }
}

/// Drops the fraction of a second: slots have none.
fn whole(instant: Timestamp) -> Timestamp {
    Timestamp::from_second(instant.as_second()).unwrap_or(instant)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    #[test]
    fn moments_are_instants_or_durations_before_now() {
        for (text, expected) in [
            ("2026-11-27T02:00:00Z", Ok(Moment::At(at("2026-11-27T02:00:00Z")))),
            ("2026-11-27T03:00:00+01:00", Ok(Moment::At(at("2026-11-27T02:00:00Z")))),
            ("6h", Ok(Moment::Before(SignedDuration::from_hours(6)))),
            ("1d", Ok(Moment::Before(SignedDuration::from_hours(24)))),
            ("1w 2d", Ok(Moment::Before(SignedDuration::from_hours(9 * 24)))),
            ("400d", Err("give a duration from 1m to 8784h")),
            ("1h30m", Ok(Moment::Before(SignedDuration::from_mins(90)))),
            ("6h ago", Ok(Moment::Before(SignedDuration::from_hours(6)))),
            ("1d 12h ago", Ok(Moment::Before(SignedDuration::from_hours(36)))),
            ("30s ago", Err("give a duration from 1m to 8784h")),
            ("-6h ago", Err("or give a duration before now, such as 6h")),
            ("30s", Err("give a duration from 1m to 8784h")),
            ("-6h", Err("give a duration from 1m to 8784h")),
            ("yesterday", Err("or give a duration before now, such as 6h")),
            ("2026-11-27", Err("no instant in RFC 3339")),
            ("1960-01-01T00:00:00Z", Err("from 1973 to the end of 2099")),
        ] {
            match (parse_moment(text), expected) {
                (Ok(found), Ok(expected)) => assert_eq!(found, expected, "{text}"),
                (Err(found), Err(expected)) => assert!(found.contains(expected), "{text}: {found}"),
                (found, _) => panic!("{text}: {found:?}"),
            }
        }
    }

    #[test]
    fn a_window_is_in_the_past_and_in_order() {
        let now = at("2026-11-27T06:00:30.5Z");
        let moment = |text: &str| parse_moment(text).unwrap();
        let window = |from: &str, to: Option<&str>| Window::new(moment(from), to.map(moment), now);
        let expected = |from: &str, to: &str| {
            Ok(Window {
                from: at(from),
                to: at(to),
            })
        };
        assert_eq!(
            window("6h", None),
            expected("2026-11-27T00:00:30Z", "2026-11-27T06:00:30Z")
        );
        assert_eq!(
            window("2026-11-27T02:00:00Z", Some("1h")),
            expected("2026-11-27T02:00:00Z", "2026-11-27T05:00:30Z")
        );
        let later = "2026-11-27T06:00:31Z";
        for (from, to, flag) in [
            ("1h", Some(later), "--to"),
            (later, None, "--from"),
            (later, Some("1h"), "--from"),
            (later, Some(later), "--from"),
        ] {
            let future = window(from, to).unwrap_err();
            let expected = format!(
                "{flag} {later} is in the future, and the controller starts those slots itself; give {flag} \
                 2026-11-27T06:00:30Z or earlier"
            );
            assert_eq!(future, expected, "{from} {to:?}");
        }
        let reversed = window("1h", Some("2h")).unwrap_err();
        assert!(reversed.ends_with("exchange them"), "{reversed}");
    }
}
