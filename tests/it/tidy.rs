//! Holds the house over the source tree: layers, purity, who spawns, heads, sizes, names, sleeps, leftovers, metrics.
//!
//! Rules are checked on tokens, with comments and literals taken out first, so prose may speak of what code may not.
//! Each check is a function from sources to findings, and each is shown below to be able to fail.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

// The path is said so that this file can also be compiled by itself.
#[path = "tidy/scanner.rs"]
mod scanner;

use scanner::{blanked, names_under, split_tests, stands, tokens};

/// The folders that are read, from the root of the workspace.
const ROOTS: &[&str] = &[
    "src",
    "tests",
    "benches",
    "testbed/src",
    "testbed/tests",
    "loadtest/src",
    "fuzz/fuzz_targets",
    "apisim/src",
    "apisim/tests",
    "apisim/benches",
];
/// The layers; each may name itself and those before it.
const LAYERS: &[&str] = &["schedule", "state", "cluster", "runtime"];
/// How many of the layers are pure.
const PURE_LAYERS: usize = 2;
/// Crates that do input and output, or bring the types of those that do.
const IMPURE_CRATES: &[&str] = &["tokio", "kube", "k8s_openapi", "tracing", "hyper", "prometheus", "axum"];
/// Types that read a clock, or whose order differs from run to run.
const IMPURE_TYPES: &[&str] = &["Instant", "SystemTime", "HashMap", "HashSet"];
/// The only file that spawns tasks.
const SPAWNER: &str = "src/runtime.rs";
/// The list of metrics.
const METRICS: &str = "src/runtime/metrics/table.rs";
/// No file of the product is longer, in lines.
const LINES_MAX: usize = 600;
/// A file of the product that is longer must be on the ratchet, in lines.
const LINES_WITHOUT_RATCHET_MAX: usize = 400;
/// Files between the two limits, with their lines. Entries may shrink and go; none is added or raised.
const RATCHET: &Ratchet = &[];
/// Paths with the lines they had.
type Ratchet = [(&'static str, usize)];

/// Names that say nothing of what a file or a folder holds; `mod` is the old layout.
const EMPTY_NAMES: &[&str] = &[
    "utils", "util", "common", "helper", "helpers", "manager", "types", "traits", "misc", "mod",
];
/// Tests against a real cluster wait for real time.
const REAL_TIME: &str = "tests/it/cluster";
/// Helpers of the simulation sleep in the paused time that its entry begins.
const SIMULATED_TIME: [&str; 3] = ["tests/it/sim/", "tests/it/fleet/", "tests/it/strangers/"];

/// A file by its path from the root.
struct Source {
    path: String,
    text: String,
}

impl Source {
    /// Whether the whole file is tests or benches.
    fn is_test(&self) -> bool {
        self.path
            .split('/')
            .any(|part| matches!(part, "tests" | "tests.rs" | "benches"))
    }

    /// The position in [`LAYERS`] of the layer that the file belongs to.
    fn layer(&self) -> Option<usize> {
        let first = self.path.strip_prefix("src/")?.split('/').next()?;
        LAYERS.iter().position(|layer| *layer == first.trim_end_matches(".rs"))
    }

    fn finding(&self, line: usize, reason: impl AsRef<str>) -> String {
        format!("{}:{line}: {}", self.path, reason.as_ref())
    }
}

/// A layer names itself and those before it.
fn layer_findings(source: &Source) -> Vec<String> {
    let Some(layer) = source.layer() else { return Vec::new() };
    let code = blanked(&source.text);
    names_under(&tokens(&code), "crate")
        .iter()
        .filter(|name| !LAYERS[..=layer].contains(&name.text))
        .map(|name| source.finding(name.line, format!("{} names crate::{}", LAYERS[layer], name.text)))
        .collect()
}

/// The lower layers do no input or output, read no clock and have no order that differs from run to run.
fn purity_findings(source: &Source) -> Vec<String> {
    if source.is_test() || source.layer().is_none_or(|layer| layer >= PURE_LAYERS) {
        return Vec::new();
    }
    let code = blanked(&source.text);
    let (product, _) = split_tests(&tokens(&code));
    let is_impure = |at: usize| {
        let word = product[at].text;
        let is_root = stands(&product, at + 1, &["::"]) || at > 0 && matches!(product[at - 1].text, "use" | "crate");
        IMPURE_TYPES.contains(&word)
            || IMPURE_CRATES.contains(&word) && is_root
            || word == "now" && at > 0 && product[at - 1].text == "::"
    };
    (0..product.len())
        .filter(|at| is_impure(*at))
        .map(|at| source.finding(product[at].line, format!("a pure layer names `{}`", product[at].text)))
        .collect()
}

/// Tasks are spawned in one file; threads and processes are not tasks, and tests spawn what they test.
fn spawn_findings(source: &Source) -> Vec<String> {
    if !source.path.starts_with("src/") || source.is_test() || source.path == SPAWNER {
        return Vec::new();
    }
    let code = blanked(&source.text);
    let (product, _) = split_tests(&tokens(&code));
    let mut lines: BTreeSet<usize> = ["tokio", "task"]
        .iter()
        .flat_map(|root| names_under(&product, root))
        .filter(|name| name.text.starts_with("spawn"))
        .map(|name| name.line)
        .collect();
    if !product.iter().any(|token| matches!(token.text, "thread" | "process")) {
        let calls = (0..product.len()).filter(|at| stands(&product, *at, &[".", "spawn", "("]));
        lines.extend(calls.map(|at| product[at + 1].line));
    }
    lines
        .iter()
        .map(|line| source.finding(*line, format!("spawns a task; only {SPAWNER} does")))
        .collect()
}

/// Every file says first what it owns.
fn head_findings(source: &Source) -> Vec<String> {
    if source.text.starts_with("//!") {
        Vec::new()
    } else {
        vec![source.finding(1, "does not begin with `//!`")]
    }
}

/// Names say what a file or a folder holds.
fn name_findings(source: &Source) -> Vec<String> {
    let says_nothing = |part: &&str| EMPTY_NAMES.contains(&part.trim_end_matches(".rs"));
    source
        .path
        .split('/')
        .filter(says_nothing)
        .map(|part| source.finding(1, format!("`{part}` is no name")))
        .collect()
}

/// Tests wait for no real time, save those against a real cluster; under `start_paused` tokio's sleep takes none.
fn sleep_findings(source: &Source) -> Vec<String> {
    if source.path.starts_with(REAL_TIME) || SIMULATED_TIME.iter().any(|folder| source.path.starts_with(folder)) {
        return Vec::new();
    }
    let code = blanked(&source.text);
    let all = tokens(&code);
    let is_paused = all.iter().any(|token| token.text == "start_paused");
    let tests = if source.is_test() { all } else { split_tests(&all).1 };
    let sleeps = |at: &usize| {
        let is_thread = *at > 1 && stands(&tests, at - 2, &["thread", "::"]);
        let is_definition = *at > 0 && tests[at - 1].text == "fn";
        stands(&tests, *at, &["sleep", "("]) && !is_definition && (is_thread || !is_paused)
    };
    (0..tests.len())
        .filter(sleeps)
        .map(|at| source.finding(tests[at].line, "a test sleeps in real time"))
        .collect()
}

/// Nothing is left over from the making.
fn leftover_findings(source: &Source) -> Vec<String> {
    let code = blanked(&source.text);
    let all = tokens(&code);
    let leftovers: [&[&str]; 4] = [
        &["todo", "!"],
        &["unimplemented", "!"],
        &["dbg", "!"],
        &["#", "[", "ignore"],
    ];
    let at_token = |at: usize| {
        leftovers
            .iter()
            .find(|wanted| stands(&all, at, wanted))
            .map(|wanted| (at, wanted.concat()))
    };
    (0..all.len())
        .filter_map(at_token)
        .map(|(at, what)| source.finding(all[at].line, format!("`{what}` is left")))
        .collect()
}

/// Long files are split; those on the ratchet only shrink, and leave it when they are short enough.
fn size_findings(sources: &[Source], ratchet: &Ratchet) -> Vec<String> {
    let mut listed: BTreeMap<&str, usize> = ratchet.iter().copied().collect();
    let mut findings = Vec::new();
    for source in sources.iter().filter(|source| !source.is_test()) {
        let lines = source.text.lines().count();
        let reason = match listed.remove(source.path.as_str()) {
            _ if lines > LINES_MAX => format!("longer than {LINES_MAX} lines"),
            Some(_) if lines <= LINES_WITHOUT_RATCHET_MAX => "short enough: take it off the ratchet".to_owned(),
            Some(before) if lines > before => format!("grew from {before} lines on the ratchet"),
            None if lines > LINES_WITHOUT_RATCHET_MAX => format!("longer than {LINES_WITHOUT_RATCHET_MAX} lines"),
            _ => continue,
        };
        findings.push(source.finding(lines, reason));
    }
    findings.extend(
        listed
            .keys()
            .map(|path| format!("{path}:1: on the ratchet, and not in the tree")),
    );
    findings
}

/// The name in a row of the table of metrics, `CONSTANT: Kind "name" [labels]`.
fn metric_name(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once('"')?;
    let (name, rest) = rest.split_once('"')?;
    (rest.starts_with(" [") && name.starts_with("cronwheel_")).then_some(name)
}

/// A metric is one row.
fn metric_findings(source: &Source) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let rows = source
        .text
        .lines()
        .enumerate()
        .filter_map(|(at, line)| Some((at + 1, metric_name(line)?)));
    let again: Vec<_> = rows.filter(|(_, name)| !seen.insert(*name)).collect();
    let mut findings: Vec<_> = again
        .iter()
        .map(|(line, name)| source.finding(*line, format!("{name} is there before")))
        .collect();
    if seen.is_empty() {
        findings.push(source.finding(1, "no row was understood"));
    }
    findings
}

/// The root of the workspace: read when run, so that the file can be compiled and run by itself.
fn root() -> PathBuf {
    std::env::var("CARGO_MANIFEST_DIR")
        .map_or_else(|_| option_env!("CARGO_MANIFEST_DIR").unwrap_or(".").into(), Into::into)
}

/// Every source of the workspace, by path.
fn tree() -> Vec<Source> {
    let root = root();
    let mut sources = Vec::new();
    for folder in ROOTS {
        let before = sources.len();
        read_folder(&root, &root.join(folder), &mut sources);
        assert!(sources.len() > before, "no sources in {folder}");
    }
    sources.sort_by(|a, b| a.path.cmp(&b.path));
    sources
}

fn read_folder(root: &Path, folder: &Path, sources: &mut Vec<Source>) {
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read_folder(root, &path, sources);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let name = path.strip_prefix(root).unwrap().to_str().unwrap().replace('\\', "/");
            sources.push(Source {
                path: name,
                text: fs::read_to_string(&path).unwrap(),
            });
        }
    }
}

