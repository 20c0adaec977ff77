//! Checks the source tree: layers, purity, task spawning, module heads, sizes, names, sleeps, leftovers and metrics.
//!
//! The checks use tokens without comments and literals, so that prose may mention forbidden names. Each check is a
//! function from sources to findings. The examples cover findings of each check.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

// With these paths, this file can also be compiled alone.
#[path = "tidy/examples.rs"]
mod examples;
#[path = "tidy/scanner.rs"]
mod scanner;

use scanner::{Token, blanked, matches_at, names_under, split_tests, tokens};

/// The folders to check, relative to the root of the workspace.
const ROOTS: &[&str] = &[
    "src",
    "tests",
    "benches",
    "testbed/src",
    "testbed/tests",
    "loadtest/src",
    "fuzz/fuzz_targets",
    "apiobjects/src",
    "apisim/src",
    "apisim/tests",
    "apisim/benches",
];
/// The layers. Each layer may use itself and the layers before it.
const LAYERS: &[&str] = &["schedule", "shard", "coordination", "kube_api", "controller", "cli"];
/// The number of pure layers.
const PURE_LAYERS: usize = 3;
/// Telemetry is at the level of the controller. The controller and the layers after it may use it, and it may use the
/// layers before.
const TELEMETRY: &str = "telemetry";
/// The parts of the controller that telemetry may use.
const CONTROLLER_FOR_TELEMETRY: &[&str] = &["clock", "permissions", "shutdown"];
/// Explain is beside the controller, and pure.
const EXPLAIN: &str = "explain";
/// The layers beside the controller. Of the layers, only the command line may use them.
const BESIDE: &[Beside] = &[
    Beside {
        layer: EXPLAIN,
        may_use: &["schedule", "shard", "kube_api", EXPLAIN],
        of_kube_api: &["objects"],
    },
    Beside {
        layer: "observe",
        may_use: &["schedule", "shard", "kube_api", EXPLAIN, "observe"],
        of_kube_api: &["objects", "latest_value"],
    },
];
/// The pure parts of other layers.
const PURE_PARTS: &[&str] = &[
    "src/observe/advice",
    "src/observe/facts",
    "src/observe/fleet",
    "src/observe/forecast",
    "src/observe/missed",
    "src/observe/observer/links",
    "src/observe/report",
    "src/observe/slot",
    "src/observe/view",
    "src/observe/words",
];
/// Crates for input and output, or with types of such crates.
const IMPURE_CRATES: &[&str] = &[
    "tokio",
    "kube",
    "k8s_openapi",
    "tracing",
    "hyper",
    "prometheus",
    "axum",
    "clap",
];
/// Types that read a clock, or whose order differs between runs, and the module of files.
const IMPURE_TYPES: &[&str] = &["Instant", "SystemTime", "HashMap", "HashSet", "fs"];
/// The only file that spawns tasks.
const SPAWNER: &str = "src/controller/tasks.rs";
/// The list of metrics.
const METRICS: &str = "src/telemetry/metrics/table.rs";
/// The maximum length of a production file, in lines.
const LINES_MAX: usize = 600;
/// Longer production files must be on the ratchet, in lines.
const LINES_WITHOUT_RATCHET_MAX: usize = 400;
/// Files between the two limits, with their lines. Entries may be lowered or removed, but not added or raised.
const RATCHET: &Ratchet = &[];
/// Paths with their number of lines.
type Ratchet = [(&'static str, usize)];

/// Generic names, which do not describe the contents of a file or folder. `mod` is the old layout.
const GENERIC_NAMES: &[&str] = &[
    "utils", "util", "common", "helper", "helpers", "manager", "types", "traits", "misc", "mod",
];
/// Tests against a real cluster use real time.
const REAL_TIME: [&str; 2] = ["tests/e2e/", "tests/install/"];
/// The support code of simulations sleeps in paused time, which their entry points start.
const SIMULATED_TIME: [&str; 3] = ["tests/it/sim/", "tests/it/fleet/", "tests/it/tenants/"];

/// A layer beside the controller.
struct Beside {
    layer: &'static str,
    /// The layers that it may use.
    may_use: &'static [&'static str],
    /// The parts of `kube_api` that it may use.
    of_kube_api: &'static [&'static str],
}

/// A file with its path from the root.
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
        LAYERS.iter().position(|layer| self.is_in(layer))
    }

    /// Whether the file is in this folder of `src/`, or is the folder's module file.
    fn is_in(&self, folder: &str) -> bool {
        let path = self.path.strip_prefix("src/");
        let first = path.and_then(|path| path.split('/').next());
        first.is_some_and(|first| first.trim_end_matches(".rs") == folder)
    }

    /// Whether the file belongs to a pure layer, or to a pure part of a layer.
    fn is_pure(&self) -> bool {
        let is_part = |part: &&str| {
            let rest = self.path.strip_prefix(*part);
            rest.is_some_and(|rest| rest.starts_with(['/', '.']))
        };
        self.is_in(EXPLAIN) || self.layer().is_some_and(|layer| layer < PURE_LAYERS) || PURE_PARTS.iter().any(is_part)
    }

    fn finding(&self, line: usize, reason: impl AsRef<str>) -> String {
        format!("{}:{line}: {}", self.path, reason.as_ref())
    }
}

