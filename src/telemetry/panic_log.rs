//! The panics of the process as lines of the log, instead of texts on standard error that are neither bounded nor escaped.

use std::{
    panic::{self, PanicHookInfo},
    thread,
};

use crate::shard::panics;

/// From this call on, logs each panic that nothing contains as one line. What contains a panic reports it.
pub fn start() {
    panic::set_hook(Box::new(log));
}

fn log(panic: &PanicHookInfo<'_>) {
    if panics::note_contained(panic.location()) {
        return;
    }
    let location = panic.location().map(ToString::to_string).unwrap_or_default();
    let thread = thread::current();
    tracing::error!(
        location,
        thread = thread.name().unwrap_or_default(),
        panic = panics::message(panic.payload()),
        "panicked outside of the handling of one object"
    );
}

#[cfg(test)]
mod tests {
    use std::{
        io,
        panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook},
        sync::{Arc, Mutex},
    };

    use super::*;
    use crate::telemetry::logging::{LogFormat, LogLevel, subscriber};

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

    /// Logs the panics of this thread. The other tests of the process keep their hook.
    fn start_on_this_thread() {
        let (former, this) = (take_hook(), thread::current().id());
        set_hook(Box::new(move |panic| {
            if thread::current().id() == this {
                log(panic);
            } else {
                former(panic);
            }
        }));
    }

    #[test]
    fn a_panic_is_one_escaped_line_unless_it_is_contained() {
        start_on_this_thread();
        let lines = Lines::default();
        let writer = lines.clone();
        let subscriber = subscriber(LogFormat::Json, LogLevel::Error, move || writer.clone());
        let contained: Result<(), _> = tracing::subscriber::with_default(subscriber, || {
            let ended = catch_unwind(AssertUnwindSafe(|| panic!("a fault\nforged \u{1b}[31m")));
            assert!(ended.is_err());
            panics::contain(|| panic!("a contained fault"))
        });
        let message = contained.unwrap_err();
        assert!(
            message.starts_with("a contained fault, at src/telemetry/panic_log.rs:"),
            "{message}"
        );
        let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        assert_eq!(text.lines().count(), 1, "{text}");
        assert!(!text.trim_end().contains(char::is_control), "{text}");
        let line: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(
            (&line["level"], &line["panic"]),
            (&"ERROR".into(), &"a fault\nforged \u{1b}[31m".into())
        );
        let location = line["location"].as_str().unwrap();
        assert!(location.starts_with("src/telemetry/panic_log.rs:"), "{location}");
    }
}
