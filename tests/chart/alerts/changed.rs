//! Any small change of an alert's expression fails its tests.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
    thread,
};

use cronwheel::telemetry::metrics::table;
use serde_json::{Value, json};

use super::{PROMTOOL, chart, registered_name, root, yaml};
use crate::mutants::{self, Mutant};

/// The alerts that use the records.
const OF_RECORDS: [&str; 2] = ["CronwheelBudgetBurnsFast", "CronwheelBudgetBurnsSlowly"];
/// The alerts that have tests with several clusters.
const OF_CLUSTERS: [&str; 2] = ["CronwheelAbsent", "CronwheelMetricMissing"];
/// An alert, and the alert during which it is silent.
const SUPPRESSED: (&str, &str) = ("CronwheelCronJobInTrouble", "CronwheelNamespaceInTrouble");
/// The file of the changed rules.
const RULES: &str = "rules.json";
/// An environment variable that makes the test try all changes, set by `make alerts-test`.
const ALL: &str = "CRONWHEEL_ALL_CHANGED_ALERTS";
/// Without [`ALL`], one of this many changes is tried.
const SAMPLED: usize = 25;
/// The number of concurrent promtool processes.
const N_PROCESSES: usize = 2;

/// Changes that no series can reveal: prefixes of rules, prefixes of changes, and the reason.
const EQUIVALENT: [(&[&str], &[&str], &str); 12] = [
    (
        &["CronwheelNoLeader"],
        &["sum becomes max", "sum becomes avg"],
        "numbers of shards are not negative, so sum, maximum and mean are 0 at the same time",
    ),
    (
        &[
            "CronwheelBacklogStays",
            "CronwheelClockAlarm",
            "CronwheelReplicaTakesNoShards",
            "CronwheelStatusesWait",
            "CronwheelWatchSilent",
        ],
        &["max becomes min", "max becomes sum"],
        "a replica has one series with these labels",
    ),
    (
        &["CronwheelPermissionMissing"],
        &["max becomes sum"],
        "the alert checks whether any is above 0",
    ),
    (
        &["CronwheelUndecodableObjects", "CronwheelPanics"],
        &[
            "sum becomes max",
            "sum becomes avg",
            "max becomes sum",
            "increase becomes rate",
        ],
        "the alert checks whether any is above 0",
    ),
    (
        &["CronwheelCronJobInTrouble", "CronwheelNamespaceInTrouble"],
        &["max_over_time becomes min_over_time", "count becomes sum"],
        "the only value of the metric is 1",
    ),
    (
        &["CronwheelReplicaTakesNoShards"],
        &["without the right of =="],
        "the only value of the metric is 1",
    ),
    (
        &[
            "CronwheelThrottled",
            "CronwheelBudgetBurnsFast",
            "CronwheelBudgetBurnsSlowly",
        ],
        &["> becomes >=", ">= becomes >"],
        "ratios and increases are rounded, so none is exactly the bound",
    ),
    (
        &[
            "CronwheelAllFenced",
            "CronwheelThrottled",
            "CronwheelBudgetBurnsFast",
            "CronwheelBudgetBurnsSlowly",
        ],
        &["without namespace="],
        "the other side of the operator selects the namespace",
    ),
    (
        &["cronwheel:"],
        &["without namespace="],
        "the other side of the operator selects the namespace",
    ),
    (
        &["CronwheelManyCreatesRefused"],
        &["without namespace="],
        "the other sides of the operators select the namespace",
    ),
    (
        &[
            "CronwheelAbsent",
            "CronwheelCronJobInTrouble",
            "CronwheelMetricMissing",
            "CronwheelNoLeader",
        ],
        &[
            "on (cluster, installation): with version",
            "on (cluster, job): with version",
            "on (cluster, job, exported_namespace): with version",
        ],
        "neither side has the label",
    ),
    (
        &["CronwheelNamespaceInTrouble"],
        &["by (cluster, namespace, job, exported_namespace): with instance"],
        "the inner aggregation drops the label",
    ),
];

