//! A progress bar on standard error.

use std::io::{self, IsTerminal as _, Write as _};

use jiff::Timestamp;

/// The width of the bar in characters.
const WIDTH: usize = 24;

/// A progress bar. If standard error is not a terminal, each phase gets a line instead.
#[derive(Debug)]
pub(super) struct Progress {
    is_terminal: bool,
    n_turns: usize,
    /// The number of the turn, from 1. 0 before the first turn.
    turn: usize,
    controller: String,
    last_phase: String,
}

impl Progress {
    pub(super) fn new(n_turns: usize) -> Progress {
        Progress {
            is_terminal: io::stderr().is_terminal(),
            n_turns,
            turn: 0,
            controller: String::new(),
            last_phase: String::new(),
        }
    }

    /// Starts a turn. `number` counts from 1.
    pub(super) fn turn(&mut self, number: usize, controller: &str) {
        self.turn = number;
        controller.clone_into(&mut self.controller);
        self.last_phase.clear();
    }

    /// Shows a phase.
    pub(super) fn show(&mut self, phase: &str) {
        self.write(phase, "");
    }

    /// Shows a phase with a known end.
    pub(super) fn show_until(&mut self, phase: &str, end: Timestamp) {
        let left = end.duration_since(Timestamp::now()).as_secs().max(0);
        self.write(phase, &format!(", {left} s left"));
    }

    /// Ends the line, so that other output starts on a new one.
    pub(super) fn end(&self) {
        if self.is_terminal {
            eprintln!();
        }
    }

    fn write(&mut self, phase: &str, rest: &str) {
        let place = format!("turn {} of {}, {}", self.turn, self.n_turns, self.controller);
        if self.is_terminal {
            eprint!("\r\x1b[2K{} {place}: {phase}{rest}", bar(self.turn, self.n_turns));
            // A failure to show progress must not end the measurement.
            let _ = io::stderr().flush();
        } else if phase != self.last_phase {
            eprintln!("loadtest: {place}: {phase}{rest}");
        }
        phase.clone_into(&mut self.last_phase);
    }
}

/// Filled by the completed turns. The running turn counts half.
fn bar(turn: usize, n_turns: usize) -> String {
    let filled = (WIDTH * (2 * turn).saturating_sub(1) / (2 * n_turns).max(1)).min(WIDTH);
    format!("[{}{}]", "#".repeat(filled), "-".repeat(WIDTH - filled))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_grows_from_turn_to_turn() {
        let n_filled = |turn: usize| bar(turn, 12).matches('#').count();
        assert_eq!([0, 1, 6, 12].map(n_filled), [0, 1, 11, 23]);
        assert_eq!(bar(3, 0).len(), WIDTH + 2);
    }
}
