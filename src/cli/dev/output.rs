//! Standard output and standard error, written by a thread of its own.
//!
//! A terminal that its user stops with Ctrl-S, and a pipe that nobody reads, let writes wait for ever. No other thread
//! waits for them, so that the controller goes on and the process ends when it is told to.

use std::{
    io::{self, Write, stderr, stdout},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread,
    time::Duration,
};

use tokio::{
    sync::{Notify, oneshot},
    time::timeout,
};
use tracing_subscriber::fmt::MakeWriter;

/// Maximum number of texts that wait. Further ones are left out.
const WAITING_MAX: usize = 10_000;

/// The time that the end waits for the last texts.
const END_WAIT_MAX: Duration = Duration::from_secs(2);

enum Text {
    Line(String),
    Log(Box<[u8]>),
    /// All texts before it are written.
    End(oneshot::Sender<()>),
}

/// Takes texts. Clones share the thread. As a writer, it takes lines of the log.
#[derive(Clone, Debug)]
pub(super) struct Output {
    texts: SyncSender<Text>,
    n_left_out: Arc<AtomicU64>,
}

impl Output {
    /// Starts the thread. `is_gone` is notified when standard output is closed.
    pub(super) fn begin(is_gone: Arc<Notify>) -> io::Result<Output> {
        let (texts, received) = sync_channel(WAITING_MAX);
        let n_left_out = Arc::<AtomicU64>::default();
        let output = Output {
            texts,
            n_left_out: Arc::clone(&n_left_out),
        };
        let write = move || write_all(&received, &n_left_out, &is_gone, (stdout(), stderr()));
        thread::Builder::new().name("output".to_owned()).spawn(write)?;
        Ok(output)
    }

    /// Returns an output without a thread, and the lines that it takes.
    #[cfg(test)]
    pub(super) fn captured() -> (Output, impl FnOnce() -> Vec<String>) {
        let (texts, received) = sync_channel(WAITING_MAX);
        let output = Output {
            texts,
            n_left_out: Arc::default(),
        };
        let line = |text| match text {
            Text::Line(line) => Some(line),
            Text::Log(_) | Text::End(_) => None,
        };
        (output, move || received.try_iter().filter_map(line).collect())
    }

    /// Writes a line to standard output.
    pub(super) fn line(&self, line: String) {
        self.send(Text::Line(line));
    }

    /// Writes the last line. Waits until everything is written, unless nobody reads it.
    pub(super) async fn end(&self, line: String) {
        self.line(line);
        let (written, is_written) = oneshot::channel();
        self.send(Text::End(written));
        // What nobody reads is lost.
        let _ = timeout(END_WAIT_MAX, is_written).await;
    }

    fn send(&self, text: Text) {
        if self.texts.try_send(text).is_err() {
            self.n_left_out.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Takes one event of the log.
impl Write for Output {
    fn write(&mut self, text: &[u8]) -> io::Result<usize> {
        self.send(Text::Log(text.into()));
        Ok(text.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Output {
    type Writer = Output;

    fn make_writer(&self) -> Output {
        self.clone()
    }
}

fn write_all(
    texts: &Receiver<Text>,
    n_left_out: &AtomicU64,
    is_gone: &Notify,
    (mut lines, mut log): (impl Write, impl Write),
) {
    for text in texts {
        match text {
            Text::Line(line) => {
                if writeln!(lines, "{line}").and_then(|()| lines.flush()).is_err() {
                    is_gone.notify_one();
                }
            }
            // A log that nobody can read is no reason to end.
            Text::Log(event) => drop(log.write_all(&event)),
            Text::End(written) => drop(written.send(())),
        }
        let n_left_out = n_left_out.swap(0, Ordering::Relaxed);
        if n_left_out > 0 {
            drop(writeln!(
                log,
                "cronwheel: {n_left_out} lines were left out, because nobody read the former ones in time"
            ));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the thread's function over these texts. Returns what it wrote, and whether it reported a closed output.
    fn written(texts: Vec<Text>, n_left_out: u64, lines: &mut impl Write) -> (String, bool) {
        let (sender, received) = sync_channel(WAITING_MAX);
        for text in texts {
            sender.send(text).unwrap();
        }
        drop(sender);
        let (is_gone, mut log) = (Notify::new(), Vec::new());
        write_all(&received, &AtomicU64::new(n_left_out), &is_gone, (lines, &mut log));
        let is_gone = futures::FutureExt::now_or_never(is_gone.notified()).is_some();
        (String::from_utf8(log).unwrap(), is_gone)
    }

    #[test]
    fn lines_and_log_are_separate() {
        let mut lines = Vec::new();
        let texts = vec![Text::Log(b"log\n".as_slice().into()), Text::Line("line".to_owned())];
        assert_eq!(written(texts, 0, &mut lines), ("log\n".to_owned(), false));
        assert_eq!(lines, b"line\n");
    }

    #[test]
    fn left_out_lines_are_counted() {
        let (log, _) = written(vec![Text::Line("line".to_owned())], 3, &mut Vec::new());
        assert!(log.contains("3 lines were left out"), "{log}");
    }

    #[test]
    fn a_closed_output_is_reported() {
        struct Closed;
        impl Write for Closed {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let (_, is_gone) = written(vec![Text::Line("line".to_owned())], 0, &mut Closed);
        assert!(is_gone);
    }

    /// Nothing reads the texts, as with a stopped terminal.
    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_an_output_that_does_not_move() {
        let (texts, received) = sync_channel(2);
        let mut output = Output {
            texts,
            n_left_out: Arc::default(),
        };
        for _ in 0..5 {
            output.write_all(b"log\n").unwrap();
        }
        output.end("totals".to_owned()).await;
        assert_eq!(output.n_left_out.load(Ordering::Relaxed), 5);
        drop(received);
    }
}
