//! A real Prometheus with given samples.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use serde_json::Value;

use super::vector::{Labels, Vector};

pub(super) struct Prometheus {
    server: testbed::Prometheus,
    folder: PathBuf,
}

/// Why an expression has no result.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The expression is invalid.
    Invalid(String),
    /// The evaluation fails on these samples, for example because two series match one.
    Failed,
}

impl Prometheus {
    /// Stores samples, which are in the format of `OpenMetrics`, and starts Prometheus on them.
    pub(super) fn start(samples: &str) -> Prometheus {
        let file = super::tempfile(samples);
        let folder = file.with_extension("prometheus");
        fs::create_dir_all(&folder).unwrap();
        store(&file, &folder.join("data"));
        fs::remove_file(file).unwrap();
        // By default, Prometheus would delete the samples because of their age.
        let server = testbed::Prometheus::start(&folder, "{}", &["--storage.tsdb.retention.time=100y"]);
        Prometheus {
            server: server.unwrap(),
            folder,
        }
    }

    /// The value of an expression at an instant, in seconds.
    pub(super) fn value(&self, expression: &str, at: i64) -> Result<Vector, Refusal> {
        let (code, body) = self
            .server
            .client()
            .query("query", expression, &format!("&time={at}"))
            .unwrap();
        match code {
            200 => Ok(vector(&serde_json::from_str::<Value>(&body).unwrap()["data"])),
            400 => Err(Refusal::Invalid(body)),
            _ => Err(Refusal::Failed),
        }
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn store(samples: &Path, folder: &Path) {
    let output = Command::new(testbed::find_or_build_promtool().unwrap())
        .args(["tsdb", "create-blocks-from", "openmetrics", "--quiet"])
        .args([samples, folder])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// A vector or a scalar of Prometheus.
fn vector(data: &Value) -> Vector {
    let number = |sample: &Value| sample[1].as_str().unwrap().parse::<f64>().unwrap();
    if data["resultType"] == "scalar" {
        return Vector::from([(Labels::new(), number(&data["result"]))]);
    }
    let series = data["result"].as_array().unwrap().iter();
    let labels = |series: &Value| serde_json::from_value::<Labels>(series["metric"].clone()).unwrap();
    series
        .map(|series| (labels(series), number(&series["value"])))
        .collect()
}
