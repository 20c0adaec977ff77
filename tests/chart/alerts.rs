//! The alerts. Each one has tests for firing, clearing and silence, selects existing metrics, and has a runbook.

mod changed;
mod labels;
mod rendered;

use std::{collections::BTreeSet, fs, path::PathBuf, process::Command, sync::LazyLock};

use cronwheel::telemetry::metrics::table;
use serde_json::{Value, json};

use super::{chart, everything, objects_of, root};

/// The namespace selector in the rules file, which the chart replaces by the namespace of an installation.
const SELECTOR: &str = "namespace=\"kube-system\"";
/// Metrics that have no series in a healthy installation, so their absence is no problem.
const ABSENT_WHILE_WELL: [&str; 1] = ["cronwheel_takes_no_shards"];

static RULES: LazyLock<Vec<Value>> = LazyLock::new(in_file);

static PROMTOOL: LazyLock<PathBuf> = LazyLock::new(|| testbed::find_or_build_promtool().unwrap());

fn yaml(path: &std::path::Path) -> Value {
    serde_saphyr::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// The address of the project.
fn home() -> String {
    yaml(&chart().join("Chart.yaml"))["home"].as_str().unwrap().to_owned()
}

/// The rules of all groups.
fn rules(file: &Value) -> Vec<Value> {
    let groups = file["groups"].as_array().unwrap();
    groups
        .iter()
        .flat_map(|group| group["rules"].as_array().unwrap().clone())
        .collect()
}

fn in_file() -> Vec<Value> {
    rules(&yaml(&chart().join("files/alerts.yaml")))
}

fn alerts(rules: &[Value]) -> impl Iterator<Item = &Value> {
    rules.iter().filter(|rule| rule["alert"].is_string())
}

/// The expression of an alert.
fn expression_of(alert: &str) -> &'static str {
    let rule = RULES.iter().find(|rule| rule["alert"] == alert);
    rule.unwrap_or_else(|| panic!("no alert {alert}"))["expr"]
        .as_str()
        .unwrap()
}

/// The first value above which an alert fires: a number, or a product of two.
pub(super) fn limit_of(alert: &str) -> f64 {
    let (_, after) = expression_of(alert).split_once(" > ").unwrap();
    let mut tokens = after.split_whitespace();
    let first: f64 = tokens.next().unwrap().parse().unwrap();
    // `*`, or the end of the comparison.
    let second = tokens.next().filter(|token| *token == "*").and_then(|_| tokens.next());
    let product = first * second.map_or(1.0, |second| second.parse::<f64>().unwrap());
    (product * 1e9).round() / 1e9
}

/// The share of the runs that may be late, by the objective.
pub(super) fn budget() -> f64 {
    let (_, after) = expression_of("CronwheelBudgetBurnsFast").split_once(" > ").unwrap();
    after.split_whitespace().nth(2).unwrap().parse().unwrap()
}

pub(super) fn is_alert(name: &str) -> bool {
    alerts(&RULES).any(|alert| alert["alert"] == name)
}

/// The address of the runbooks.
pub(super) fn runbooks() -> String {
    let alert = alerts(&RULES).next().unwrap();
    let url = alert["annotations"]["runbook_url"].as_str().unwrap();
    url.split('#').next().unwrap().to_owned()
}

/// The names of metrics in an expression.
pub(super) fn metrics_in(expression: &str) -> BTreeSet<String> {
    // Quoted text contains no metric names.
    let bare: String = expression.split('"').step_by(2).collect::<Vec<_>>().join(" ");
    let names = bare.split(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_' && letter != ':');
    let is_metric = |name: &&str| {
        ["cronwheel_", "cronjob_controller_", "process_"]
            .iter()
            .any(|prefix| name.starts_with(prefix))
    };
    names.filter(is_metric).map(str::to_owned).collect()
}

/// The name under which the metric of a series is registered, which is without suffix for histograms.
pub(super) fn registered_name(metric: &str) -> Option<&'static str> {
    let find = |name: &str| table::ALL.iter().find(|spec| spec.name == name);
    let of_histogram = || {
        ["_bucket", "_count", "_sum"]
            .iter()
            .find_map(|ending| find(metric.strip_suffix(ending)?))
    };
    find(metric).or_else(of_histogram).map(|spec| spec.name)
}

