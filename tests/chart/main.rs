//! The chart in `deploy/helm/cronwheel`, rendered by the helm of the test bed.

#![allow(clippy::unwrap_used, reason = "tests")]

mod alerts;
mod autoscaling;
mod built_in;
mod dashboards;
mod manifests;
mod monitoring;
mod mutants;
mod objects;
mod page;
mod permissions;
mod pods;
mod prometheus;
mod readme;
mod refusals;
mod schema;
mod sweeps;
mod test_hook;
mod values;
mod vector;

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::LazyLock,
};

use serde_json::{Value, json};

/// An environment variable that makes the tests regenerate files from the chart.
const WRITE: &str = "CRONWHEEL_WRITE_DOCS";

static HELM: LazyLock<PathBuf> = LazyLock::new(|| testbed::find_or_build_helm().unwrap());

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

fn chart() -> PathBuf {
    root().join("deploy/helm/cronwheel")
}

/// Runs helm. Returns its standard output, or its standard error if it fails.
fn helm(arguments: &[&str]) -> Result<String, String> {
    // Ignores clusters and settings of the user.
    let output = Command::new(&*HELM)
        .args(arguments)
        .env("KUBECONFIG", "/dev/null")
        .env("HELM_NAMESPACE", "")
        .env("HELM_PLUGINS", "/dev/null")
        .output()
        .unwrap();
    if output.status.success() {
        Ok(String::from_utf8(output.stdout).unwrap())
    } else {
        Err(String::from_utf8(output.stderr).unwrap())
    }
}

/// Renders a chart as a release in `kube-system`, with these values in place of its defaults, and without the objects of
/// `helm test`.
fn render_as(release: &str, chart: &Path, values: &Value, more: &[&str]) -> Result<String, String> {
    render_all_as(release, chart, values, &[more, &["--skip-tests"]].concat())
}

/// The same with the objects of `helm test`.
fn render_all_as(release: &str, chart: &Path, values: &Value, more: &[&str]) -> Result<String, String> {
    let file = tempfile(&values.to_string());
    let arguments = [
        "template",
        release,
        chart.to_str().unwrap(),
        "--namespace=kube-system",
        "--values",
        file.to_str().unwrap(),
    ];
    let rendered = helm(&[&arguments, more].concat());
    fs::remove_file(file).unwrap();
    rendered
}

fn render(values: &Value) -> Result<String, String> {
    render_as("cronwheel", &chart(), values, &[])
}

/// Renders this chart with the objects of `helm test`.
fn render_all(values: &Value) -> Result<String, String> {
    render_all_as("cronwheel", &chart(), values, &[])
}

/// The objects in a rendered text.
fn objects(text: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(text).unwrap()
}

/// The objects that the chart renders with these values.
fn objects_of(values: &Value) -> Vec<Value> {
    objects(&render(values).unwrap())
}

/// The object of a kind with this name.
fn named<'o>(objects: &'o [Value], kind: &str, name: &str) -> &'o Value {
    let is_it = |object: &&Value| object["kind"] == kind && object["metadata"]["name"] == name;
    let found = objects.iter().find(is_it);
    found.unwrap_or_else(|| panic!("no {kind} {name}"))
}

/// The only object of a kind.
fn the<'o>(objects: &'o [Value], kind: &str) -> &'o Value {
    let mut found = objects.iter().filter(|object| object["kind"] == kind);
    let only = found.next().unwrap_or_else(|| panic!("no {kind}"));
    assert!(found.next().is_none(), "a second {kind}");
    only
}

/// Writes a text to a temporary file with a unique name.
fn tempfile(text: &str) -> PathBuf {
    use std::sync::atomic::{AtomicU32, Ordering};
    static N_FILES: AtomicU32 = AtomicU32::new(0);
    let number = N_FILES.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("cronwheel-chart-{}-{number}", std::process::id()));
    fs::write(&path, text).unwrap();
    path
}

/// Values that enable everything that is disabled by default, except for the page.
fn everything() -> Value {
    json!({
        "autoscaling": {"enabled": true},
        "priorityClass": {"create": true, "name": "cronwheel"},
        "metrics": {"podMonitor": {"enabled": true}, "prometheusRule": {"enabled": true}, "dashboards": {"enabled": true}},
        "networkPolicy": {"enabled": true},
        "fencePolicy": {"enabled": true},
    })
}

/// Values that enable the page, with a claim for its history.
fn with_page() -> Value {
    json!({"ui": {"enabled": true, "history": {"persistentVolumeClaim": {"create": true}}}})
}

/// Asserts that a file has the generated text. With [`WRITE`], writes the file.
fn check_or_write(path: &Path, generated: &str) {
    if std::env::var_os(WRITE).is_some() {
        fs::write(path, generated).unwrap();
        return;
    }
    let is_equal = fs::read_to_string(path).is_ok_and(|current| current == generated);
    assert!(
        is_equal,
        "{} does not match the chart; regenerate it: {WRITE}=1 cargo test --test chart",
        path.display()
    );
}
