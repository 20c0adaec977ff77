//! The last lines of the log, in memory while the screen has the terminal. They are shown on the screen, and printed at
//! the end after a failure.

use std::{
    collections::VecDeque,
    io::{self, IsTerminal, Write, stderr},
    sync::{Arc, Mutex, PoisonError},
};

use tracing_subscriber::fmt::MakeWriter;

/// Maximum number of lines: some screens full.
const LINES_MAX: usize = 200;

/// The beginning of lines about lists and watches, which have no place on a screen: they report the start and each
/// reopened watch.
const LISTS: &str = " level=info target=cronwheel::controller::watch_task ";

/// The last lines. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct LogTail {
    lines: Arc<Mutex<VecDeque<String>>>,
    is_copied: bool,
}

impl LogTail {
    /// Creates an empty log. If standard error is not a terminal, all lines are written there too.
    pub(super) fn new() -> LogTail {
        LogTail {
            lines: Arc::default(),
            is_copied: !stderr().is_terminal(),
        }
    }

    /// Returns the last lines, at most this number, the newest last.
    pub(super) fn last(&self, n_lines: usize) -> Vec<String> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines
            .iter()
            .skip(lines.len().saturating_sub(n_lines))
            .cloned()
            .collect()
    }
}

/// Adds the text of one event.
impl Write for LogTail {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        let n_bytes = text.len();
        if self.is_copied {
            stderr().write_all(text)?;
        }
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(text);
        for line in text.lines().filter(|line| !line.contains(LISTS)) {
            if lines.len() == LINES_MAX {
                lines.pop_front();
            }
            lines.push_back(line.to_owned());
        }
        Ok(n_bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for LogTail {
    type Writer = LogTail;

    fn make_writer(&self) -> LogTail {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_tail_keeps_a_bounded_number_of_lines() {
        let mut tail = LogTail {
            is_copied: false,
            ..LogTail::new()
        };
        assert_eq!(tail.last(2), [""; 0]);
        let list = "time=2026-05-05T10:00:01Z level=info target=cronwheel::controller::watch_task msg=\"list begun\"\n";
        tail.write_all(list.as_bytes()).unwrap();
        assert_eq!(tail.last(2), [""; 0], "no lists");
        for number in 0..=LINES_MAX {
            tail.write_all(format!("line {number}\n").as_bytes()).unwrap();
        }
        assert_eq!(tail.last(usize::MAX).len(), LINES_MAX);
        assert_eq!(tail.last(usize::MAX)[0], "line 1");
        assert_eq!(tail.last(2), ["line 199", "line 200"]);
    }
}
