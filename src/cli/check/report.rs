//! All findings as text or as JSON.

use std::fmt::Write as _;

use jiff::Timestamp;
use serde_json::json;

use super::finding::{Finding, Severity};

/// The end of a colour.
const PLAIN: &str = "\x1b[0m";

/// Formats one line for each finding, and one for its remedy.
pub(super) fn text(findings: &[Finding], is_coloured: bool) -> String {
    let width = findings.iter().map(|finding| finding.title.chars().count()).max();
    let width = width.unwrap_or_default();
    let mut text = String::new();
    for finding in findings {
        let Finding {
            severity,
            title,
            reason,
            mend,
        } = finding;
        let sign = severity.sign();
        let sign = if is_coloured {
            format!("{}{sign}{PLAIN}", colour(*severity))
        } else {
            sign.to_string()
        };
        let _ = writeln!(text, "{sign} {title:width$}   {}", one_line(reason));
        if let Some(mend) = mend {
            let _ = writeln!(text, "  {:width$}   to mend: {}", "", one_line(mend));
        }
    }
    let n = |severity| count(findings, severity);
    let _ = writeln!(
        text,
        "\n{} fine, {} to read (!), {} failed (✗)",
        n(Severity::Fine),
        n(Severity::Warning),
        n(Severity::Failed)
    );
    text
}

fn colour(severity: Severity) -> &'static str {
    match severity {
        Severity::Fine => "\x1b[32m",
        Severity::Warning => "\x1b[33m",
        Severity::Failed => "\x1b[31m",
    }
}

/// Text of tenants and servers may contain line breaks and control characters.
fn one_line(text: &str) -> String {
    text.chars()
        .map(|letter| if letter.is_control() { ' ' } else { letter })
        .collect()
}

/// Formats one object. Members are added, but never removed or changed in meaning; `docs/reference/cli.md` lists them.
pub(super) fn document(form: &str, findings: &[Finding], now: Timestamp) -> String {
    let check = |finding: &Finding| {
        json!({
            "severity": finding.severity.word(),
            "title": finding.title,
            "reason": finding.reason,
            "mend": finding.mend,
        })
    };
    let document = json!({
        "at": now.to_string(),
        "form": form,
        "checks": findings.iter().map(check).collect::<Vec<_>>(),
        "fine": count(findings, Severity::Fine),
        "warnings": count(findings, Severity::Warning),
        "failed": count(findings, Severity::Failed),
    });
    format!("{document}\n")
}

pub(super) fn count(findings: &[Finding], severity: Severity) -> usize {
    let with_severity = findings.iter().filter(|finding| finding.severity == severity);
    with_severity.count()
}
