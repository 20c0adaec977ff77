//! Checks that every rule of the built-in controller and every deliberate difference has a test, and that the page of
//! differences contains the table.
//!
//! A test is named after rule B-n.m of `docs/spec/cronjob-behaviour.md` if its name contains `b_n_m`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write as _,
    fs,
    path::PathBuf,
};

use super::pages;

#[path = "rules/table.rs"]
mod table;

use table::{DEPARTED_FROM, DIFFERENCES, Difference, RULES};

/// The folders that contain tests.
const ROOTS: [&str; 2] = ["src", "tests"];

/// Returns the names of all test functions of the tree.
fn test_names() -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut folders: Vec<PathBuf> = ROOTS.iter().map(|folder| pages::root().join(folder)).collect();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                names.extend(names_in(&fs::read_to_string(&path).unwrap()));
            }
        }
    }
    names
}

/// Returns the names of the functions that follow a `#[test]` or `#[tokio::test]` attribute.
fn names_in(text: &str) -> Vec<String> {
    let mut names = Vec::new();
    let mut is_test = false;
    for line in text.lines().map(str::trim) {
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            is_test = true;
        }
        let function = line.split_once("fn ").map(|(_, rest)| rest);
        if let Some(name) = function.and_then(|rest| rest.split(['(', '<']).next())
            && line.ends_with('{')
        {
            if is_test {
                names.push(name.to_owned());
            }
            is_test = false;
        }
    }
    names
}

/// Converts `B-9.3` to `b_9_3`.
fn as_identifier(rule: &str) -> String {
    rule.to_lowercase().replace(['-', '.'], "_")
}

fn is_named_after(test: &str, rule: &str) -> bool {
    format!("_{test}_").contains(&format!("_{}_", as_identifier(rule)))
}

/// Returns the rules and differences in the table that have no test.
fn missing(names: &BTreeSet<String>, rules: &[(&str, &str)], differences: &[Difference]) -> Vec<String> {
    let untested = rules
        .iter()
        .filter(|(rule, _)| !names.iter().any(|name| is_named_after(name, rule)))
        .map(|(rule, text)| format!("no test is named after {rule}: {text}"));
    let untested_differences = differences.iter().flat_map(|difference| {
        let gone = difference.tests.iter().filter(|test| !names.contains(**test));
        let gone = gone.map(|test| format!("{}: there is no test `{test}`", difference.rules.join(", ")));
        let none = difference
            .tests
            .is_empty()
            .then(|| format!("{}: no test", difference.rules.join(", ")));
        gone.chain(none)
    });
    untested.chain(untested_differences).collect()
}

/// Returns the page of differences.
fn page() -> String {
    let mut rows = String::from("| Rule | Built-in | cronwheel | Tests |\n|---|---|---|---|\n");
    for Difference {
        rules,
        built_in,
        ours,
        tests,
    } in DIFFERENCES
    {
        let tests: Vec<String> = tests.iter().map(|test| format!("`{test}`")).collect();
        let _ = writeln!(
            rows,
            "| {} | {built_in} | {ours} | {} |",
            rules.join(", "),
            tests.join(", ")
        );
    }
    rows
}

#[test]
fn every_rule_and_every_difference_has_a_test() {
    let missing = missing(&test_names(), RULES, DIFFERENCES);
    assert!(missing.is_empty(), "{}", missing.join("\n"));
}

#[test]
fn rules_are_unique_and_in_order() {
    let number = |rule: &str| {
        let numbers = rule.strip_prefix("B-")?.split_once('.')?;
        Some((numbers.0.parse::<u32>().ok()?, numbers.1.parse::<u32>().ok()?))
    };
    let numbers: Vec<_> = RULES.iter().map(|(rule, _)| number(rule).unwrap()).collect();
    assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
    let known: BTreeMap<_, _> = RULES.iter().copied().collect();
    for rule in DIFFERENCES.iter().flat_map(|difference| difference.rules) {
        let is_beside = ["B-1.", "B-15.", "B-16."]
            .iter()
            .any(|section| rule.starts_with(section));
        assert!(is_beside || known.contains_key(rule), "{rule}");
    }
    for rule in DEPARTED_FROM {
        let has_row = DIFFERENCES.iter().any(|difference| difference.rules.contains(rule));
        assert!(has_row, "no difference names {rule}");
    }
}

#[test]
fn page_of_differences_is_up_to_date() {
    pages::assert_current("docs/reference/differences.md", &page());
}

#[test]
fn rules_without_a_test_are_found() {
    let names: BTreeSet<String> = ["b_9_3_no_slot_is_lost".to_owned(), "a_gap_b_8_4".to_owned()].into();
    let rules = [
        ("B-9.3", "exact"),
        ("B-8.4", "gaps"),
        ("B-9.30", "none"),
        ("B-8.40", "none"),
    ];
    let difference = |tests| Difference {
        rules: &["B-9.3"],
        built_in: "",
        ours: "",
        tests,
    };
    let differences = [
        difference(&["b_9_3_no_slot_is_lost"]),
        difference(&["gone"]),
        difference(&[]),
    ];
    assert_eq!(
        missing(&names, &rules, &differences),
        [
            "no test is named after B-9.30: none",
            "no test is named after B-8.40: none",
            "B-9.3: there is no test `gone`",
            "B-9.3: no test",
        ]
    );
}

#[test]
fn only_test_functions_count_as_tests() {
    let text = "#[test]\nfn one() {\n}\nfn two() {\n}\n#[tokio::test(start_paused = true)]\nasync fn three() {\n}\n";
    assert_eq!(names_in(text), ["one", "three"]);
}
