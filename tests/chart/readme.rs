//! The table of values in the chart's README, generated from the comments in `values.yaml`.

use std::{fmt::Write as _, fs};

use super::{chart, check_or_write};

const BEGIN: &str = "<!-- made by a test -->\n";
const END: &str = "<!-- end -->\n";

/// One documented value: its path, its default, its description.
#[derive(Debug, PartialEq, Eq)]
struct Row {
    path: String,
    default: String,
    description: String,
}

/// Reads the comments that begin with `# --`; each belongs to the key after it. A value without one, inside of one that
/// has one, is part of its default.
fn rows(text: &str) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let mut parents: Vec<&str> = Vec::new();
    let mut description = None;
    for line in text.lines() {
        let depth = (line.len() - line.trim_start().len()) / 2;
        let line = line.trim();
        if let Some(comment) = line.strip_prefix("# -- ") {
            description = Some(comment.to_owned());
            continue;
        }
        let Some((key, default)) = line.split_once(':').filter(|_| !line.starts_with(['#', '-'])) else {
            continue;
        };
        parents.truncate(depth);
        parents.push(key);
        if let Some(description) = description.take() {
            let default = default.trim();
            let default = if default.is_empty() { "see values.yaml" } else { default };
            rows.push(Row {
                path: parents.join("."),
                default: default.to_owned(),
                description,
            });
        }
    }
    rows
}

#[test]
fn table_of_values_is_up_to_date() {
    let text = fs::read_to_string(chart().join("values.yaml")).unwrap();
    let mut table = "| Value | Default | What it is |\n|---|---|---|\n".to_owned();
    for row in rows(&text) {
        let default = match row.default.as_str() {
            "see values.yaml" => row.default,
            default => format!("`{default}`"),
        };
        let description = row.description.replace('|', "\\|");
        writeln!(table, "| `{}` | {default} | {description} |", row.path).unwrap();
    }
    let path = chart().join("README.md");
    let former = fs::read_to_string(&path).unwrap();
    let (before, rest) = former.split_once(BEGIN).unwrap();
    let (_, after) = rest.split_once(END).unwrap();
    check_or_write(&path, &format!("{before}{BEGIN}\n{table}\n{END}{after}"));
}

#[test]
fn first_line_of_the_readme_mentions_crds_and_hooks() {
    let text = fs::read_to_string(chart().join("README.md")).unwrap();
    let line = text.lines().next().unwrap();
    assert!(line.contains("no CRDs, and no hooks except for `helm test`"), "{line}");
}

#[test]
fn comments_belong_to_the_key_after_them() {
    let text = "# -- All.\nglobal: {}\n\nimage:\n  # -- Which.\n  tag: \"\"\n# -- How much.\nresources:\n  cpu: 1\n";
    let row = |path: &str, default: &str, description: &str| Row {
        path: path.to_owned(),
        default: default.to_owned(),
        description: description.to_owned(),
    };
    let expected = [
        row("global", "{}", "All."),
        row("image.tag", "\"\"", "Which."),
        row("resources", "see values.yaml", "How much."),
    ];
    assert_eq!(rows(text), expected);
}

#[test]
fn every_value_is_described() {
    let text = fs::read_to_string(chart().join("values.yaml")).unwrap();
    let described: Vec<String> = rows(&text).into_iter().map(|row| row.path).collect();
    super::values::for_each_leaf(|path, _| {
        let path = path.join(".");
        let is_described = described.iter().any(|known| {
            path == *known
                || path
                    .strip_prefix(known.as_str())
                    .is_some_and(|rest| rest.starts_with('.'))
        });
        assert!(is_described, "{path}");
    });
}
