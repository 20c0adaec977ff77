//! Characters that a schedule or a zone cannot have, and that are easily overlooked: quotes inside the value, typographic
//! quotes and dashes, line breaks, invisible characters.

/// A text with a correction applied.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Mended {
    /// What to do, as an imperative.
    pub(super) reason: String,
    pub(super) text: String,
}

impl Mended {
    pub(super) fn new(reason: impl Into<String>, text: impl Into<String>) -> Mended {
        Mended {
            reason: reason.into(),
            text: text.into(),
        }
    }
}

/// Characters that look like one of cron's, with that one.
const LOOKALIKES: [(&str, &str); 5] = [
    ("–—−‐‑‒―－", "-"),
    ("∗＊⁎✱﹡×", "*"),
    ("，、", ","),
    ("／∕⁄", "/"),
    ("？", "?"),
];

const INVISIBLE: [char; 5] = ['\u{200b}', '\u{200c}', '\u{200d}', '\u{2060}', '\u{feff}'];

fn is_quote(c: char) -> bool {
    matches!(
        c,
        '"' | '\'' | '`' | '“' | '”' | '„' | '‟' | '‘' | '’' | '‚' | '«' | '»'
    )
}

/// Formats a text with its line breaks and other characters that do not show escaped.
pub fn shown(text: &str) -> String {
    let is_plain = |c: char| c == ' ' || !c.is_whitespace() && !c.is_control() && !INVISIBLE.contains(&c);
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_plain(c) {
            shown.push(c);
        } else {
            shown.extend(c.escape_default());
        }
    }
    shown
}

/// Corrects the first such character, and all others of its kind.
pub(super) fn mend(text: &str) -> Option<Mended> {
    mend_quotes(text)
        .or_else(|| mend_lookalikes(text))
        .or_else(|| mend_invisible(text))
        .or_else(|| mend_backslashes(text))
}

/// Removes white space around a value that must not have any.
pub(super) fn mend_ends(text: &str) -> Option<Mended> {
    let trimmed = text.trim();
    let what = if text.contains(['\n', '\r']) {
        "line break"
    } else {
        "white space"
    };
    (trimmed.len() < text.len()).then(|| Mended::new(format!("remove the {what}"), trimmed))
}

fn mend_quotes(text: &str) -> Option<Mended> {
    let quote = text.chars().find(|c| is_quote(*c))?;
    let text: String = text.chars().filter(|c| !is_quote(*c)).collect();
    Some(Mended::new(format!("remove {} inside the value", named(quote)), text))
}

fn mend_lookalikes(text: &str) -> Option<Mended> {
    let plain_of = |c: char| {
        LOOKALIKES
            .iter()
            .find(|(like, _)| like.contains(c))
            .map(|(_, plain)| *plain)
    };
    let (found, plain) = text.chars().find_map(|c| Some((c, plain_of(c)?)))?;
    let mended: String = text
        .chars()
        .map(|c| plain_of(c).map_or_else(|| c.to_string(), str::to_owned))
        .collect();
    Some(Mended::new(format!("replace {} by {plain}", named(found)), mended))
}

fn mend_invisible(text: &str) -> Option<Mended> {
    let found = text.chars().find(|c| INVISIBLE.contains(c))?;
    let text: String = text.chars().filter(|c| !INVISIBLE.contains(c)).collect();
    Some(Mended::new(
        format!("remove the invisible character U+{:04X}", u32::from(found)),
        text,
    ))
}

/// `\*`, as Markdown and shells have it.
fn mend_backslashes(text: &str) -> Option<Mended> {
    let has_escape = text.contains("\\*") || text.contains("\\ ");
    has_escape.then(|| Mended::new("remove the backslashes", text.replace('\\', "")))
}

/// Names a character, with its code if it is not ASCII.
fn named(c: char) -> String {
    let kind = match c {
        _ if is_quote(c) => "the quote ",
        _ if LOOKALIKES[0].0.contains(c) => "the dash ",
        _ => "",
    };
    if c.is_ascii() {
        format!("{kind}{c}")
    } else {
        format!("{kind}{c} (U+{:04X})", u32::from(c))
    }
}
