//! The log of one test.

use std::{
    io,
    sync::{Arc, LazyLock, Mutex},
};

use tracing::{
    Dispatch,
    subscriber::{DefaultGuard, NoSubscriber, set_default},
};

/// With a single subscriber in the process, `tracing` remembers for all threads whether the first thread that reached a
/// log line has it. With two, it asks every thread.
static SECOND: LazyLock<Dispatch> = LazyLock::new(|| Dispatch::new(NoSubscriber::default()));

/// Captures what this thread logs, until it is dropped.
pub(in crate::controller) struct CapturedLog {
    text: Text,
    _guard: DefaultGuard,
}

impl CapturedLog {
    pub(in crate::controller) fn begin() -> CapturedLog {
        LazyLock::force(&SECOND);
        let text = Text::default();
        let writer = text.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_ansi(false)
            .with_writer(move || writer.clone())
            .finish();
        CapturedLog {
            text,
            _guard: set_default(subscriber),
        }
    }

    /// Returns what was logged since the last call.
    pub(in crate::controller) fn take(&self) -> String {
        String::from_utf8(std::mem::take(&mut self.text.0.lock().unwrap())).unwrap()
    }

    /// Returns the number of lines that contain a text.
    pub(in crate::controller) fn n_lines_with(&self, text: &str) -> usize {
        self.take().lines().filter(|line| line.contains(text)).count()
    }
}

#[derive(Clone, Default)]
struct Text(Arc<Mutex<Vec<u8>>>);

impl io::Write for Text {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