/// Asserts that the check finds nothing in the tree, and says everything that it found.
fn holds(check: fn(&Source) -> Vec<String>) {
    assert_none(&tree().iter().flat_map(check).collect::<Vec<_>>());
}

fn assert_none(findings: &[String]) {
    assert!(
        findings.is_empty(),
        "{} findings\n{}",
        findings.len(),
        findings.join("\n")
    );
}

#[test]
fn each_layer_names_only_itself_and_those_before_it() {
    holds(layer_findings);
}

#[test]
fn the_lower_two_layers_are_pure() {
    holds(purity_findings);
}

#[test]
fn one_file_spawns_every_task() {
    holds(spawn_findings);
}

#[test]
fn every_file_begins_by_saying_what_it_owns() {
    holds(head_findings);
}

#[test]
fn no_file_is_too_long_and_the_ratchet_only_shrinks() {
    assert_none(&size_findings(&tree(), RATCHET));
}

#[test]
fn every_name_says_what_is_inside() {
    holds(name_findings);
}

#[test]
fn no_test_waits_for_real_time_without_a_cluster() {
    holds(sleep_findings);
}

#[test]
fn nothing_is_left_over_from_the_making() {
    holds(leftover_findings);
}

#[test]
fn every_metric_has_one_row() {
    let tree = tree();
    let table = tree
        .iter()
        .find(|source| source.path == METRICS)
        .expect("the table of metrics");
    assert_none(&metric_findings(table));
}

