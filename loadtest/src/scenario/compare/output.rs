//! The result files of a comparison.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, ensure};
use serde::Deserialize;

use super::{
    html,
    result::{ComparisonResult, FORMAT},
};

/// The files for a result.
#[derive(Clone, Debug, Default)]
pub(super) struct Output {
    pub(super) json: Option<PathBuf>,
    pub(super) html: Option<PathBuf>,
}

impl Output {
    /// Replaces the files atomically, so that an interruption leaves no partial file.
    pub(super) fn write(&self, result: &ComparisonResult) -> anyhow::Result<()> {
        if let Some(path) = &self.json {
            replace(path, &(serde_json::to_string_pretty(result)? + "\n"))?;
        }
        if let Some(path) = &self.html {
            replace(path, &html::page(result))?;
        }
        Ok(())
    }
}

/// Reads a result. Other format versions are refused.
pub(super) fn read(path: &Path) -> anyhow::Result<ComparisonResult> {
    #[derive(Deserialize)]
    struct Form {
        format: u32,
    }
    let context = || format!("cannot read the result {}", path.display());
    let text = fs::read_to_string(path).with_context(context)?;
    let form: Form = serde_json::from_str(&text).with_context(context)?;
    ensure!(
        form.format == FORMAT,
        "{}: a result of format {}, and this program reads format {FORMAT}",
        path.display(),
        form.format
    );
    serde_json::from_str(&text).with_context(context)
}

fn replace(path: &Path, text: &str) -> anyhow::Result<()> {
    let context = || format!("cannot write {}", path.display());
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    fs::write(&partial, text).with_context(context)?;
    fs::rename(&partial, path).with_context(context)
}

#[cfg(test)]
mod tests {
    use std::env;

    use super::*;
    use crate::scenario::compare::result::tests::result;

    /// A folder that is removed on drop.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let path = env::temp_dir().join(format!("loadtest-output-{name}-{}", std::process::id()));
            fs::create_dir(&path).unwrap();
            Folder(path)
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }

    #[test]
    fn result_file_round_trips() {
        let folder = Folder::new("round-trip");
        let output = Output {
            json: Some(folder.0.join("result.json")),
            html: Some(folder.0.join("result.html")),
        };
        let mut written = result(&[1.0], &[2.0]);
        output.write(&written).unwrap();
        written.incomplete = Some("interrupted".into());
        output.write(&written).unwrap();
        assert_eq!(read(output.json.as_ref().unwrap()).unwrap(), written);
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 2);
    }

    #[test]
    fn result_of_another_format_is_refused() {
        let folder = Folder::new("form");
        let path = folder.0.join("result.json");
        fs::write(&path, "{\"format\": 7}").unwrap();
        let error = read(&path).unwrap_err().to_string();
        assert!(error.contains("a result of format 7"), "{error}");
        fs::write(&path, "{}").unwrap();
        assert!(read(&path).is_err());
    }

    #[test]
    fn missing_folder_is_an_error() {
        let output = Output {
            json: Some("/no/such/folder/result.json".into()),
            html: None,
        };
        assert!(output.write(&result(&[1.0], &[2.0])).is_err());
    }
}
