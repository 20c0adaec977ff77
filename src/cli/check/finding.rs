//! The result of one check: how it ended, the reason, and the command that mends it.

use std::fmt;

use crate::kube_api::{JsonError, objects::classify::error_text};

/// How a check ended. Ordered from good to bad.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Severity {
    /// Nothing to do.
    Fine,
    /// A person should read the reason. The exit code is not affected.
    Warning,
    /// Something does not work.
    Failed,
}

impl Severity {
    /// The sign in the text.
    pub(super) fn sign(self) -> char {
        match self {
            Severity::Fine => '✓',
            Severity::Warning => '!',
            Severity::Failed => '✗',
        }
    }

    /// The word in JSON, which never changes.
    pub(super) fn word(self) -> &'static str {
        match self {
            Severity::Fine => "fine",
            Severity::Warning => "warning",
            Severity::Failed => "failed",
        }
    }
}

/// One line of the report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Finding {
    pub(super) severity: Severity,
    /// The name of the check, which never changes.
    pub(super) title: &'static str,
    pub(super) reason: String,
    /// The command or the change that mends it.
    pub(super) mend: Option<String>,
}

impl Finding {
    pub(super) fn fine(title: &'static str, reason: impl Into<String>) -> Finding {
        Finding {
            severity: Severity::Fine,
            title,
            reason: reason.into(),
            mend: None,
        }
    }

    pub(super) fn warning(title: &'static str, reason: impl Into<String>, mend: impl Into<String>) -> Finding {
        Finding {
            severity: Severity::Warning,
            mend: Some(mend.into()),
            ..Finding::fine(title, reason)
        }
    }

    pub(super) fn failed(title: &'static str, reason: impl Into<String>, mend: impl Into<String>) -> Finding {
        Finding {
            severity: Severity::Failed,
            ..Finding::warning(title, reason, mend)
        }
    }

    /// The finding of a check whose facts cannot be read.
    pub(super) fn unread(title: &'static str, unread: &Unread) -> Finding {
        Finding::warning(title, unread.to_string(), unread.mend())
    }

    /// The finding as one that fails.
    pub(super) fn into_failed(self) -> Finding {
        Finding {
            severity: Severity::Failed,
            ..self
        }
    }
}

/// Facts that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unread {
    /// The verb, the resource and the place: `list jobs in all namespaces`.
    pub(super) what: String,
    pub(super) is_denied: bool,
    message: String,
}

impl Unread {
    pub(super) fn new(what: impl Into<String>, error: &JsonError) -> Unread {
        Unread {
            what: what.into(),
            is_denied: matches!(error.code(), Some(401 | 403)),
            message: error_text(error),
        }
    }

    /// What makes the facts known.
    pub(super) fn mend(&self) -> String {
        if self.is_denied {
            format!("repeat the check with an account that may {}", self.what)
        } else {
            "repeat the check".to_owned()
        }
    }
}

impl fmt::Display for Unread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Unread {
            what,
            is_denied,
            message,
        } = self;
        if *is_denied {
            write!(f, "not checked: the account may not {what}")
        } else {
            write!(f, "not checked: cannot {what}: {message}")
        }
    }
}

/// Names of which a message has the first few, and the number of the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Names {
    first: Vec<String>,
    n: usize,
}

impl Names {
    /// Maximum number of names in a message.
    pub(super) const SHOWN_MAX: usize = 5;

    pub(super) fn add(&mut self, name: impl FnOnce() -> String) {
        self.n += 1;
        if self.first.len() < Self::SHOWN_MAX {
            self.first.push(name());
        }
    }

    pub(super) fn len(&self) -> usize {
        self.n
    }

    pub(super) fn is_empty(&self) -> bool {
        self.n == 0
    }
}

impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.first.join(", "))?;
        match self.n - self.first.len() {
            0 => Ok(()),
            1 => f.write_str(" and 1 other"),
            n => write!(f, " and {n} others"),
        }
    }
}

impl<T: Into<String>> FromIterator<T> for Names {
    fn from_iter<I: IntoIterator<Item = T>>(names: I) -> Names {
        let mut all = Names::default();
        for name in names {
            all.add(|| name.into());
        }
        all
    }
}

/// Formats a number with its noun: `1 CronJob`, `2 CronJobs`.
pub(super) fn counted(n: usize, noun: &str) -> String {
    if n == 1 {
        format!("1 {noun}")
    } else {
        format!("{n} {noun}s")
    }
}