fn is_equivalent(rule: &str, mutant: &Mutant) -> bool {
    let begins = |text: &str, with: &[&str]| with.iter().any(|start| text.starts_with(start));
    EQUIVALENT
        .iter()
        .any(|(rules, changes, _)| begins(rule, rules) && begins(&mutant.change, changes))
}

/// A rule with a changed expression, in a folder with the relevant tests.
struct Changed {
    rule: String,
    mutant: Mutant,
    folder: PathBuf,
}

impl Changed {
    /// Whether all tests pass. The tests of all alerts run last, because they take longest.
    fn passes(&self) -> bool {
        let files = fs::read_dir(&self.folder).unwrap().map(|entry| entry.unwrap().path());
        let tests: BTreeSet<PathBuf> = files.filter(|path| !path.ends_with(RULES)).collect();
        tests
            .into_iter()
            .rev()
            .all(|path| promtool(&["test", "rules"], &[path]).0)
    }
}

/// Another metric of the same kind. For a record, the other record and the record of another window.
fn other_metrics(token: &str) -> Vec<String> {
    if let Some((name, window)) = token.split_once(":increase") {
        let other = if name == "cronwheel:runs" {
            "cronwheel:late_runs"
        } else {
            "cronwheel:runs"
        };
        let other_window = if window == "1h" { "5m" } else { "1h" };
        return vec![
            format!("{other}:increase{window}"),
            format!("{name}:increase{other_window}"),
        ];
    }
    let Some(name) = registered_name(token) else {
        return Vec::new();
    };
    let kind = table::ALL.iter().find(|spec| spec.name == name).map(|spec| spec.kind);
    let mut others = table::ALL
        .iter()
        .filter(|other| Some(other.kind) == kind && other.name != name);
    others
        .next()
        .map(|other| format!("{}{}", other.name, &token[name.len()..]))
        .into_iter()
        .collect()
}

fn name_of(rule: &Value) -> &str {
    rule["alert"].as_str().or(rule["record"].as_str()).unwrap()
}

/// The rules that a rule uses and the rules that use it, with a changed expression for the rule.
fn rules_with(file: &Value, rule: &str, expression: &str) -> Value {
    let mut file = file.clone();
    let is_record = rule.starts_with("cronwheel:");
    let is_suppressed_by = |other: &str| (rule, other) == SUPPRESSED;
    // An alert uses only the records of its windows.
    let is_used = |record: &str| {
        let window = record.rsplit(':').next().unwrap_or(record);
        OF_RECORDS.contains(&rule) && expression.contains(&format!("{window}{{"))
    };
    for group in file["groups"].as_array_mut().unwrap() {
        let rules = group["rules"].as_array_mut().unwrap();
        rules.retain(|other| {
            let name = name_of(other);
            name == rule
                || is_suppressed_by(name)
                || is_record && (name.starts_with("cronwheel:") || OF_RECORDS.contains(&name))
                || name.starts_with("cronwheel:") && is_used(name)
        });
        for other in rules {
            if name_of(other) == rule {
                other["expr"] = expression.into();
            }
        }
    }
    file
}

/// The tests of an alert, or of the alerts that use a record.
fn tests_of(file: &Value, rule: &str) -> Value {
    let is_record = rule.starts_with("cronwheel:");
    let mut file = file.clone();
    let tests = file["tests"].as_array_mut().unwrap();
    for test in &mut *tests {
        test["alert_rule_test"].as_array_mut().unwrap().retain(|check| {
            let alert = check["alertname"].as_str().unwrap();
            alert == rule || is_record && OF_RECORDS.contains(&alert)
        });
    }
    tests.retain(|test| !test["alert_rule_test"].as_array().unwrap().is_empty());
    file
}

