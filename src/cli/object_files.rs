//! Reads the files of `-f`, of `explain` and `next`.

use std::{
    fs,
    io::{self, Read},
    path::Path,
};

use crate::{
    cli::error::CommandError,
    explain::objects::{self, Input, Objects, Origin},
};

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
            let mut bytes = Vec::new();
            input
                .read_to_end(&mut bytes)
                .map_err(|error| cannot_read(file, error))?;
            take(file, "standard input", bytes, &mut all);
            continue;
        }
        let is_folder = Path::new(file).is_dir();
        for path in paths(file).map_err(|error| cannot_read(file, error))? {
            match fs::read(&path) {
                Ok(bytes) if is_folder => take_of_folder(&path, bytes, &mut all),
                Ok(bytes) => take(&path, &path, bytes, &mut all),
                Err(error) if is_folder => all.broken.push(format!("{path}: cannot be read: {error}")),
                Err(error) => return Err(cannot_read(&path, error)),
            }
        }
    }
    Ok(all)
}

/// The names of files in messages.
pub(super) fn names_of(files: &[String]) -> String {
    let names: Vec<&str> = files
        .iter()
        .map(|file| if file == "-" { "standard input" } else { file })
        .collect();
    names.join(", ")
}

fn take(file: &str, name: &str, bytes: Vec<u8>, objects: &mut Objects) {
    let input = Input {
        name,
        is_in_folder: false,
    };
    read(file, input, bytes, objects);
}

fn take_of_folder(path: &str, bytes: Vec<u8>, objects: &mut Objects) {
    let input = Input {
        name: path,
        is_in_folder: true,
    };
    read(path, input, bytes, objects);
}

fn read(file: &str, input: Input<'_>, bytes: Vec<u8>, objects: &mut Objects) {
    match String::from_utf8(bytes) {
        Ok(text) => objects::read(input, &text, objects),
        // Windows PowerShell redirects output as UTF-16.
        Err(_) => objects.broken.push(format!("-f {file}: not UTF-8; save it as UTF-8")),
    }
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
    let fix = "give a file or directory of CronJobs and Jobs, or - for standard input";
    CommandError::caused(format!("-f {file}: cannot be read; {fix}"), error)
}
