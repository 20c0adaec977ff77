//! Checks the documentation: links between pages resolve, and each rule that a source file cites is defined.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// Folders with pages and sources. Other folders contain build output.
const FOLDERS: [&str; 14] = [
    "src",
    "tests",
    "docs",
    "apiobjects",
    "apisim",
    "testbed",
    "loadtest",
    "benches",
    "fuzz",
    "deploy",
    "examples",
    "release",
    ".github",
    ".",
];
/// The page that defines the rules B-n.m.
const RULES: &str = "docs/spec/cronjob-behaviour.md";
/// This file cites rules that do not exist, for its own tests.
const SELF_TEST: &str = "tests/it/rules.rs";
/// This file names headings that do not exist, for its own tests.
const THIS_FILE: &str = "tests/it/links.rs";
/// Files that may name a page, by extension.
const NAMING: [&str; 7] = ["rs", "py", "yaml", "yml", "json", "txt", "md"];

/// Returns the root of the workspace. The variable is read at run time, so that this file can also be compiled alone.
fn root() -> PathBuf {
    std::env::var("CARGO_MANIFEST_DIR")
        .map_or_else(|_| option_env!("CARGO_MANIFEST_DIR").unwrap_or(".").into(), Into::into)
}

/// Returns all files in [`FOLDERS`] with this extension, relative to the root.
fn files(extension: &str) -> Vec<PathBuf> {
    let root = root();
    let mut found = Vec::new();
    let mut folders: Vec<PathBuf> = FOLDERS.iter().map(PathBuf::from).collect();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(root.join(&folder)).unwrap() {
            let name = entry.unwrap().file_name();
            let path = if folder == Path::new(".") {
                PathBuf::from(&name)
            } else {
                folder.join(&name)
            };
            let is_folder = root.join(&path).is_dir();
            if is_folder && folder != Path::new(".") && name != "target" {
                folders.push(path);
            } else if !is_folder && path.extension().is_some_and(|found| found == extension) {
                found.push(path);
            }
        }
    }
    found
}

fn read(path: &Path) -> String {
    fs::read_to_string(root().join(path)).unwrap()
}

/// The lines of a page outside of fenced blocks.
fn prose(page: &str) -> impl Iterator<Item = &str> {
    let mut is_fenced = false;
    page.lines().filter(move |line| {
        let is_fence = line.trim_start().starts_with("```");
        is_fenced ^= is_fence;
        !is_fenced && !is_fence
    })
}

/// The link targets in a page, without those on other hosts.
fn targets(page: &str) -> Vec<&str> {
    prose(page)
        .flat_map(|line| line.split("](").skip(1))
        .filter_map(|rest| rest.split_once(')'))
        .map(|(target, _)| target)
        .filter(|target| !target.contains("://"))
        .collect()
}

/// The anchors of a page's headings, as GitHub generates them.
fn anchors(page: &str) -> BTreeSet<String> {
    let headings = prose(page).filter(|line| line.starts_with('#'));
    let texts = headings.map(|line| line.trim_start_matches('#').trim().to_lowercase());
    let is_kept = |character: &char| character.is_alphanumeric() || matches!(character, ' ' | '-' | '_');
    texts
        .map(|text| text.chars().filter(is_kept).collect::<String>().replace(' ', "-"))
        .collect()
}

/// Returns the reason why a link in `page` does not resolve.
fn broken_link(page: &Path, target: &str) -> Option<String> {
    let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
    let file = if path.is_empty() {
        root().join(page)
    } else {
        root().join(page.parent().unwrap()).join(path)
    };
    if !file.exists() {
        return Some(format!("{}: {target}: no such file", page.display()));
    }
    let exists = anchor.is_empty() || anchors(&fs::read_to_string(file).unwrap()).contains(anchor);
    (!exists).then(|| format!("{}: {target}: no such heading", page.display()))
}

