//! Reads the files of `-f`.

use std::{
    fs,
    io::{self, Read},
    path::Path,
};

use super::objects::{self, Objects, Origin};
use crate::cli::error::CommandError;

/// The files of a directory that are read, as by `kubectl`.
const EXTENSIONS: [&str; 3] = ["json", "yaml", "yml"];

pub(super) fn is_named_as_file(path: &str) -> bool {
    path.rsplit_once('.')
        .is_some_and(|(_, extension)| EXTENSIONS.contains(&extension))
}

/// Parses files, the files of directories, and `-` for standard input.
pub(super) fn read_all(files: &[String], mut input: impl Read) -> Result<Objects, CommandError> {
    let mut all = Objects::new(Origin::Files);
    for file in files {
        if file == "-" {
            let text = io::read_to_string(&mut input).map_err(|error| cannot_read(file, error))?;
            objects::read("standard input", &text, &mut all)?;
            continue;
        }
        for path in paths(file).map_err(|error| cannot_read(file, error))? {
            let text = fs::read_to_string(&path).map_err(|error| cannot_read(&path, error))?;
            objects::read(&path, &text, &mut all)?;
        }
    }
    Ok(all)
}

/// Returns the file, or the files of a directory in the order of their names.
fn paths(file: &str) -> io::Result<Vec<String>> {
    if !Path::new(file).is_dir() {
        return Ok(vec![file.to_owned()]);
    }
    let mut paths = Vec::new();
    for entry in Path::new(file).read_dir()? {
        let path = entry?.path();
        let name = path.to_string_lossy();
        if path.is_file() && is_named_as_file(&name) {
            paths.push(name.into_owned());
        }
    }
    paths.sort();
    Ok(paths)
}

fn cannot_read(file: &str, error: io::Error) -> CommandError {
    // Windows PowerShell redirects output as UTF-16.
    if error.kind() == io::ErrorKind::InvalidData {
        return format!("-f {file}: not UTF-8; save it as UTF-8").into();
    }
    let fix = "give a file or directory of CronJobs and Jobs, or - for standard input";
    CommandError::caused(format!("-f {file}: cannot be read; {fix}"), error)
}
