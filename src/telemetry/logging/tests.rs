//! Tests of hostile text in log values.

use std::{
    error::Error,
    fmt, io,
    sync::{Arc, Mutex},
};

use tracing_subscriber::fmt::MakeWriter;

use super::{LogFormat, LogLevel, subscriber};
use crate::kube_api::objects::classify::error_text;

/// A tenant's text: a forged line, a coloured line, and every other control character.
fn hostile() -> String {
    let controls = (0..=0x9f).filter_map(char::from_u32).filter(|c| c.is_control());
    let forged = "quota=\"\\\n2026-01-01T00:00:00Z ERROR cronwheel: forged\r\n\u{1b}[2J\u{9b}31m";
    forged.chars().chain(controls).chain("ünï€🦀".chars()).collect()
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl io::Write for Lines {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend(text);
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Lines;

    fn make_writer(&'a self) -> Lines {
        self.clone()
    }
}

#[derive(Debug)]
struct Refused {
    source: Option<Box<Refused>>,
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "refused: {}", hostile())
    }
}

impl Error for Refused {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as &dyn Error)
    }
}

/// Logs the hostile text in every way in which this crate logs values, one line each; returns the number of lines.
fn log_hostile_text() -> usize {
    let text = hostile();
    let error = Refused {
        source: Some(Box::new(Refused { source: None })),
    };
    tracing::warn!(message = text, "a field of a text");
    tracing::warn!(%error, "a displayed error");
    tracing::warn!(error = error_text(&error), "the text of a chain");
    tracing::warn!(?text, "a text for debugging");
    tracing::warn!(text, "a text");
    tracing::warn!("{text}");
    tracing::warn!(?error, %text, "an error for debugging");
    7
}

fn logged(format: LogFormat) -> (usize, String) {
    let lines = Lines::default();
    let subscriber = subscriber(format, LogLevel::Info, lines.clone());
    let n_lines = tracing::subscriber::with_default(subscriber, log_hostile_text);
    let text = lines.0.lock().unwrap().clone();
    (n_lines, String::from_utf8(text).unwrap())
}

#[test]
fn control_characters_do_not_reach_the_log() {
    for format in [LogFormat::Text, LogFormat::Json] {
        let (n_lines, text) = logged(format);
        assert_eq!(text.lines().count(), n_lines, "{format:?}: {text:?}");
        for line in text.lines() {
            assert!(!line.contains(char::is_control), "{format:?}: {line:?}");
            assert!(line.contains("ünï€🦀"), "{line:?}");
        }
    }
}

#[test]
fn a_json_line_has_the_original_text() {
    let (_, text) = logged(LogFormat::Json);
    let line: serde_json::Value = serde_json::from_str(text.lines().nth(4).unwrap()).unwrap();
    assert_eq!(line["text"], hostile());
}

/// Splits a line in logfmt into its pairs. Quotes within a value are escaped.
#[track_caller]
fn pairs(line: &str) -> Vec<(&str, String)> {
    let (mut pairs, mut rest) = (Vec::new(), line);
    while !rest.is_empty() {
        let (key, after) = rest.split_once('=').expect(line);
        assert!(!key.is_empty() && !key.contains([' ', '"']), "{key:?} in {line}");
        let (value, after) = if let Some(quoted) = after.strip_prefix('"') {
            let (mut value, mut chars) = (String::new(), quoted.chars());
            loop {
                match chars.next().expect(line) {
                    '\\' => value.extend(['\\', chars.next().expect(line)]),
                    '"' => break (value, chars.as_str()),
                    c => value.push(c),
                }
            }
        } else {
            let (value, after) = after.split_at(after.find(' ').unwrap_or(after.len()));
            assert!(!value.contains(['"', '=']), "{value:?} in {line}");
            (value.to_owned(), after)
        };
        assert!(after.is_empty() || after.starts_with(' '), "{after:?} in {line}");
        pairs.push((key, value));
        rest = after.trim_start();
    }
    pairs
}

#[test]
fn every_text_line_is_logfmt() {
    let (_, text) = logged(LogFormat::Text);
    for line in text.lines() {
        let keys: Vec<&str> = pairs(line).into_iter().map(|(key, _)| key).collect();
        assert_eq!(keys[..4], ["time", "level", "target", "msg"], "{line}");
    }
}

#[test]
fn logfmt_values_are_quoted_if_needed() {
    let lines = Lines::default();
    let subscriber = subscriber(LogFormat::Text, LogLevel::Info, lines.clone());
    tracing::subscriber::with_default(subscriber, || {
        let error = error_text(&io::Error::other("reset by peer"));
        tracing::warn!(error, resource = "jobs", empty = "", names = ?["a"], "the watch failed");
        tracing::info!("ended");
    });
    let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
    let without_time: Vec<&str> = text.lines().map(|line| line.split_once(' ').unwrap().1).collect();
    assert_eq!(
        without_time,
        [
            r#"level=warn target=cronwheel::telemetry::logging::tests msg="the watch failed" error="reset by peer" resource=jobs empty="" names="[\"a\"]""#,
            "level=info target=cronwheel::telemetry::logging::tests msg=ended",
        ]
    );
}
