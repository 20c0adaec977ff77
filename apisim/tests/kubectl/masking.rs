//! What differs from run to run, taken out of what kubectl prints: uids, versions, times, ages, widths.

use crate::session::Printed;

/// What lines begin with whose rest is nobody's affair: versions, and the names and times of the files that are compared.
const MASKED: [&str; 6] = [
    "resourceVersion:",
    "\"resourceVersion\":",
    "Resource Version:",
    "diff ",
    "--- ",
    "+++ ",
];

/// Every run of spaces within a line becomes one: ages make columns wide.
pub(crate) fn masked(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let indent: String = line.chars().take_while(|character| *character == ' ').collect();
        let is_said = |start: &&&str| line.trim_start().starts_with(**start);
        if let Some(start) = MASKED.iter().find(is_said) {
            return format!("{indent}{start} MASKED");
        }
        let words: Vec<String> = line.split_whitespace().map(word).collect();
        if is_log_head(words.first().map_or("", String::as_str)) {
            // Followed by the time and the process.
            return format!("LOG {}", words.get(3..).unwrap_or_default().join(" "));
        }
        indent + &without_dates(words).join(" ")
    });
    let lines: Vec<String> = lines.collect();
    lines.join("\n")
}

/// `W1121`: a warning of that day.
fn is_log_head(word: &str) -> bool {
    let day = word.strip_prefix(['I', 'W', 'E']).unwrap_or_default();
    day.len() == 4 && day.bytes().all(|byte| byte.is_ascii_digit())
}

fn word(word: &str) -> String {
    let bare = word.trim_matches(|character: char| matches!(character, '"' | ',' | ';' | '\''));
    if bare.parse::<jiff::Timestamp>().is_ok() {
        word.replace(bare, "TIME")
    } else if is_age(bare) {
        "AGE".to_owned()
    } else if word.contains("/tmp/") {
        "PATH".to_owned()
    } else {
        without_uids(word)
    }
}

fn without_uids(word: &str) -> String {
    let is_uid = |at: &usize| {
        let part = word.get(*at..*at + 36).unwrap_or_default();
        part.split('-').map(str::len).eq([8, 4, 4, 4, 12])
            && part.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
    };
    match (0..word.len()).find(is_uid) {
        Some(at) => [&word[..at], "UID", &without_uids(&word[at + 36..])].concat(),
        None => word.to_owned(),
    }
}

/// `5s`, `2m3s`.
fn is_age(word: &str) -> bool {
    let units = ['s', 'm', 'h', 'd'];
    let is_form = |character: char| character.is_ascii_digit() || units.contains(&character);
    word.starts_with(|character: char| character.is_ascii_digit()) && word.ends_with(units) && word.chars().all(is_form)
        || word == "<unknown>"
}

/// `Mon, 02 Jan 2006 15:04:05 +0000` becomes one word.
fn without_dates(words: Vec<String>) -> Vec<String> {
    const DAYS: [&str; 7] = ["Mon,", "Tue,", "Wed,", "Thu,", "Fri,", "Sat,", "Sun,"];
    let mut kept = Vec::new();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        if DAYS.contains(&word.as_str()) {
            kept.push("DATE".to_owned());
            words.by_ref().take(5).for_each(drop);
        } else {
            kept.push(word);
        }
    }
    kept
}

/// What one printed and the other did not, line by line.
pub(crate) fn difference(ours: &Printed, real: &Printed) -> String {
    let mut lines = Vec::new();
    if ours.is_success != real.is_success {
        lines.push(format!(
            "- success: {}\n+ success: {}",
            real.is_success, ours.is_success
        ));
    }
    for (ours, real) in [(&ours.output, &real.output), (&ours.errors, &real.errors)] {
        let (ours, real): (Vec<_>, Vec<_>) = (ours.lines().collect(), real.lines().collect());
        lines.extend(
            real.iter()
                .filter(|line| !ours.contains(line))
                .map(|line| format!("- {line}")),
        );
        lines.extend(
            ours.iter()
                .filter(|line| !real.contains(line))
                .map(|line| format!("+ {line}")),
        );
    }
    if lines.is_empty() {
        let all = |printed: &Printed| format!("{}\n{}", printed.output, printed.errors);
        lines.push(format!("the order differs\n- {}\n+ {}", all(real), all(ours)));
    }
    lines.join("\n")
}