/// The pages below `docs` that a text names by their path from the root, with anchors.
fn named_pages(text: &str) -> Vec<&str> {
    let is_of_path = |letter: char| letter.is_ascii_alphanumeric() || "/-_.#".contains(letter);
    text.match_indices("docs/")
        .map(|(at, _)| {
            let rest = &text[at..];
            let end = rest.find(|letter| !is_of_path(letter)).unwrap_or(rest.len());
            rest[..end].trim_end_matches('.')
        })
        .filter(|target| {
            let path = Path::new(target.split('#').next().unwrap_or_default());
            path.extension().is_some_and(|extension| extension == "md")
        })
        .collect()
}

/// Returns the rules that a text cites, such as `B-10.3`.
fn rules(text: &str) -> BTreeSet<String> {
    let digits = |text: &str| text.chars().take_while(char::is_ascii_digit).count();
    let rule = |rest: &str| {
        let section = digits(rest);
        let number = digits(rest.get(section + 1..)?);
        let is_rule = section > 0 && number > 0 && rest[section..].starts_with('.');
        is_rule.then(|| format!("B-{}", &rest[..=section + number]))
    };
    text.split("B-").skip(1).filter_map(rule).collect()
}

#[test]
fn every_link_between_pages_resolves() {
    let mut n_links = 0;
    let mut broken_links = Vec::new();
    for path in files("md") {
        let page = read(&path);
        let targets = targets(&page);
        n_links += targets.len();
        broken_links.extend(targets.into_iter().filter_map(|target| broken_link(&path, target)));
    }
    assert!(n_links > 100, "only {n_links} links were parsed");
    assert!(broken_links.is_empty(), "{}", broken_links.join("\n"));
}

#[test]
fn every_page_that_a_file_names_exists() {
    let mut broken = Vec::new();
    let mut n_pages = 0;
    for path in NAMING.into_iter().flat_map(files) {
        if path == Path::new(THIS_FILE) {
            continue;
        }
        let text = read(&path);
        for target in named_pages(&text) {
            n_pages += 1;
            let reason = broken_link(Path::new("README.md"), target);
            broken.extend(reason.map(|reason| format!("{}: {reason}", path.display())));
        }
    }
    assert!(n_pages > 100, "only {n_pages} pages are named");
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn every_cited_rule_is_defined() {
    let page = read(Path::new(RULES));
    let definitions = page.split("**B-").skip(1).filter_map(|rest| rest.split_once(' '));
    let defined: BTreeSet<String> = definitions
        .flat_map(|(number, _)| rules(&format!("B-{number}")))
        .collect();
    assert!(defined.len() > 80, "only {} rules were parsed", defined.len());
    for path in files("rs").into_iter().filter(|path| path != Path::new(SELF_TEST)) {
        let unknown: Vec<String> = rules(&read(&path)).difference(&defined).cloned().collect();
        assert!(unknown.is_empty(), "{} cites {unknown:?}", path.display());
    }
}

#[test]
fn links_anchors_and_rules_are_parsed() {
    let page = "# One, two: `three`\n[a](b.md#c) and [d](https://e) [f](#one-two-three)\n```\n# no\n[x](y)\n```\n";
    assert_eq!(targets(page), ["b.md#c", "#one-two-three"]);
    assert_eq!(
        named_pages("see docs/a.md, docs/b/c.md#d. Not docs/e.png"),
        ["docs/a.md", "docs/b/c.md#d"]
    );
    assert_eq!(anchors(page), BTreeSet::from(["one-two-three".to_owned()]));
    assert_eq!(
        rules("B-10.3, (B-9.7) B-x B-4 B-"),
        BTreeSet::from(["B-10.3".to_owned(), "B-9.7".to_owned()])
    );
    assert!(broken_link(Path::new("README.md"), "no-such-page.md").is_some());
    assert!(broken_link(Path::new("README.md"), "docs/README.md#no-such-heading").is_some());
    assert!(broken_link(Path::new("README.md"), "docs/README.md#documentation").is_none());
}