/// Checks which lines of `text`, as the file `path`, the check finds fault with.
fn check(check: fn(&Source) -> Vec<String>, path: &str, text: &str, lines: &[usize]) {
    let findings = check(&Source {
        path: path.to_owned(),
        text: text.to_owned(),
    });
    let line = |finding: &String| finding.split(':').nth(1).unwrap().parse::<usize>().unwrap();
    assert_eq!(
        findings.iter().map(line).collect::<Vec<_>>(),
        lines,
        "{path}\n{text}\n{findings:?}"
    );
}

#[test]
fn a_path_up_the_layers_is_found_inline_and_in_groups() {
    check(layer_findings, "src/schedule.rs", "use crate::state::Input;", &[1]);
    check(
        layer_findings,
        "src/schedule/due/tests.rs",
        "fn f() {\n    crate::state::go()\n}",
        &[2],
    );
    check(
        layer_findings,
        "src/state/a.rs",
        "use crate::{\n  schedule::{b, cluster},\n  cluster::c,\n  runtime,\n};",
        &[3, 4],
    );
    check(
        layer_findings,
        "src/cluster/a.rs",
        "use crate::{cluster::b, schedule, state};",
        &[],
    );
    check(
        layer_findings,
        "src/cluster/a.rs",
        "pub(crate) fn f() {} // crate::runtime",
        &[],
    );
    check(
        layer_findings,
        "src/runtime/a.rs",
        "use crate::{cluster, runtime};",
        &[],
    );
    check(layer_findings, "src/main.rs", "use crate::anything;", &[]);
}

