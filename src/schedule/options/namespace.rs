//! Options of a namespace: a freeze, and defaults for its CronJobs.

use jiff::Timestamp;

use super::{InvalidOption, OptionName, kept};

/// The annotation with the reason of a freeze.
const FREEZE_REASON: &str = "cronwheel.dev/freeze-reason";

/// The annotation of a CronJob or a namespace that switches the alerts about CronJobs in trouble off by its value `none`.
pub const ALERTS_ANNOTATION: &str = "cronwheel.dev/alerts";

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
            if let Ok(until) = value.parse() {
                let reason = get(FREEZE_REASON).map_or_else(Box::default, kept);
                options.freeze = Some(Freeze { until, reason });
            } else {
                let problem = "it is no instant in RFC 3339".to_owned();
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
