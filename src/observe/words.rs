//! Numbers, times and names as words, the same in the advice, the report and on the page.

use jiff::{SignedDuration, Timestamp};

/// Formats a number with separators: `41,212`.
pub fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// The two largest units of a duration in whole seconds: their numbers and places in `UNITS`.
fn units(duration: SignedDuration) -> Vec<(u64, usize)> {
    let mut rest = duration.as_secs().unsigned_abs();
    let mut parts = Vec::new();
    for (place, seconds) in UNIT_SECONDS.iter().enumerate() {
        parts.push((rest / seconds, place));
        rest %= seconds;
    }
    let first = parts.iter().position(|(n, _)| *n > 0).unwrap_or(parts.len() - 1);
    let two = parts.into_iter().skip(first).take(2).enumerate();
    two.filter(|(place, (n, _))| *place == 0 || *n > 0)
        .map(|(_, part)| part)
        .collect()
}

const UNIT_SECONDS: [u64; 4] = [86_400, 3_600, 60, 1];

/// Formats a duration for a sentence, by its two largest units: `1 hour 20 minutes`.
pub fn duration_words(duration: SignedDuration) -> String {
    const NAMES: [&str; 4] = ["day", "hour", "minute", "second"];
    let word = |(n, unit): (u64, usize)| format!("{n} {}{}", NAMES[unit], if n == 1 { "" } else { "s" });
    let words: Vec<String> = units(duration).into_iter().map(word).collect();
    words.join(" ")
}

/// Formats a duration by its two largest units, of which the second one has two digits: `41 s`, `1 m 02 s`, `1 h 20 m`.
pub fn duration_short(duration: SignedDuration) -> String {
    const LETTERS: [&str; 4] = ["d", "h", "m", "s"];
    let word = |(place, (n, unit)): (usize, (u64, usize))| match place {
        0 => format!("{n} {}", LETTERS[unit]),
        _ => format!("{n:02} {}", LETTERS[unit]),
    };
    let words: Vec<String> = units(duration).into_iter().enumerate().map(word).collect();
    words.join(" ")
}

/// Formats a lateness. The creation times of Jobs have whole seconds, so a lateness of zero is one below a second.
pub fn lateness_text(lateness: SignedDuration) -> String {
    if lateness < SignedDuration::from_secs(1) {
        "< 1 s".to_owned()
    } else {
        duration_short(lateness)
    }
}

/// Frozen namespaces that are named.
const FROZEN_NAMED_MAX: usize = 5;

/// A sentence about the namespaces that are frozen: the name, the end and the reason of each. `None` without any.
pub fn frozen_text(frozen: &[(Box<str>, Timestamp, Box<str>)]) -> Option<String> {
    let one = |(namespace, until, reason): &(Box<str>, Timestamp, Box<str>)| {
        let reason = if reason.is_empty() {
            String::new()
        } else {
            format!(" ({reason})")
        };
        format!("{namespace} until {}{reason}", instant_text(*until))
    };
    let named: Vec<String> = frozen.iter().take(FROZEN_NAMED_MAX).map(one).collect();
    let rest = match frozen.len() - named.len() {
        0 => String::new(),
        n_more => format!(", and {n_more} more namespaces"),
    };
    (!named.is_empty()).then(|| format!("Frozen: {}{rest}.", named.join(", ")))
}

/// 2100-01-01.
const FAR: Timestamp = Timestamp::constant(4_102_444_800, 0);

/// Formats an instant: `27 Nov 22:04 UTC`, with seconds if there are any.
pub fn instant_text(at: Timestamp) -> String {
    let time = if at.as_second() % 60 == 0 {
        "%H:%M UTC"
    } else {
        "%H:%M:%S UTC"
    };
    // Only what people write for a freeze without an end is so far away.
    let day = if at < FAR { "%-d %b " } else { "%-d %b %Y " };
    at.strftime(&[day, time].concat()).to_string()
}

/// Quotes a word for a shell, if it needs that. Names of Kubernetes do not; a text that is none must not become a command.
pub fn shell_word(word: &str) -> String {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '.' | '_');
    if !word.is_empty() && !word.starts_with('-') && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// A text from an object, without the characters that could change a terminal, a page or the order of other text:
/// control characters, and marks of the direction of writing. Each becomes `�`.
pub fn harmless(text: &str) -> String {
    let harmless = |letter: char| if is_harmful(letter) { '\u{fffd}' } else { letter };
    text.chars().map(harmless).collect()
}

fn is_harmful(letter: char) -> bool {
    letter.is_control()
        || matches!(letter,
            '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_separators() {
        for (number, expected) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(thousands(number), expected);
        }
    }

    #[test]
    fn durations_have_two_units() {
        for (seconds, words, short) in [
            (0, "0 seconds", "0 s"),
            (1, "1 second", "1 s"),
            (62, "1 minute 2 seconds", "1 m 02 s"),
            (11_520, "3 hours 12 minutes", "3 h 12 m"),
            (1_320, "22 minutes", "22 m"),
            (3_605, "1 hour", "1 h"),
            (90_061, "1 day 1 hour", "1 d 01 h"),
        ] {
            let duration = SignedDuration::from_secs(seconds);
            assert_eq!(duration_words(duration), words);
            assert_eq!(duration_short(duration), short);
        }
        assert_eq!(lateness_text(SignedDuration::ZERO), "< 1 s");
    }

    #[test]
    fn words_with_other_characters_are_quoted() {
        let words = ["a-b.c", "", "-x", "a b", "it's"].map(shell_word);
        assert_eq!(words, ["a-b.c", "''", "'-x'", "'a b'", r"'it'\''s'"]);
    }

    #[test]
    fn harmful_characters_are_replaced() {
        assert_eq!(
            harmless("a\u{1b}[31m\n\u{202e}b\u{9b}é"),
            "a\u{fffd}[31m\u{fffd}\u{fffd}b\u{fffd}é"
        );
    }
}
