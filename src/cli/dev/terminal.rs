//! The screen of a terminal, redrawn once a second and restored at the end.
//!
//! It uses plain escape sequences without a library: no key is read, Ctrl-C is a signal, and the screen consists of
//! lines of text, which every terminal can show. The system provides the size and controls the echo of keys.

use std::{
    io::{self, IsTerminal, Write},
    sync::{Arc, Mutex, PoisonError},
};

use rustix::{
    process::getpgrp,
    termios::{
        Action, LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcflow, tcgetattr, tcgetpgrp, tcgetwinsize,
        tcsetattr,
    },
};

use super::screen::{Line, Size};

/// Selects the alternate screen and hides the cursor.
const ENTER: &str = "\x1b[?1049h\x1b[?25l";
const LEAVE: &str = "\x1b[?25h\x1b[?1049l";
const HOME: &str = "\x1b[H";
const CLEAR_REST_OF_LINE: &str = "\x1b[K";
const CLEAR_BELOW: &str = "\x1b[J";
const BOLD: &str = "\x1b[1m";
const NORMAL: &str = "\x1b[0m";

/// The value of `_POSIX_VDISABLE` on Linux: no key has this meaning.
const NO_KEY: u8 = 0;

/// The size if the terminal does not report one.
const USUAL_SIZE: Size = Size { columns: 80, rows: 24 };

/// A terminal that shows the screen until it is closed. Clones share it; dropping the last one closes it.
#[derive(Clone)]
pub(super) struct Terminal {
    open: Arc<Mutex<Option<Open>>>,
}

struct Open {
    /// The former settings of the input, if it is a terminal.
    former: Option<Termios>,
}

/// Whether the output is a terminal in the foreground that can show a screen.
pub(super) fn can_draw() -> bool {
    io::stdout().is_terminal()
        && std::env::var_os("TERM").is_some_and(|kind| kind != "dumb")
        && tcgetpgrp(io::stdout()).is_ok_and(|group| group == getpgrp())
}

impl Terminal {
    /// Begins the screen.
    pub(super) fn open() -> io::Result<Terminal> {
        let open = Open { former: silence() };
        write(ENTER)?;
        Ok(Terminal {
            open: Arc::new(Mutex::new(Some(open))),
        })
    }

    pub(super) fn size() -> Size {
        let size = tcgetwinsize(io::stdout()).ok();
        size.map(|size| Size {
            columns: size.ws_col.into(),
            rows: size.ws_row.into(),
        })
        .filter(|size| size.columns > 0 && size.rows > 0)
        .unwrap_or(USUAL_SIZE)
    }

    /// Redraws the screen; does nothing once it is closed.
    pub(super) fn draw(&self, lines: &[Line]) -> io::Result<()> {
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.is_some() {
            write(&frame(lines))?;
        }
        Ok(())
    }

    /// Resumes an output that the user stopped with Ctrl-S: a blocked write holds the lock. Linux resumes only an
    /// output that this process stopped, so it is stopped first.
    pub(super) fn release() {
        for action in [Action::OOff, Action::OOn] {
            let _is_none_any_more = tcflow(io::stdout(), action);
        }
    }

    /// Restores the terminal.
    pub(super) fn close(&self) {
        *self.open.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        // A closed terminal needs no restoration.
        let _written = write(LEAVE);
        if let Some(former) = &self.former {
            let _set = tcsetattr(io::stdin(), OptionalActions::Flush, former);
        }
    }
}

fn write(text: &str) -> io::Result<()> {
    let mut output = io::stdout().lock();
    output.write_all(text.as_bytes())?;
    output.flush()
}

/// Turns off the echo of keys, which would disturb the screen, and Ctrl-Z, which would leave the screen as it is and
/// `kubectl` without an answer. Returns the former settings.
fn silence() -> Option<Termios> {
    let input = io::stdin();
    let former = tcgetattr(&input).ok()?;
    let mut silent = former.clone();
    silent.local_modes -= LocalModes::ECHO;
    silent.special_codes[SpecialCodeIndex::VSUSP] = NO_KEY;
    tcsetattr(&input, OptionalActions::Now, &silent).ok()?;
    Some(former)
}

/// Joins all lines into one text, so that the screen is never half drawn.
fn frame(lines: &[Line]) -> String {
    let mut text = HOME.to_owned();
    for (position, line) in lines.iter().enumerate() {
        if position > 0 {
            text += "\r\n";
        }
        if line.is_title {
            text.extend([BOLD, &line.text, NORMAL]);
        } else {
            text += &line.text;
        }
        text += CLEAR_REST_OF_LINE;
    }
    text + CLEAR_BELOW
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_overwrites_the_screen() {
        let line = |text: &str, is_title| Line {
            text: text.to_owned(),
            is_title,
        };
        let text = frame(&[line("a", true), line("", false), line("b", false)]);
        assert_eq!(text, "\x1b[H\x1b[1ma\x1b[0m\x1b[K\r\n\x1b[K\r\nb\x1b[K\x1b[J");
        assert_eq!(frame(&[]), "\x1b[H\x1b[J");
    }
}
