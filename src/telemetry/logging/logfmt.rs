//! Text lines in logfmt: `time=… level=info target=… msg="…" key=value`.

use std::{error::Error, fmt, fmt::Write as _};

use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
};
use tracing_subscriber::{
    field::RecordFields,
    fmt::{
        FmtContext, FormatEvent, FormatFields, FormattedFields,
        format::Writer,
        time::{FormatTime, SystemTime},
    },
    registry::{LookupSpan, Scope},
};

/// Formats events, and the fields of spans.
pub(super) struct Logfmt;

impl<S> FormatEvent<S, Logfmt> for Logfmt
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, Logfmt>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut pairs = Pairs::default();
        event.record(&mut pairs);
        let metadata = event.metadata();
        writer.write_str("time=")?;
        SystemTime.format_time(&mut writer)?;
        let level = metadata.level().as_str().to_ascii_lowercase();
        let target = metadata.target();
        write!(writer, " level={level} target={target} msg={}", value(&pairs.message))?;
        let spans = context.event_scope().map(Scope::from_root);
        for span in spans.into_iter().flatten() {
            let extensions = span.extensions();
            if let Some(fields) = extensions
                .get::<FormattedFields<Logfmt>>()
                .filter(|fields| !fields.is_empty())
            {
                write!(writer, " {fields}")?;
            }
        }
        writeln!(writer, "{}", pairs.text)
    }
}

impl<'a> FormatFields<'a> for Logfmt {
    fn format_fields<R: RecordFields>(&self, mut writer: Writer<'a>, fields: R) -> fmt::Result {
        let mut pairs = Pairs::default();
        fields.record(&mut pairs);
        writer.write_str(pairs.text.trim_start())
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

    fn record_error(&mut self, field: &Field, value: &(dyn Error + 'static)) {
        let (mut text, mut source) = (value.to_string(), value.source());
        while let Some(error) = source {
            text.extend([": ", &error.to_string()]);
            source = error.source();
        }
        self.add(field, &text);
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
