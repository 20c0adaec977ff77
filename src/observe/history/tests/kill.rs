//! Processes of their own: one that is killed while it writes, and one that holds the file.

use std::{
    env,
    io::{BufRead, BufReader, Lines, Read, Write},
    process::{Child, ChildStdout, Command, Stdio},
};

use rusqlite::Connection;

use super::*;

/// The variable that makes [`process`] do something, and the one with the path of the file.
const ROLE: &str = "CRONWHEEL_HISTORY_TEST_ROLE";
const FILE: &str = "CRONWHEEL_HISTORY_TEST_FILE";
/// Runs between two answers of the process that writes.
const STEP: u64 = 700;

/// This test as another process, with a role.
struct Process {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Process {
    fn start(role: &str, folder: &Folder) -> Process {
        let mut child = Command::new(env::current_exe().unwrap())
            .args(["observe::history::tests::kill::process", "--exact", "--nocapture"])
            .env(ROLE, role)
            .env(FILE, folder.file())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Process { child, lines }
    }

    /// The next number that the process says.
    fn hear(&mut self) -> u64 {
        loop {
            let line = self.lines.next().expect("the process goes on").unwrap();
            // The test harness writes to the same line.
            if let Some((_, number)) = line.split_once("history: ") {
                return number.parse().unwrap();
            }
        }
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

fn say(number: u64) {
    writeln!(std::io::stdout(), "history: {number}").unwrap();
}

fn slot(number: u64) -> Timestamp {
    now() + SignedDuration::from_secs(i64::try_from(number).unwrap())
}

/// What another process does; nothing in the process of the tests.
#[test]
fn process() {
    let (Ok(role), Ok(file)) = (env::var(ROLE), env::var(FILE)) else {
        return;
    };
    let history = History::open(Path::new(&file), &cluster(), Limits::default(), now());
    assert_eq!(history.banners(), []);
    if role == "hold" {
        say(0);
        // Until the other end of the pipe closes.
        std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
        return;
    }
    for number in 0.. {
        let written = observation(slot(0), slot(number));
        history.record(vec![run(number % 50, slot(number)), written], now());
        if number % STEP == STEP - 1 {
            assert!(history.flush());
            say(number);
        }
    }
}

#[test]
fn a_killed_process_loses_only_what_it_has_not_written() {
    for n_answers in [1, 3, 4] {
        let folder = Folder::new("kill");
        let mut process = Process::start("write", &folder);
        let last = (0..n_answers).map(|_| process.hear()).last().unwrap();
        process.kill();
        assert!(
            location::with_suffix(&folder.file(), "-wal").exists(),
            "it was killed, not closed"
        );

        let history = folder.open();
        assert_eq!(history.banners(), []);
        let mut runs: Vec<u64> = Vec::new();
        let mut observed = None;
        for record in load(&history) {
            match record {
                Record::Run { run, .. } => {
                    let number = run.slot.unwrap().as_second() - now().as_second();
                    runs.push(number.unsigned_abs());
                }
                Record::Observation(Observation { to, .. }) => observed = Some(to),
                Record::Change(_) | Record::Freeze(_) => panic!("no change was recorded"),
            }
        }
        runs.sort_unstable();
        let n_runs = u64::try_from(runs.len()).unwrap();
        assert_eq!(
            runs,
            (0..n_runs).collect::<Vec<_>>(),
            "no run is missing between others"
        );
        assert!(n_runs > last, "{n_runs} runs, and {last} was written");
        assert!(observed.unwrap() >= slot(last));
        assert!(
            observed.unwrap() < slot(n_runs),
            "the period claims runs that are not stored"
        );
        history.close();
        let connection = Connection::open(folder.file()).unwrap();
        let verdict: String = connection
            .query_one("PRAGMA integrity_check", (), |row| row.get(0))
            .unwrap();
        assert_eq!(verdict, "ok");
    }
}

#[test]
fn the_lock_ends_with_the_process_that_holds_it() {
    let folder = Folder::new("hold");
    let mut process = Process::start("hold", &folder);
    process.hear();
    let history = folder.open();
    history.record(vec![run(1, now())], now());
    assert!(history.flush());
    let sentence = &history.banners()[0].sentence;
    assert!(sentence.contains("another process has it open"), "{sentence}");
    assert!(sentence.contains(&folder.file().display().to_string()), "{sentence}");
    process.kill();
    assert!(history.flush());
    assert_eq!(history.banners(), []);
    assert_eq!(load(&history), [run(1, now())]);
}
