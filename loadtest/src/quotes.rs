//! `loadtest quote`: generates tables in documents from result files. A mark before each table names its files, and a
//! test checks that the table matches them.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, bail};

use crate::scenario::{burst, compare};

/// The documents that quote results.
const PAGES: [&str; 2] = ["README.md", "docs/contribute/benchmarks.md"];

/// The folder of result files, which marks refer to.
const RESULTS: &str = "loadtest/results";

const BEGIN: &str = "<!-- measured: ";
const END: &str = "<!-- end of measured -->\n";

/// Regenerates all tables. Returns the documents that changed.
pub(crate) fn run() -> anyhow::Result<Vec<&'static str>> {
    let mut changed = Vec::new();
    for page in PAGES {
        let path = root().join(page);
        let former = fs::read_to_string(&path).with_context(|| format!("cannot read {page}"))?;
        let current = filled(&former).with_context(|| page.to_owned())?;
        if current != former {
            fs::write(&path, current).with_context(|| format!("cannot write {page}"))?;
            changed.push(page);
        }
    }
    Ok(changed)
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// Returns a document with all tables regenerated.
fn filled(page: &str) -> anyhow::Result<String> {
    let mut parts = Vec::new();
    let mut rest = page;
    while let Some((before, after)) = rest.split_once(BEGIN) {
        let (mark, after) = after.split_once(" -->\n").context("a mark has no end")?;
        let (_, after) = after.split_once(END).with_context(|| format!("{mark}: no {END:?}"))?;
        let table = table(mark).with_context(|| mark.to_owned())?;
        parts.push(format!("{before}{BEGIN}{mark} -->\n{table}{END}"));
        rest = after;
    }
    Ok(parts.concat() + rest)
}

/// Generates the table for a mark: its kind, files, and the items to show. The table reports missing files.
fn table(mark: &str) -> anyhow::Result<String> {
    let mut parts = mark.split_ascii_whitespace();
    let kind = parts.next().unwrap_or_default();
    let (files, items): (Vec<&str>, Vec<&str>) = parts.partition(|part| is_json(part));
    let (existing, missing): (Vec<&str>, Vec<&str>) = files
        .into_iter()
        .partition(|file| root().join(RESULTS).join(file).is_file());
    let paths: Vec<PathBuf> = existing.iter().map(|file| root().join(RESULTS).join(file)).collect();
    let missing: String = missing.iter().map(|file| not_measured(file)).collect();
    let table = match (kind, &paths[..]) {
        ("figures" | "ratios" | "aims" | "bursts", []) if !missing.is_empty() => return Ok(missing),
        ("figures", [path]) => compare::quoted_figures(path, &items),
        ("ratios", [path]) => compare::quoted_ratios(path, &items),
        ("aims", [path]) => compare::quoted_aims(path, &items),
        ("bursts", paths) if !paths.is_empty() && items.is_empty() => burst::quoted(paths),
        _ => bail!(
            "a mark is `figures FILE COLUMN...`, `aims FILE COLUMN<=AIM...`, `ratios FILE COLUMN/CONTROLLER<=AIM...` or \
             `bursts FILE...`"
        ),
    };
    Ok(table? + &missing)
}

fn not_measured(file: &str) -> String {
    format!("\nNot measured: `{RESULTS}/{file}` is not there.\n")
}

fn is_json(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_quote_the_current_result_files() {
        for page in PAGES {
            let former = fs::read_to_string(root().join(page)).unwrap();
            assert!(
                filled(&former).unwrap() == former,
                "{page} does not quote its files; write it: cargo run --package loadtest -- quote"
            );
        }
    }

    #[test]
    fn page_is_written_only_between_its_marks() {
        let mark = "figures 2026-11-24-two-cores-quick.json missed";
        let page = filled(&format!("a\n\n{BEGIN}{mark} -->\nold\n{END}z\n")).unwrap();
        assert!(
            page.starts_with(&format!("a\n\n{BEGIN}{mark} -->\n| | floor |")),
            "{page}"
        );
        assert!(
            page.ends_with(&format!("\n{END}z\n")) && !page.contains("old"),
            "{page}"
        );
        assert_eq!(filled(&page).unwrap(), page);
    }

    #[test]
    fn missing_file_is_shown_as_not_measured() {
        let expected = "\nNot measured: `loadtest/results/none.json` is not there.\n";
        for kind in [
            "figures none.json missed",
            "bursts none.json",
            "aims none.json missed<=0",
        ] {
            assert_eq!(table(kind).unwrap(), expected);
        }
    }

    #[test]
    fn mark_with_unknown_contents_is_an_error() {
        for mark in [
            "other none.json",
            "figures 2026-11-24-two-cores-quick.json unknown",
            "ratios 2026-11-24-two-cores-quick.json missed/nobody<=1",
            "other 2026-11-24-two-cores-quick.json",
            "bursts",
        ] {
            assert!(table(mark).is_err(), "{mark}");
        }
    }
}