/// A layer uses only itself and the layers before it.
fn layer_findings(source: &Source) -> Vec<String> {
    let controller = LAYERS
        .iter()
        .position(|layer| *layer == "controller")
        .unwrap_or_default();
    let code = blanked(&source.text);
    let tokens = tokens(&code);
    let finding = |name: &Token<'_>, path: &str| source.finding(name.line, format!("names {path}::{}", name.text));
    let upward = |highest: usize, with_telemetry: bool| {
        let is_last = highest > controller;
        let may_be_named = move |name: &str| {
            LAYERS[..=highest].contains(&name)
                || with_telemetry && name == TELEMETRY
                || is_last && BESIDE.iter().any(|beside| beside.layer == name)
        };
        let names = names_under(&tokens, "crate").into_iter();
        names
            .filter(move |name| !may_be_named(name.text))
            .map(|name| finding(&name, "crate"))
    };
    match source.layer() {
        Some(layer) => upward(layer, layer >= controller).collect(),
        None if source.is_in(TELEMETRY) => {
            let named = names_under(&tokens, "controller").into_iter();
            let others = named.filter(|name| !CONTROLLER_FOR_TELEMETRY.contains(&name.text));
            let others: Vec<String> = others.map(|name| finding(&name, "controller")).collect();
            upward(controller, true).chain(others).collect()
        }
        None => {
            let beside = BESIDE.iter().filter(|beside| source.is_in(beside.layer));
            let others = |path: &str, allowed: &[&str]| -> Vec<String> {
                let named = names_under(&tokens, path).into_iter();
                let others = named.filter(|name| !allowed.contains(&name.text));
                others.map(|name| finding(&name, path)).collect()
            };
            let findings = beside.flat_map(|beside| {
                let of_kube_api = others("kube_api", beside.of_kube_api);
                [others("crate", beside.may_use), of_kube_api].concat()
            });
            findings.collect()
        }
    }
}

/// Pure layers do no input or output, read no clock and use no types whose order differs between runs.
fn purity_findings(source: &Source) -> Vec<String> {
    if source.is_test() || !source.is_pure() {
        return Vec::new();
    }
    let code = blanked(&source.text);
    let (production, _) = split_tests(&tokens(&code));
    let is_impure = |at: usize| {
        let name = production[at].text;
        let is_root =
            matches_at(&production, at + 1, &["::"]) || at > 0 && matches!(production[at - 1].text, "use" | "crate");
        IMPURE_TYPES.contains(&name)
            || IMPURE_CRATES.contains(&name) && is_root
            || name == "now" && at > 0 && production[at - 1].text == "::"
    };
    (0..production.len())
        .filter(|at| is_impure(*at))
        .map(|at| {
            source.finding(
                production[at].line,
                format!("a pure layer names `{}`", production[at].text),
            )
        })
        .collect()
}

/// Tasks are spawned in a single file. Threads and processes do not count, and tests may spawn.
fn spawn_findings(source: &Source) -> Vec<String> {
    if !source.path.starts_with("src/") || source.is_test() || source.path == SPAWNER {
        return Vec::new();
    }
    let code = blanked(&source.text);
    let (production, _) = split_tests(&tokens(&code));
    let mut lines: BTreeSet<usize> = ["tokio", "task"]
        .iter()
        .flat_map(|root| names_under(&production, root))
        .filter(|name| name.text.starts_with("spawn"))
        .map(|name| name.line)
        .collect();
    if !production
        .iter()
        .any(|token| matches!(token.text, "thread" | "process"))
    {
        let calls = (0..production.len()).filter(|at| matches_at(&production, *at, &[".", "spawn", "("]));
        lines.extend(calls.map(|at| production[at + 1].line));
    }
    lines
        .iter()
        .map(|line| source.finding(*line, format!("spawns a task; only {SPAWNER} does")))
        .collect()
}

/// Every file starts with a description of its contents.
fn head_findings(source: &Source) -> Vec<String> {
    if source.text.starts_with("//!") {
        Vec::new()
    } else {
        vec![source.finding(1, "does not begin with `//!`")]
    }
}

/// Names describe the contents of a file or folder.
fn name_findings(source: &Source) -> Vec<String> {
    let is_generic = |part: &&str| GENERIC_NAMES.contains(&part.trim_end_matches(".rs"));
    source
        .path
        .split('/')
        .filter(is_generic)
        .map(|part| source.finding(1, format!("`{part}` is a generic name")))
        .collect()
}

