//! Lines, a progress bar and a question on the terminal of a person; without a terminal, lines alone.

use std::io::{BufRead, Write};

use crate::cli::error::CommandError;

/// Width of the bar in characters.
const BAR_WIDTH: usize = 30;

/// Clears the line of the cursor.
const CLEAR: &str = "\r\x1b[K";

/// Where a person reads and answers.
pub struct Console<'a, W> {
    output: W,
    is_terminal: bool,
    answers: Option<Box<dyn BufRead + 'a>>,
    /// The bar that stands on the last line.
    shown: String,
}

impl<'a, W: Write> Console<'a, W> {
    /// A console without answers. On a terminal, it shows a progress bar.
    pub fn new(output: W, is_terminal: bool) -> Console<'a, W> {
        Console {
            output,
            is_terminal,
            answers: None,
            shown: String::new(),
        }
    }

    /// Takes answers to questions.
    #[must_use]
    pub fn with_answers(self, answers: impl BufRead + 'a) -> Console<'a, W> {
        Console {
            answers: Some(Box::new(answers)),
            ..self
        }
    }

    /// Writes a line above the bar.
    pub(super) fn line(&mut self, text: &str) -> Result<(), CommandError> {
        let bar = std::mem::take(&mut self.shown);
        let clear = if bar.is_empty() { "" } else { CLEAR };
        self.write(&format!("{clear}{text}\n{bar}"))?;
        self.shown = bar;
        Ok(())
    }

    /// Moves the bar.
    pub(super) fn progress(&mut self, n_done: usize, n_all: usize) -> Result<(), CommandError> {
        let bar = bar(n_done, n_all);
        if !self.is_terminal || bar == self.shown {
            return Ok(());
        }
        self.write(&format!("{CLEAR}{bar}"))?;
        self.shown = bar;
        Ok(())
    }

    /// Removes the bar.
    pub(super) fn end_progress(&mut self) -> Result<(), CommandError> {
        if std::mem::take(&mut self.shown).is_empty() {
            return Ok(());
        }
        self.write(CLEAR)
    }

    /// Asks a question. `None` if there is nobody to ask.
    pub(super) fn ask(&mut self, question: &str) -> Result<Option<bool>, CommandError> {
        if self.answers.is_none() {
            return Ok(None);
        }
        self.write(&format!("{question} [y/N] "))?;
        let mut answer = String::new();
        if let Some(answers) = &mut self.answers {
            let read = answers.read_line(&mut answer);
            read.map_err(|error| CommandError::caused("cannot read the answer from standard input", error))?;
        }
        Ok(Some(matches!(answer.trim(), "y" | "Y" | "yes")))
    }

    fn write(&mut self, text: &str) -> Result<(), CommandError> {
        let written = self
            .output
            .write_all(text.as_bytes())
            .and_then(|()| self.output.flush());
        written.map_err(CommandError::Write)
    }
}

/// Formats the bar: `[######      ] 6 of 12`.
fn bar(n_done: usize, n_all: usize) -> String {
    let n_filled = (n_done * BAR_WIDTH)
        .checked_div(n_all)
        .unwrap_or(BAR_WIDTH)
        .min(BAR_WIDTH);
    let (filled, empty) = ("#".repeat(n_filled), " ".repeat(BAR_WIDTH - n_filled));
    format!("[{filled}{empty}] {n_done} of {n_all}")
}
