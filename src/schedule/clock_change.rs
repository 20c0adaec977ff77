//! What happens to a slot whose local time a clock change skips or repeats (O-6).

/// The option `clock-change` (O-6).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClockChange {
    /// As the built-in controller does: a skipped time has no run, and a repeated one has two (B-8.4).
    #[default]
    Literal,
    /// A skipped time runs at the end of the gap, and a repeated one only the first time.
    Once,
}

impl ClockChange {
    /// The value of a name, or `None` for an unknown name.
    pub fn of_name(name: &str) -> Option<ClockChange> {
        match name {
            "literal" => Some(ClockChange::Literal),
            "once" => Some(ClockChange::Once),
            _ => None,
        }
    }

    /// The name in the option.
    pub fn as_str(self) -> &'static str {
        match self {
            ClockChange::Literal => "literal",
            ClockChange::Once => "once",
        }
    }
}
