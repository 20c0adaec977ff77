//! The rules of the built-in controller's behaviour and of the options, from the pages that describe them.

use super::error::ExplainError;

const BUILT_IN: &str = include_str!("../../docs/spec/cronjob-behaviour.md");

const OPTIONS: &str = include_str!("../../docs/spec/options.md");

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
    let page = if exact.starts_with("O-") { OPTIONS } else { BUILT_IN };
    let rule = rule(page, &exact)
        .or_else(|| section(page, &exact))
        .ok_or_else(no_rule)?;
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
fn rule(page: &'static str, number: &str) -> Option<&'static str> {
    let is_start = |at: usize, text: &str| {
        let rest = text[at..].strip_prefix("**")?.strip_prefix(number)?;
        rest.starts_with(['*', ' ']).then_some(at)
    };
    let line_starts = || std::iter::once(0).chain(page.match_indices('\n').map(|(at, _)| at + 1));
    let start = line_starts().find_map(|at| is_start(at, page))?;
    let is_next = |at: &usize| ["**B-", "**O-", "#"].iter().any(|begin| page[*at..].starts_with(begin));
    let end = line_starts()
        .find(|at| *at > start && is_next(at))
        .unwrap_or(page.len());
    Some(without_line(&page[start..end]))
}

/// Returns the rules of the section whose heading begins with the number: `## O-7. Freezes`.
fn section(page: &'static str, number: &str) -> Option<&'static str> {
    let start = page.find(&format!("\n## {number}. "))? + 1;
    let text = &page[start..];
    let end = text.find("\n## ").unwrap_or(text.len());
    Some(without_line(&text[..end]))
}

/// The text without the line that divides it from the next section.
fn without_line(text: &str) -> &str {
    let text = text.trim_end();
    text.strip_suffix("---").unwrap_or(text).trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::explain::reasons;

    #[test]
    fn every_rule_that_an_answer_names_can_be_printed() {
        let numbers = reasons().flat_map(|meaning| meaning.rules.split(", "));
        for number in numbers.filter(|number| *number != "cronwheel's own") {
            let text = rule_text(number).unwrap_or_else(|error| panic!("{error}"));
            assert!(text.lines().next().is_some_and(|line| line.contains(number)), "{text}");
        }
    }

    #[test]
    fn a_rule_of_an_option_ends_before_the_next() {
        for (number, begin, end) in [
            ("O-3", "**O-3 `on-resume`.** ", "or when it does not start at the end."),
            ("o-7.2", "**O-7.2 End.** ", "a replica that has observed it."),
            ("O-7", "## O-7. Freezes\n\n**O-7.1 ", "the one that ends later counts."),
            ("O-5", "## O-5. `schedule:` ", "matches no time at all."),
            ("O-11", "## O-11. ", "the option is invalid."),
        ] {
            let text = rule_text(number).unwrap_or_else(|error| panic!("{error}"));
            assert!(text.starts_with(begin) && text.ends_with(end), "{number}: {text}");
        }
        for number in ["O-", "O-99", "O-7.9", "O", "## O-7"] {
            assert!(rule_text(number).is_err(), "{number}");
        }
    }
}