/// The relevant test files of a rule, by name. They refer to rules in the same folder.
fn files_of_tests(rule: &str) -> Vec<(&'static str, String)> {
    let is_record = rule.starts_with("cronwheel:");
    let mut files = Vec::new();
    for name in [
        "alerts_test.yaml",
        "burn_rates_test.yaml",
        "slow_burn_rates_test.yaml",
        "records_test.yaml",
        "clusters_test.yaml",
    ] {
        let file = yaml(&root().join("tests/chart").join(name));
        let mut file = match name {
            "records_test.yaml" if is_record => file,
            "burn_rates_test.yaml" if rule == OF_RECORDS[0] => tests_of(&file, rule),
            "slow_burn_rates_test.yaml" if rule == OF_RECORDS[1] => tests_of(&file, rule),
            "clusters_test.yaml" if OF_CLUSTERS.contains(&rule) => tests_of(&file, rule),
            "alerts_test.yaml" => tests_of(&file, rule),
            _ => continue,
        };
        file["rule_files"] = json!([RULES]);
        files.push((name, file.to_string()));
    }
    files
}

fn write_changed(folder: &Path) -> Vec<Changed> {
    let rules = yaml(&chart().join("files/alerts.yaml"));
    let mut all = Vec::new();
    for rule in super::rules(&rules) {
        let name = name_of(&rule).to_owned();
        let tests = files_of_tests(&name);
        for mutant in mutants::of(rule["expr"].as_str().unwrap(), other_metrics) {
            let folder = folder.join(all.len().to_string());
            fs::create_dir_all(&folder).unwrap();
            let rules = rules_with(&rules, &name, &mutant.expression);
            fs::write(folder.join(RULES), rules.to_string()).unwrap();
            for (name, text) in &tests {
                fs::write(folder.join(name), text).unwrap();
            }
            all.push(Changed {
                rule: name.clone(),
                mutant,
                folder,
            });
        }
    }
    all
}

/// Runs promtool on files. Returns whether it accepts them, and its output.
fn promtool(arguments: &[&str], files: &[PathBuf]) -> (bool, String) {
    let output = Command::new(&*PROMTOOL).args(arguments).args(files).output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(text).unwrap())
}

/// The folders of the changed rules whose tests pass.
fn survivors(changed: &[Changed]) -> BTreeSet<&Path> {
    fn survivors_of(part: &[Changed]) -> Vec<&Path> {
        part.iter().filter(|one| one.passes()).map(|one| &*one.folder).collect()
    }
    thread::scope(|scope| {
        let parts = changed.chunks(changed.len().div_ceil(N_PROCESSES));
        let running: Vec<_> = parts.map(|part| scope.spawn(move || survivors_of(part))).collect();
        running.into_iter().flat_map(|part| part.join().unwrap()).collect()
    })
}

/// All changes take minutes, so only some are tried without [`ALL`].
#[test]
fn any_changed_expression_makes_a_test_of_its_alert_fail() {
    let folder = crate::tempfile("").with_extension("changed");
    let all = write_changed(&folder);
    let files: Vec<PathBuf> = all.iter().map(|one| one.folder.join(RULES)).collect();
    let (is_valid, text) = promtool(&["check", "rules"], &files);
    assert!(is_valid, "{text}");
    let n_changed = all.len();
    let different = all.into_iter().filter(|one| !is_equivalent(&one.rule, &one.mutant));
    let step = if std::env::var_os(ALL).is_some() { 1 } else { SAMPLED };
    let tried: Vec<Changed> = different.step_by(step).collect();
    let survivors = survivors(&tried);
    fs::remove_dir_all(&folder).unwrap();
    eprintln!("{} of {n_changed} changed expressions were tried", tried.len());
    let survivors: Vec<String> = tried
        .iter()
        .filter(|one| survivors.contains(&*one.folder))
        .map(|one| format!("{}: {}: {}", one.rule, one.mutant.change, one.mutant.expression))
        .collect();
    assert!(survivors.is_empty(), "{}:\n{}", survivors.len(), survivors.join("\n"));
}
