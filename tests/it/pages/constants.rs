//! `docs/contribute/constants.md`: the constants of handover, pacing, lists and lanes, with their bounds.

use std::{fmt::Write as _, fs};

use super::{assert_current, root};

/// The sections of the page, with the files or folders whose constants they list.
const PARTS: &[(&str, &[&str])] = &[
    (
        "Handover and takeover",
        &[
            "shard/held_shards/takeovers.rs",
            "shard/held_shards/sealing.rs",
            "shard/namespaces.rs",
            "coordination/election/handover.rs",
            "coordination/election/adoption.rs",
        ],
    ),
    (
        "Lanes and queues",
        &[
            "controller/lane.rs",
            "controller/dispatcher.rs",
            "controller/dispatcher/backlog.rs",
            "controller/in_flight.rs",
            "controller/dispatcher/request.rs",
            "controller/status_batcher.rs",
            "controller/status_batcher/pending.rs",
            "controller/event_task.rs",
            "controller/event_task/budget.rs",
            "controller/event_task/delivery.rs",
        ],
    ),
    (
        "Pacing of requests",
        &["controller/pacing.rs", "controller/pacing/limit.rs"],
    ),
    (
        "Back-off of a CronJob",
        &[
            "shard/state/back_off.rs",
            "shard/state/answers.rs",
            "shard/state/status.rs",
        ],
    ),
    (
        "Lists, watches and connections",
        &[
            "kube_api/client.rs",
            "kube_api/http.rs",
            "kube_api/page_sizes.rs",
            "kube_api/retry.rs",
            "shard/held_shards/pause.rs",
            "kube_api/watch/collection.rs",
            "kube_api/watch/current.rs",
            "controller/version_task.rs",
        ],
    ),
    (
        "CronJobs in trouble",
        &[
            "shard/trouble.rs",
            "shard/state/troubles.rs",
            "shard/held_shards/survey.rs",
        ],
    ),
    ("Shutdown", &["controller/shutdown.rs"]),
];

/// The definition of a constant.
struct Constant {
    name: String,
    value: String,
    /// The comment, in one line.
    comment: String,
}

/// Returns the numeric constants and durations of a file, without its tests. A comment applies to all constants
/// directly below it.
fn constants(text: &str) -> Vec<Constant> {
    let (mut found, mut comment, mut is_new) = (Vec::new(), String::new(), true);
    for line in text.lines().map(str::trim).take_while(|line| *line != "#[cfg(test)]") {
        if let Some(part) = line.strip_prefix("///") {
            if std::mem::take(&mut is_new) {
                comment.clear();
            }
            comment.push_str(part);
        } else {
            is_new = true;
            match definition(line) {
                Some((name, value)) => found.push(Constant {
                    name,
                    value,
                    comment: comment.trim().to_owned(),
                }),
                None => comment.clear(),
            }
        }
    }
    found
}

/// Parses the name and the value of a constant that is a number or a duration.
fn definition(line: &str) -> Option<(String, String)> {
    let (_, rest) = line
        .split_once("const ")
        .filter(|(before, _)| before.is_empty() || before.starts_with("pub"))?;
    let (name, rest) = rest.split_once(": ")?;
    let (kind, value) = rest.split_once(" = ")?;
    let is_listed = matches!(
        kind,
        "Duration" | "SignedDuration" | "usize" | "u32" | "u64" | "i64" | "f64"
    );
    is_listed.then(|| (name.to_owned(), formatted(name, value.trim_end_matches(';'))))
}

/// Formats a value for readers.
fn formatted(name: &str, value: &str) -> String {
    let mebibytes = value.strip_suffix(" << 20").filter(|_| name.contains("BYTES"));
    if let Some(mebibytes) = mebibytes {
        return format!("{mebibytes} MiB");
    }
    let units = [
        ("from_millis", "ms"),
        ("from_secs", "s"),
        ("from_mins", "min"),
        ("from_hours", "h"),
    ];
    for (constructor, unit) in units {
        if let Some((_, count)) = value.split_once(&format!("{constructor}(")) {
            return format!("{} {unit}", count.trim_end_matches(')'));
        }
    }
    if let Some(shift) = value.strip_prefix("1 << ") {
        return format!("2^{shift}");
    }
    let parts = value.split(' ').map(|part| part.trim_end_matches(".0"));
    let parts: Vec<String> = parts.map(with_commas).collect();
    parts.join(" ")
}

/// Separates groups of digits by commas. A name stays as it is.
fn with_commas(part: &str) -> String {
    if part.starts_with(|first: char| first.is_ascii_digit()) {
        part.replace('_', ",")
    } else {
        part.to_owned()
    }
}

#[test]
fn page_of_constants_is_up_to_date() {
    let mut page = String::new();
    for (part, files) in PARTS {
        let _ = writeln!(
            page,
            "## {part}\n\n| Constant | Value | Purpose and bound |\n|---|---|---|"
        );
        for file in *files {
            let text = fs::read_to_string(root().join("src").join(file)).unwrap();
            for group in constants(&text).chunk_by(|one, next| one.comment == next.comment) {
                let comment = &group[0].comment;
                assert!(!comment.is_empty(), "src/{file}: {} has no comment", group[0].name);
                // Comments contain rustdoc links.
                let comment = comment.replace("[`", "`").replace("`]", "`");
                let names: Vec<_> = group
                    .iter()
                    .map(|constant| format!("[`{}`](../../src/{file})", constant.name))
                    .collect();
                let values: Vec<_> = group.iter().map(|constant| constant.value.as_str()).collect();
                let _ = writeln!(page, "| {} | {} | {comment} |", names.join(", "), values.join("; "));
            }
        }
        page.push('\n');
    }
    assert_current("docs/contribute/constants.md", &page);
}

#[test]
fn constant_values_are_formatted_for_readers() {
    for (line, name, value) in [
        ("const A: Duration = Duration::from_secs(2);", "A", "2 s"),
        (
            "pub(super) const B: SignedDuration = SignedDuration::from_millis(200);",
            "B",
            "200 ms",
        ),
        ("pub const C_BYTES_MAX: usize = 64 << 20;", "C_BYTES_MAX", "64 MiB"),
        ("const D: i64 = 30_000;", "D", "30,000"),
        ("const E: f64 = 8.0;", "E", "8"),
        ("const F: f64 = 1.0 / 16.0;", "F", "1 / 16"),
        ("const G: usize = 1 << 14;", "G", "2^14"),
        ("const H: usize = D_MAX / 2;", "H", "D_MAX / 2"),
    ] {
        assert_eq!(definition(line), Some((name.to_owned(), value.to_owned())));
    }
    assert_eq!(definition("let a: u32 = 1;"), None);
    assert_eq!(definition("const NAME: &str = \"x\";"), None);
}
