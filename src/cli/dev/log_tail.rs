//! The last lines of the log, kept in memory while the screen has the terminal: they are shown on it, and told in the end
//! where something went wrong.

use std::{
    collections::VecDeque,
    io::{self, IsTerminal, Write, stderr},
    sync::{Arc, Mutex, PoisonError},
};

use tracing_subscriber::fmt::MakeWriter;

/// Lines that are kept: some screens full.
const LINES_MAX: usize = 200;

/// The last lines. Clones are the same.
#[derive(Clone, Debug)]
pub(super) struct LogTail {
    lines: Arc<Mutex<VecDeque<String>>>,
    is_copied: bool,
}

impl LogTail {
    /// An empty one. Where standard error is no terminal, so that it tears no screen, everything goes there too.
    pub(super) fn new() -> LogTail {
        LogTail {
            lines: Arc::default(),
            is_copied: !stderr().is_terminal(),
        }
    }

    /// The last lines, so many at most, the newest last.
    pub(super) fn last(&self, n_lines: usize) -> Vec<String> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines
            .iter()
            .skip(lines.len().saturating_sub(n_lines))
            .cloned()
            .collect()
    }

    /// Everything that is kept.
    pub(super) fn all(&self) -> Vec<String> {
        self.last(LINES_MAX)
    }
}

/// Takes the text of one event, which comes whole.
impl Write for LogTail {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        if self.is_copied {
            stderr().write_all(text)?;
        }
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        for line in String::from_utf8_lossy(text).lines() {
            if lines.len() == LINES_MAX {
                lines.pop_front();
            }
            lines.push_back(line.to_owned());
        }
        Ok(text.len())
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
    fn the_last_lines_are_kept_and_no_more() {
        let mut tail = LogTail {
            is_copied: false,
            ..LogTail::new()
        };
        assert_eq!(tail.last(2), [""; 0]);
        for number in 0..=LINES_MAX {
            tail.write_all(format!("line {number}\n").as_bytes()).unwrap();
        }
        assert_eq!(tail.all().len(), LINES_MAX);
        assert_eq!(tail.all()[0], "line 1");
        assert_eq!(tail.last(2), ["line 199", "line 200"]);
    }
}
