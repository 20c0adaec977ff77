//! Options of a namespace: a freeze, and defaults for its CronJobs.

use jiff::{Timestamp, civil::DateTime, fmt::temporal::Pieces};

use super::{InvalidOption, OptionName, kept};

/// The annotation with the reason of a freeze.
const FREEZE_REASON: &str = "cronwheel.dev/freeze-reason";

/// The annotation of a CronJob or a namespace that switches the alerts about CronJobs in trouble off by its value `none`.
pub const ALERTS_ANNOTATION: &str = "cronwheel.dev/alerts";

/// The longest reason of a freeze that is kept, in bytes.
const REASON_MAX_BYTES: usize = 256;

/// Nothing starts before an instant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Freeze {
    /// The instant from which runs start again.
    pub until: Timestamp,
    /// The reason, in the words of whoever froze the namespace; may be empty.
    pub reason: Box<str>,
}

impl Freeze {
    /// The annotation with the reason.
    pub const REASON_ANNOTATION: &'static str = FREEZE_REASON;

    /// Whether nothing starts at `now`.
    pub fn holds_at(&self, now: Timestamp) -> bool {
        now < self.until
    }
}

/// The last whole second of [`Timestamp`]. A freeze until then lasts until the namespace is thawed.
fn latest_end() -> Timestamp {
    Timestamp::from_second(Timestamp::MAX.as_second()).unwrap_or(Timestamp::MAX)
}

/// Whether a freeze until this instant lasts until the namespace is thawed.
pub fn is_without_end(until: Timestamp) -> bool {
    until >= latest_end()
}

/// Reads the end of a freeze, an instant in RFC 3339. One beyond the last whole second of [`Timestamp`], such as the end of
/// the year 9999, is that second.
pub fn freeze_end(text: &str) -> Option<Timestamp> {
    let latest = latest_end();
    if let Ok(instant) = text.parse::<Timestamp>() {
        return Some(instant.min(latest));
    }
    let pieces = Pieces::parse(text).ok()?;
    let wall = DateTime::from_parts(pieces.date(), pieces.time()?);
    let is_out_of_range = pieces.to_numeric_offset()?.to_timestamp(wall).is_err();
    (is_out_of_range && wall.year() > 0).then_some(latest)
}

/// A reason in one line without control characters. A long one ends after its last whole word.
fn kept_reason(value: &str) -> Box<str> {
    let words: Vec<&str> = value.split_whitespace().collect();
    let reason: String = words.join(" ").chars().filter(|letter| !letter.is_control()).collect();
    if reason.len() <= REASON_MAX_BYTES {
        return reason.into();
    }
    let cut = &reason[..reason.floor_char_boundary(REASON_MAX_BYTES)];
    match cut.rsplit_once(' ') {
        Some((whole_words, _)) if whole_words.len() > REASON_MAX_BYTES / 2 => format!("{whole_words} …").into(),
        Some(_) | None => format!("{cut}…").into(),
    }
}

/// The options of a namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamespaceOptions {
    /// `freeze-until` with `freeze-reason`.
    pub freeze: Option<Freeze>,
    /// Whether its CronJobs are never reported as in trouble.
    pub are_alerts_off: bool,
    /// The annotations that cannot be used.
    pub(super) invalid: Vec<InvalidOption>,
    defaults: Vec<(OptionName, Box<str>)>,
}

impl NamespaceOptions {
    /// Reads the options from the annotations of a namespace, by name. `None` without any. A default is parsed for each
    /// CronJob, because its schedule bounds it.
    pub fn read<'a>(get: impl Fn(&str) -> Option<&'a str>) -> Option<NamespaceOptions> {
        let default = |option: OptionName| Some((option, kept(get(option.annotation())?)));
        let mut options = NamespaceOptions {
            are_alerts_off: get(ALERTS_ANNOTATION) == Some("none"),
            defaults: OptionName::OF_NAMESPACE.into_iter().filter_map(default).collect(),
            ..NamespaceOptions::default()
        };
        let until = get(OptionName::FreezeUntil.annotation()).map(str::trim);
        if let Some(value) = until.filter(|value| *value != "none") {
            if let Some(until) = freeze_end(value) {
                let reason = get(FREEZE_REASON).map_or_else(Box::default, kept_reason);
                options.freeze = Some(Freeze { until, reason });
            } else {
                let problem = "it is no instant in RFC 3339";
                let invalid = InvalidOption::new(OptionName::FreezeUntil, true, value, problem);
                options.invalid.push(invalid);
            }
        }
        (options != NamespaceOptions::default()).then_some(options)
    }

    /// The default of the namespace for an option.
    pub(super) fn default_of(&self, option: OptionName) -> Option<&str> {
        let default = self.defaults.iter().find(|(name, _)| *name == option);
        default.map(|(_, value)| &**value)
    }

    /// Whether CronJobs without options of their own have some in this namespace.
    pub(crate) fn has_defaults(&self) -> bool {
        !self.defaults.is_empty() || !self.invalid.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_reason_ends_at_a_word() {
        let words = "database migration ".repeat(20);
        for (value, expected) in [
            (
                "  migration\n of\tthe \u{1b}[1mdatabase ",
                "migration of the [1mdatabase".to_owned(),
            ),
            (&*words, "database migration ".repeat(13) + "database …"),
            (&"x".repeat(300), "x".repeat(256) + "…"),
            (
                &("a ".to_owned() + &"ö".repeat(200)),
                "a ".to_owned() + &"ö".repeat(127) + "…",
            ),
            ("", String::new()),
        ] {
            let get = |name: &str| match name {
                FREEZE_REASON => Some(value),
                _ => name.ends_with("/freeze-until").then_some("2026-12-27T06:00:00Z"),
            };
            let freeze = NamespaceOptions::read(get).unwrap().freeze.unwrap();
            assert_eq!(*freeze.reason, *expected, "{value}");
        }
    }

    #[test]
    fn a_freeze_may_have_no_end_that_anyone_sees() {
        let until = |value: &'static str| {
            let get = |name: &str| (name == "cronwheel.dev/freeze-until").then_some(value);
            NamespaceOptions::read(get)?
                .freeze
                .map(|freeze| freeze.until.to_string())
        };
        let last = Some("9999-12-30T22:00:00Z".to_owned());
        for value in [
            "9999-12-31T23:59:59Z",
            "9999-12-31T23:59:59.9+01:00",
            "9999-12-30T22:00:00Z",
        ] {
            assert_eq!(until(value), last, "{value}");
        }
        for value in [
            "9999-12-31T23:59:59",
            "9999-12-31",
            "9999-12-32T00:00:00Z",
            "-009999-01-01T00:00:00Z",
            "forever",
        ] {
            assert_eq!(until(value), None, "{value}");
        }
    }
}