#[test]
fn impurity_is_found_in_the_lower_two_layers_alone() {
    for text in [
        "use tokio::sync;",
        "use tracing;",
        "kube::f()",
        "Timestamp::now()",
        "map(jiff::Zoned::now)",
        "use std::time::{Duration, Instant};",
        "let t: SystemTime;",
        "use std::collections::HashMap;",
        "HashSet::new()",
    ] {
        check(purity_findings, "src/state/a.rs", text, &[1]);
        check(purity_findings, "src/schedule.rs", text, &[1]);
        check(purity_findings, "src/state/a/tests.rs", text, &[]);
        check(purity_findings, "src/cluster/a.rs", text, &[]);
        check(
            purity_findings,
            "src/state/a.rs",
            &format!("#[cfg(test)]\nmod tests {{ {text} }}\n"),
            &[],
        );
    }
    check(
        purity_findings,
        "src/state/a.rs",
        "use hashbrown::HashTable; InstantOutcome::Created; now.kube",
        &[],
    );
    check(
        purity_findings,
        "src/state/a.rs",
        "#[cfg(test)]\nmod tests;\ntokio::f()",
        &[3],
    );
}

#[test]
fn a_spawn_is_found_outside_the_one_file() {
    check(
        spawn_findings,
        "src/runtime/a.rs",
        "tokio::spawn(f());\ntask::spawn_blocking(g);",
        &[1, 2],
    );
    check(
        spawn_findings,
        "src/cluster/a.rs",
        "use tokio::{\n  sync,\n  spawn,\n};",
        &[3],
    );
    check(
        spawn_findings,
        "src/runtime/a.rs",
        "let mut set = JoinSet::new();\nset.spawn(f());",
        &[2],
    );
    check(spawn_findings, "src/runtime/a.rs", "thread::scope(|s| s.spawn(f))", &[]);
    check(
        spawn_findings,
        "src/runtime/a.rs",
        "#[cfg(test)]\nmod tests { fn f() { tokio::spawn(g()); } }",
        &[],
    );
    check(spawn_findings, SPAWNER, "tokio::spawn(f());", &[]);
}

