//! Text lines in logfmt: `time=… level=info target=… msg="…" key=value`. cronwheel opens no spans, so a line has only the
//! fields of its event.

use std::{fmt, fmt::Write as _};

use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{
    fmt::{
        FmtContext, FormatEvent, FormatFields,
        format::Writer,
        time::{FormatTime, SystemTime},
    },
    registry::LookupSpan,
};

/// Formats events.
pub(super) struct Logfmt;

impl<S, N> FormatEvent<S, N> for Logfmt
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut pairs = Pairs::default();
        event.record(&mut pairs);
        let metadata = event.metadata();
        writer.write_str("time=")?;
        SystemTime.format_time(&mut writer)?;
        let level = metadata.level().as_str().to_ascii_lowercase();
        let target = metadata.target();
        let message = value(&pairs.message);
        writeln!(writer, " level={level} target={target} msg={message}{}", pairs.text)
    }
}

/// The message, and the other fields with a leading space each.
#[derive(Default)]
struct Pairs {
    message: String,
    text: String,
}

impl Pairs {
    fn add(&mut self, field: &Field, text: &str) {
        match field.name() {
            "message" => text.clone_into(&mut self.message),
            // Where the `log` crate was called.
            name if name.starts_with("log.") => {}
            name => {
                let written = write!(self.text, " {name}={}", value(text));
                debug_assert!(written.is_ok(), "writing to a string does not fail");
            }
        }
    }
}

impl Visit for Pairs {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.add(field, &format!("{value:?}"));
    }
}

/// Quotes a value unless it is a single word. Control characters in it are escaped later, with the whole line.
fn value(text: &str) -> String {
    let needs_quotes = |c: char| c.is_whitespace() || c.is_control() || matches!(c, '"' | '=' | '\\');
    if !text.is_empty() && !text.contains(needs_quotes) {
        return text.to_owned();
    }
    format!("\"{}\"", text.replace('\\', r"\\").replace('"', "\\\""))
}
