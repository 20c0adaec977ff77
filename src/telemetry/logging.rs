//! The log: fixed messages, values as fields, to standard error.
//!
//! Values can contain text of API servers, webhooks and tenants. [`escaped`] replaces their control characters.

mod escaped;
mod logfmt;

use std::io::stderr;

use clap::ValueEnum;
use tracing::Subscriber;
use tracing_subscriber::{EnvFilter, fmt::MakeWriter, util::SubscriberInitExt};

pub use self::escaped::escaped;
use self::{escaped::Escaped, logfmt::Logfmt};

/// How a line looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Text in logfmt: key=value pairs
    #[default]
    Text,
    /// One JSON object per line
    Json,
}

/// Which lines there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogLevel {
    /// An operator must act
    Error,
    /// Works, but deserves a look
    Warn,
    /// Start, stop, lists, leadership
    #[default]
    Info,
    /// Single objects
    Debug,
    /// Everything
    Trace,
}

/// Starts the log, to standard error. A second call does nothing.
pub fn start(format: LogFormat, level: LogLevel) {
    start_to(format, level, stderr);
}

/// Starts the log with another writer.
pub(crate) fn start_to<W>(format: LogFormat, level: LogLevel, writer: W)
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    // A log exists already in tests, which run in one process.
    drop(subscriber(format, level, writer).try_init());
}

pub(super) fn subscriber<W>(format: LogFormat, level: LogLevel, writer: W) -> Box<dyn Subscriber + Send + Sync>
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    // The client logs every failed request as an error. cronwheel counts failures and logs their consequences itself.
    let quiet = if level == LogLevel::Error { "error" } else { "warn" };
    let level = level.to_possible_value().expect("no level is skipped");
    let filter = EnvFilter::new(format!("{quiet},kube_client=off,cronwheel={}", level.get_name()));
    let lines = tracing_subscriber::fmt()
        .with_env_filter(filter)
        // Colours are control characters, which cannot be distinguished from those of a tenant.
        .with_ansi(false)
        .with_writer(Escaped(writer));
    match format {
        LogFormat::Text => Box::new(lines.event_format(Logfmt).finish()),
        LogFormat::Json => Box::new(lines.json().flatten_event(true).finish()),
    }
}

#[cfg(test)]
mod tests;