#[test]
fn heads_names_and_leftovers_are_found() {
    check(head_findings, "src/a.rs", "// Not a head.\n", &[1]);
    check(head_findings, "src/a.rs", "//! A head.\n", &[]);
    for path in [
        "src/utils.rs",
        "src/a/mod.rs",
        "tests/common/a.rs",
        "benches/helpers.rs",
    ] {
        check(name_findings, path, "", &[1]);
    }
    check(name_findings, "src/model.rs", "", &[]);
    check(
        leftover_findings,
        "src/a.rs",
        "todo!()\nunimplemented!()\ndbg!(1)\n#[ignore = \"why\"]",
        &[1, 2, 3, 4],
    );
    check(
        leftover_findings,
        "src/a.rs",
        "// todo!()\nlet a = \"dbg!(1)\"; ignore[0]",
        &[],
    );
}

#[test]
fn a_sleep_in_real_time_is_found_in_tests_alone() {
    check(
        sleep_findings,
        "src/a/tests.rs",
        "fn f() {\n  tokio::time::sleep(x).await }",
        &[2],
    );
    check(
        sleep_findings,
        "src/a/tests.rs",
        "start_paused = true\ntokio::time::sleep(x)\nthread::sleep(x)",
        &[3],
    );
    check(
        sleep_findings,
        "src/a.rs",
        "sleep(x);\n#[cfg(test)]\nmod tests { fn f() { sleep(x) } }",
        &[3],
    );
    check(sleep_findings, "tests/it/http.rs", "thread::sleep(x)", &[1]);
    check(sleep_findings, "tests/it/cluster/firing.rs", "sleep(x)", &[]);
    check(sleep_findings, "tests/it/http.rs", "fn sleep() {}", &[]);
}

#[test]
fn a_long_file_is_found_and_the_ratchet_turns_one_way() {
    let cases: &[(&str, usize, &Ratchet, bool)] = &[
        ("src/a.rs", 400, &[], true),
        ("src/a.rs", 401, &[], false),
        ("src/a.rs", 500, &[("src/a.rs", 500)], true),
        ("src/a.rs", 499, &[("src/a.rs", 500)], true),
        ("src/a.rs", 501, &[("src/a.rs", 500)], false),
        ("src/a.rs", 400, &[("src/a.rs", 500)], false),
        ("src/a.rs", 601, &[("src/a.rs", 601)], false),
        ("src/b.rs", 10, &[("src/a.rs", 500)], false),
        ("src/a/tests.rs", 700, &[], true),
    ];
    for (path, lines, ratchet, holds) in cases {
        let source = Source {
            path: (*path).to_owned(),
            text: "\n".repeat(*lines),
        };
        let findings = size_findings(&[source], ratchet);
        assert_eq!(findings.is_empty(), *holds, "{path} {lines} {ratchet:?}: {findings:?}");
    }
}

#[test]
fn a_metric_that_is_there_twice_is_found() {
    let row = "    A: Gauge \"cronwheel_a\" []\n        \"Help on cronwheel_a\",\n";
    check(metric_findings, METRICS, row, &[]);
    check(metric_findings, METRICS, &format!("{row}{row}"), &[3]);
    check(metric_findings, METRICS, "nothing", &[1]);
}
