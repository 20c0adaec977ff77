//! One line on standard error that says how far a comparison has come.

use std::io::{self, IsTerminal as _, Write as _};

use jiff::Timestamp;

/// See the module. Where standard error is a file, each phase has a line instead.
#[derive(Debug)]
pub(super) struct Progress {
    is_terminal: bool,
    turn: String,
    last_phase: String,
}

impl Progress {
    pub(super) fn new() -> Progress {
        Progress {
            is_terminal: io::stderr().is_terminal(),
            turn: String::new(),
            last_phase: String::new(),
        }
    }

    /// Begins a turn; `number` counts from 1.
    pub(super) fn turn(&mut self, number: usize, n_turns: usize, controller: &str) {
        self.turn = format!("turn {number} of {n_turns}, {controller}");
        self.last_phase.clear();
    }

    pub(super) fn say(&mut self, phase: &str) {
        self.write(phase, "");
    }

    /// A phase with a known end.
    pub(super) fn say_until(&mut self, phase: &str, end: Timestamp) {
        let left = end.duration_since(Timestamp::now()).as_secs().max(0);
        self.write(phase, &format!(", {left} s left"));
    }

    /// Ends the line, so that other output does not run into it.
    pub(super) fn end(&self) {
        if self.is_terminal {
            eprintln!();
        }
    }

    fn write(&mut self, phase: &str, rest: &str) {
        if self.is_terminal {
            eprint!("\r\x1b[2Kloadtest: {}: {phase}{rest}", self.turn);
            // What cannot be shown is not worth ending for.
            let _ = io::stderr().flush();
        } else if phase != self.last_phase {
            eprintln!("loadtest: {}: {phase}{rest}", self.turn);
        }
        phase.clone_into(&mut self.last_phase);
    }
}