/// Tests do not sleep in real time, except tests against a real cluster. With `start_paused`, a sleep of tokio takes no
/// real time.
fn sleep_findings(source: &Source) -> Vec<String> {
    let mut exempt = REAL_TIME.iter().chain(&SIMULATED_TIME);
    if exempt.any(|folder| source.path.starts_with(folder)) {
        return Vec::new();
    }
    let code = blanked(&source.text);
    let all = tokens(&code);
    let is_paused = all.iter().any(|token| token.text == "start_paused");
    let tests = if source.is_test() { all } else { split_tests(&all).1 };
    let sleeps = |at: &usize| {
        let is_thread = *at > 1 && matches_at(&tests, at - 2, &["thread", "::"]);
        let is_definition = *at > 0 && tests[at - 1].text == "fn";
        matches_at(&tests, *at, &["sleep", "("]) && !is_definition && (is_thread || !is_paused)
    };
    (0..tests.len())
        .filter(sleeps)
        .map(|at| source.finding(tests[at].line, "a test sleeps in real time"))
        .collect()
}

/// Every file is declared by its parent. Otherwise it is not compiled.
fn orphan_findings(sources: &[Source]) -> Vec<String> {
    let texts: BTreeMap<&str, &str> = sources
        .iter()
        .map(|source| (source.path.as_str(), source.text.as_str()))
        .collect();
    let is_declared = |source: &&Source| {
        let Some((folder, file)) = source.path.rsplit_once('/') else {
            return true;
        };
        let module = file.trim_end_matches(".rs");
        let parent = if folder == "src" {
            "src/lib.rs".to_owned()
        } else {
            format!("{folder}.rs")
        };
        let declares = |text: &&str| {
            let code = blanked(text);
            let tokens = tokens(&code);
            (0..tokens.len()).any(|at| matches_at(&tokens, at, &["mod", module, ";"]))
        };
        texts.get(parent.as_str()).is_some_and(declares)
    };
    let is_root = |source: &&Source| matches!(source.path.as_str(), "src/lib.rs" | "src/main.rs");
    let production = sources
        .iter()
        .filter(|source| source.path.starts_with("src/") && !is_root(source));
    let orphans = production.filter(|source| !is_declared(source));
    orphans
        .map(|source| source.finding(1, "no module declares it"))
        .collect()
}

/// The code contains no leftovers of development.
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
            .find(|leftover| matches_at(&all, at, leftover))
            .map(|leftover| (at, leftover.concat()))
    };
    (0..all.len())
        .filter_map(at_token)
        .map(|(at, leftover)| source.finding(all[at].line, format!("`{leftover}` is a leftover")))
        .collect()
}

/// Long files must be split. Files on the ratchet may only shrink, and are removed from it once they are short enough.
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

/// Parses the name in a row of the table of metrics, `CONSTANT: Kind "name" [labels]`.
fn metric_name(line: &str) -> Option<&str> {
    let (_, rest) = line.split_once('"')?;
    let (name, rest) = rest.split_once('"')?;
    (rest.starts_with(" [") && name.starts_with("cronwheel_")).then_some(name)
}

/// Each metric has one row.
fn metric_findings(source: &Source) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let rows = source
        .text
        .lines()
        .enumerate()
        .filter_map(|(at, line)| Some((at + 1, metric_name(line)?)));
    let duplicates: Vec<_> = rows.filter(|(_, name)| !seen.insert(*name)).collect();
    let mut findings: Vec<_> = duplicates
        .iter()
        .map(|(line, name)| source.finding(*line, format!("{name} has an earlier row")))
        .collect();
    if seen.is_empty() {
        findings.push(source.finding(1, "no row was parsed"));
    }
    findings
}

/// Returns the root of the workspace. The variable is read at run time, so that this file can also be compiled alone.
fn root() -> PathBuf {
    std::env::var("CARGO_MANIFEST_DIR")
        .map_or_else(|_| option_env!("CARGO_MANIFEST_DIR").unwrap_or(".").into(), Into::into)
}

/// Returns all source files of the workspace, by path.
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

/// Asserts that a check finds nothing in the tree. Otherwise panics with all findings.
fn assert_clean(check: fn(&Source) -> Vec<String>) {
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
fn layers_use_only_lower_layers() {
    assert_clean(layer_findings);
}

#[test]
fn pure_layers_and_parts_are_pure() {
    assert_clean(purity_findings);
}

#[test]
fn one_file_spawns_every_task() {
    assert_clean(spawn_findings);
}

#[test]
fn every_file_has_a_head_comment() {
    assert_clean(head_findings);
}

#[test]
fn no_file_is_too_long_and_the_ratchet_only_shrinks() {
    assert_none(&size_findings(&tree(), RATCHET));
}

#[test]
fn every_source_file_is_declared_as_a_module() {
    assert_none(&orphan_findings(&tree()));
}

#[test]
fn no_file_has_a_generic_name() {
    assert_clean(name_findings);
}

#[test]
fn no_test_waits_for_real_time_without_a_cluster() {
    assert_clean(sleep_findings);
}

#[test]
fn no_debug_leftovers_remain() {
    assert_clean(leftover_findings);
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