#[test]
fn promtool_accepts_the_rules_and_their_tests_pass() {
    for arguments in [
        ["check", "rules", "deploy/helm/cronwheel/files/alerts.yaml"],
        ["test", "rules", "tests/chart/alerts_test.yaml"],
        ["test", "rules", "tests/chart/clusters_test.yaml"],
        ["test", "rules", "tests/chart/healthy_load_test.yaml"],
        ["test", "rules", "tests/chart/burn_rates_test.yaml"],
        ["test", "rules", "tests/chart/slow_burn_rates_test.yaml"],
        ["test", "rules", "tests/chart/records_test.yaml"],
    ] {
        let output = Command::new(&*PROMTOOL)
            .args(arguments)
            .current_dir(root())
            .output()
            .unwrap();
        assert!(
            output.status.success(),
            "{}{}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        );
    }
}

#[test]
fn every_alert_is_tested_as_firing_as_clearing_and_as_silent() {
    let file = yaml(&root().join("tests/chart/alerts_test.yaml"));
    let tests = file["tests"].as_array().unwrap();
    for alert in alerts(&in_file()) {
        let name = &alert["alert"];
        // For each time that a test checks, whether the alert fires.
        let firing = |test: &Value| -> Vec<bool> {
            let checks = test["alert_rule_test"].as_array().unwrap();
            let of_alert = checks.iter().filter(|check| check["alertname"] == *name);
            of_alert
                .map(|check| !check["exp_alerts"].as_array().unwrap().is_empty())
                .collect()
        };
        let cases: Vec<Vec<bool>> = tests.iter().map(firing).collect();
        let has = |pattern: &[bool]| {
            cases
                .iter()
                .any(|case| case.windows(pattern.len()).any(|found| found == pattern))
        };
        assert!(has(&[false, true]), "no test in which {name} begins to fire");
        assert!(has(&[true, false]), "no test in which {name} clears");
        assert_eq!(cases[0], [false], "{name} is not checked in {}", tests[0]["name"]);
    }
    assert_eq!(tests[0]["name"], "a healthy installation");
}

#[test]
fn every_alert_is_silent_under_a_steady_healthy_load() {
    let file = yaml(&root().join("tests/chart/healthy_load_test.yaml"));
    let in_file = in_file();
    let names: BTreeSet<&str> = alerts(&in_file).map(|alert| alert["alert"].as_str().unwrap()).collect();
    for test in file["tests"].as_array().unwrap() {
        let checks = test["alert_rule_test"].as_array().unwrap();
        assert!(checks.iter().all(|check| check["exp_alerts"] == json!([])));
        let at_the_end = checks.iter().filter(|check| check["eval_time"] == "6h");
        let checked: BTreeSet<&str> = at_the_end.map(|check| check["alertname"].as_str().unwrap()).collect();
        assert_eq!(checked, names, "{}", test["name"]);
    }
}

#[test]
fn every_alert_names_its_cluster() {
    for file in ["alerts_test.yaml", "burn_rates_test.yaml", "slow_burn_rates_test.yaml"] {
        let file = yaml(&root().join("tests/chart").join(file));
        let tests = file["tests"].as_array().unwrap().iter();
        for check in tests.flat_map(|test| test["alert_rule_test"].as_array().unwrap()) {
            for alert in check["exp_alerts"].as_array().unwrap() {
                let cluster = &alert["exp_labels"]["cluster"];
                // An installation that was never scraped has no cluster.
                let is_nowhere = check["alertname"] == "CronwheelAbsent" && cluster.is_null();
                assert!(cluster == "east" || cluster == "west" || is_nowhere, "{check}");
            }
        }
    }
}

#[test]
fn alerts_select_registered_metrics_of_this_installation() {
    for rule in in_file() {
        let expression = rule["expr"].as_str().unwrap();
        let metrics = metrics_in(expression);
        let is_recorded = expression.contains("cronwheel:");
        assert!(is_recorded || !metrics.is_empty(), "{expression}");
        for metric in &metrics {
            assert!(registered_name(metric).is_some(), "{metric} in {expression}");
        }
        let bare: String = expression.split('"').step_by(2).collect();
        assert_eq!(
            expression.matches(SELECTOR).count(),
            bare.matches('{').count(),
            "a selector without the namespace: {expression}"
        );
    }
}

#[test]
fn critical_metrics_have_an_alert_for_their_absence() {
    let rules = in_file();
    let absences: String = ["CronwheelAbsent", "CronwheelMetricMissing"]
        .map(expression_of)
        .concat();
    let recorded = rules.iter().filter(|rule| rule["record"].is_string());
    let critical = alerts(&rules).filter(|alert| alert["labels"]["severity"] == "critical");
    for rule in critical.chain(recorded) {
        for metric in metrics_in(rule["expr"].as_str().unwrap()) {
            let metric = metric.replace("_bucket", "_count");
            let is_watched = ["absent_over_time(", "unless on (cluster, job) "]
                .iter()
                .any(|before| absences.contains(&format!("{before}{metric}{{")));
            assert!(
                is_watched || ABSENT_WHILE_WELL.contains(&metric.as_str()),
                "no alert for the absence of {metric}"
            );
        }
    }
}

#[test]
fn every_alert_has_a_severity_texts_a_dashboard_and_a_section_in_the_runbooks() {
    let home = home();
    let boards = fs::read_dir(chart().join("files/dashboards")).unwrap();
    let boards: BTreeSet<String> = boards
        .map(|file| yaml(&file.unwrap().path())["uid"].as_str().unwrap().to_owned())
        .collect();
    let runbooks = fs::read_to_string(root().join("docs/operate/runbooks.md")).unwrap();
    let sections = runbooks.lines().filter_map(|line| line.strip_prefix("## "));
    let sections: BTreeSet<&str> = sections.filter(|title| title.starts_with("Cronwheel")).collect();
    let mut named = BTreeSet::new();
    let rules = in_file();
    for alert in alerts(&rules) {
        let name = alert["alert"].as_str().unwrap();
        assert!(
            sections.contains(name),
            "docs/operate/runbooks.md has no section {name}"
        );
        let annotations = &alert["annotations"];
        let url = format!("{home}/docs/operate/runbooks.md#{}", name.to_lowercase());
        assert_eq!(annotations["runbook_url"], url);
        for text in ["summary", "description"] {
            assert!(annotations[text].as_str().unwrap().ends_with('.'), "{name}");
        }
        let dashboard = annotations["dashboard_url"].as_str().unwrap();
        let (path, variables) = dashboard.split_once('?').unwrap();
        assert!(boards.contains(path.strip_prefix("/d/").unwrap()), "{name}: {path}");
        assert_eq!(variables, "var-cluster={{ $labels.cluster }}", "{name}");
        let severity = alert["labels"]["severity"].as_str().unwrap();
        assert!(["critical", "warning"].contains(&severity), "{name}");
        let section = runbooks.split(&format!("## {name}\n")).nth(1).unwrap();
        assert!(
            section.trim_start().starts_with(&format!("Severity: {severity}")),
            "{name}"
        );
        named.insert(name);
    }
    assert_eq!(named, sections);
}

/// The names in the matchers of Alertmanager, of which the last part may be `.+`.
#[test]
fn inhibition_rules_of_the_runbooks_name_alerts() {
    let runbooks = fs::read_to_string(root().join("docs/operate/runbooks.md")).unwrap();
    let example = runbooks.split("```yaml\n").nth(1).unwrap().split("```").next().unwrap();
    let example: Value = serde_saphyr::from_str(example).unwrap();
    let rules = in_file();
    let names: Vec<&str> = alerts(&rules).map(|alert| alert["alert"].as_str().unwrap()).collect();
    let mut n_names = 0;
    for rule in example["inhibit_rules"].as_array().unwrap() {
        assert_eq!(rule["equal"], json!(["cluster", "namespace", "job"]));
        for side in ["source_matchers", "target_matchers"] {
            for matcher in rule[side].as_array().unwrap() {
                let (_, values) = matcher.as_str().unwrap().rsplit_once(' ').unwrap();
                for name in values.trim_matches('"').split('|') {
                    let is_named = |alert: &&str| match name.strip_suffix(".+") {
                        Some(start) => alert.starts_with(start),
                        None => *alert == name,
                    };
                    assert!(names.iter().any(is_named), "{name}");
                    n_names += 1;
                }
            }
        }
    }
    assert!(n_names > 10, "{n_names}");
}

#[test]
fn limits_are_read_from_the_alerts() {
    for (alert, limit) in [
        ("CronwheelBudgetBurnsFast", 0.0144),
        ("CronwheelNoLeader", 30.0),
        ("CronwheelThrottled", 0.05),
        ("CronwheelStatusesWait", 600.0),
    ] {
        assert!((limit_of(alert) - limit).abs() < 1e-12, "{alert}");
    }
    assert!((budget() - 0.001).abs() < 1e-12);
}

#[test]
fn names_of_metrics_are_found_outside_of_quotes() {
    let expression = "rate(cronwheel_jobs{a=\"cronwheel_b\"}[5m]) / cronwheel:runs:x";
    assert_eq!(metrics_in(expression), BTreeSet::from(["cronwheel_jobs".to_owned()]));
    assert_eq!(
        registered_name("cronwheel_lateness_seconds_sum"),
        Some("cronwheel_lateness_seconds")
    );
    assert_eq!(registered_name("cronwheel_other"), None);
    assert!(objects_of(&everything()).len() > 10);
}
