//! The rules of the built-in controller's behaviour, from the page that describes them.

use super::error::ExplainError;

const PAGE: &str = include_str!("../../docs/spec/cronjob-behaviour.md");

const DIFFERENCES: &str = include_str!("../../docs/reference/differences.md");

/// Returns a rule with its paragraphs, and the differences from it. The `B-` of the number may be left out.
pub fn rule_text(number: &str) -> Result<String, ExplainError> {
    let no_rule = || ExplainError::UnknownRule {
        number: number.to_owned(),
    };
    let mut exact = number.to_ascii_uppercase();
    if exact.starts_with(|first: char| first.is_ascii_digit()) {
        exact.insert_str(0, "B-");
    }
    let rule = rule(&exact).ok_or_else(no_rule)?;
    let mut lines = vec![rule.to_owned()];
    let paragraph = |(theirs, ours)| format!("\nDifference. Built-in: {theirs}. cronwheel: {ours}.");
    lines.extend(differences(&exact).map(paragraph));
    Ok(lines.join("\n"))
}

/// Returns the behaviour of the built-in controller and that of cronwheel, for each difference that names the rule.
fn differences(number: &str) -> impl Iterator<Item = (&'static str, &'static str)> {
    DIFFERENCES.lines().filter_map(move |line| {
        let mut cells = line.split(" | ");
        let numbers = cells.next()?.strip_prefix("| ")?;
        let (theirs, ours) = (cells.next()?, cells.next()?);
        numbers.split(", ").any(|one| one == number).then_some((theirs, ours))
    })
}

/// Returns the text from the bold number to the next rule or heading.
fn rule(number: &str) -> Option<&'static str> {
    let is_start = |at: usize, text: &str| {
        let rest = text[at..].strip_prefix("**")?.strip_prefix(number)?;
        rest.starts_with(['*', ' ']).then_some(at)
    };
    let line_starts = || std::iter::once(0).chain(PAGE.match_indices('\n').map(|(at, _)| at + 1));
    let start = line_starts().find_map(|at| is_start(at, PAGE))?;
    let is_next = |at: &usize| PAGE[*at..].starts_with("**B-") || PAGE[*at..].starts_with('#');
    let end = line_starts()
        .find(|at| *at > start && is_next(at))
        .unwrap_or(PAGE.len());
    let text = PAGE[start..end].trim_end();
    Some(text.strip_suffix("---").unwrap_or(text).trim_end())
}
