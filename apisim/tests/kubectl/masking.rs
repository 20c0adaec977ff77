//! Masks values that differ between runs in the output of kubectl: uids, versions, times, ages, column widths.

use crate::session::Printed;

/// Starts of lines whose rest is masked: versions, and the names and times of compared files.
const MASKED_STARTS: [&str; 6] = [
    "resourceVersion:",
    "\"resourceVersion\":",
    "Resource Version:",
    "diff ",
    "--- ",
    "+++ ",
];

/// Masks a text. Also replaces runs of spaces within a line with one space, because ages change the width of columns.
pub(crate) fn masked(text: &str) -> String {
    let lines = text.lines().map(|line| {
        let indent: String = line.chars().take_while(|character| *character == ' ').collect();
        let is_start = |start: &&&str| line.trim_start().starts_with(**start);
        if let Some(start) = MASKED_STARTS.iter().find(is_start) {
            return format!("{indent}{start} MASKED");
        }
        let words: Vec<String> = line.split_whitespace().map(mask_word).collect();
        if is_log_head(words.first().map_or("", String::as_str)) {
            // The time and the process id follow the head.
            return format!("LOG {}", words.get(3..).unwrap_or_default().join(" "));
        }
        indent + &without_dates(words).join(" ")
    });
    let lines: Vec<String> = lines.collect();
    lines.join("\n")
}

/// Returns whether a word starts a log line, such as `W1121`: a warning on November 21.
fn is_log_head(word: &str) -> bool {
    let day = word.strip_prefix(['I', 'W', 'E']).unwrap_or_default();
    day.len() == 4 && day.bytes().all(|byte| byte.is_ascii_digit())
}

fn mask_word(word: &str) -> String {
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

/// Returns whether a word is an age, such as `5s` or `2m3s`.
fn is_age(word: &str) -> bool {
    let units = ['s', 'm', 'h', 'd'];
    let is_form = |character: char| character.is_ascii_digit() || units.contains(&character);
    word.starts_with(|character: char| character.is_ascii_digit()) && word.ends_with(units) && word.chars().all(is_form)
        || word == "<unknown>"
}

/// Replaces dates such as `Mon, 02 Jan 2006 15:04:05 +0000` with one word.
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

/// Returns the lines that only one of the two printed.
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
