//! Shortens a line of the log for a screen.

use jiff::Timestamp;

/// Returns the time, the level, the message and the fields of a line; the whole line if it is another text.
pub(super) fn log_line(line: &str) -> String {
    shortened(line).unwrap_or_else(|| line.to_owned())
}

fn shortened(line: &str) -> Option<String> {
    let (time, rest) = line.strip_prefix("time=")?.split_once(" level=")?;
    let (level, rest) = rest.split_once(" target=")?;
    let (_, rest) = rest.split_once(" msg=")?;
    let (message, fields) = match rest.strip_prefix('"') {
        Some(quoted) => quoted.split_at_checked(closing_quote(quoted)?)?,
        None => rest.split_at_checked(rest.find(' ').unwrap_or(rest.len()))?,
    };
    let message = message.replace("\\\"", "\"").replace(r"\\", "\\");
    let fields = fields.trim_start_matches('"');
    let time: Timestamp = time.parse().ok()?;
    let time = time.strftime("%H:%M:%S");
    Some(format!("{time} {:<5} {message}{fields}", level.to_ascii_uppercase()))
}

/// Returns the place of the first quote that is not escaped.
fn closing_quote(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    text.find(|c: char| {
        let is_closing = c == '"' && !is_escaped;
        is_escaped = c == '\\' && !is_escaped;
        is_closing
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_lines_are_shortened() {
        for (line, expected) in [
            (
                r#"time=2026-05-05T10:00:01.743938Z level=warn target=cronwheel::watch msg="the watch failed" resource=jobs error="\"a\" b""#,
                r#"10:00:01 WARN  the watch failed resource=jobs error="\"a\" b""#,
            ),
            (
                r#"time=2026-05-05T10:00:01Z level=info target=cronwheel msg="\"C:\\\" is gone""#,
                r#"10:00:01 INFO  "C:\" is gone"#,
            ),
            (
                "time=2026-05-05T10:00:01Z level=info target=cronwheel msg=ended n=1",
                "10:00:01 INFO  ended n=1",
            ),
            ("thread 'main' panicked", "thread 'main' panicked"),
            (
                "time=soon level=info target=a msg=b",
                "time=soon level=info target=a msg=b",
            ),
        ] {
            assert_eq!(log_line(line), expected);
        }
    }
}
