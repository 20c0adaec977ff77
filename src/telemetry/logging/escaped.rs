//! Escapes control characters, so that text of tenants can neither forge a log line nor drive a terminal.

use std::{
    borrow::Cow,
    fmt::Write as _,
    io::{self, Write},
};

use tracing::Metadata;
use tracing_subscriber::fmt::MakeWriter;

/// Replaces control characters by escape sequences that JSON and people understand.
pub fn escaped(text: &str) -> Cow<'_, str> {
    if !text.contains(char::is_control) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 64);
    for c in text.chars() {
        match c {
            '\n' => escaped.push_str("\\n"),
            '\r' => escaped.push_str("\\r"),
            '\t' => escaped.push_str("\\t"),
            c if c.is_control() => {
                let written = write!(escaped, "\\u{:04x}", u32::from(c));
                debug_assert!(written.is_ok(), "writing to a string does not fail");
            }
            c => escaped.push(c),
        }
    }
    Cow::Owned(escaped)
}

/// Makes writers that escape the control characters of each log line.
pub(super) struct Escaped<M>(pub(super) M);

impl<'a, M: MakeWriter<'a>> MakeWriter<'a> for Escaped<M> {
    type Writer = EscapedLine<M::Writer>;

    fn make_writer(&'a self) -> Self::Writer {
        EscapedLine(self.0.make_writer())
    }

    fn make_writer_for(&'a self, metadata: &Metadata<'_>) -> Self::Writer {
        EscapedLine(self.0.make_writer_for(metadata))
    }
}

/// Writes one log line, which `tracing_subscriber` passes as a whole.
pub(super) struct EscapedLine<W>(W);

impl<W: Write> Write for EscapedLine<W> {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(line);
        let (text, end) = match text.strip_suffix('\n') {
            Some(text) => (text, "\n"),
            None => (&*text, ""),
        };
        let mut escaped = escaped(text).into_owned();
        escaped.push_str(end);
        self.0.write_all(escaped.as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}
