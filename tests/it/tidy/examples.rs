//! Examples for each check, with the expected findings.

use super::*;

/// Runs a check on `text` as the file `path`. Asserts the lines of its findings.
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
fn path_to_a_higher_layer_is_found() {
    check(layer_findings, "src/schedule.rs", "use crate::shard::Input;", &[1]);
    check(
        layer_findings,
        "src/schedule/due/tests.rs",
        "fn f() {\n    crate::shard::go()\n}",
        &[2],
    );
    check(
        layer_findings,
        "src/shard/a.rs",
        "use crate::{\n  schedule::{b, kube_api},\n  coordination::c,\n  controller,\n};",
        &[3, 4],
    );
    check(
        layer_findings,
        "src/kube_api/a.rs",
        "use crate::{kube_api::b, schedule, shard, coordination};",
        &[],
    );
    check(
        layer_findings,
        "src/kube_api/a.rs",
        "pub(crate) fn f() {} // crate::controller",
        &[],
    );
    check(
        layer_findings,
        "src/controller/a.rs",
        "use crate::{kube_api, controller, telemetry};",
        &[],
    );
    check(layer_findings, "src/controller/a.rs", "use crate::cli;", &[1]);
    check(layer_findings, "src/kube_api/a.rs", "use crate::telemetry;", &[1]);
    let telemetry = "use crate::controller::{\n  clock::Clock,\n  lane,\n};\nuse crate::{kube_api, cli};";
    check(layer_findings, "src/telemetry/a.rs", telemetry, &[5, 3]);
    check(layer_findings, "src/main.rs", "use crate::anything;", &[]);
}

#[test]
fn explain_uses_objects_and_only_the_command_line_uses_it() {
    let lower = "use crate::{explain::a, kube_api::objects::decode, schedule, shard};";
    check(layer_findings, "src/explain/a.rs", lower, &[]);
    for name in ["cli", "controller", "coordination", "telemetry", "kube_api::Decoder"] {
        for path in ["src/explain.rs", "src/explain/a/tests.rs"] {
            check(layer_findings, path, &format!("use crate::{name};"), &[1]);
        }
    }
    let clients = "use crate::kube_api::{\n  client,\n  objects,\n};";
    check(layer_findings, "src/explain/a.rs", clients, &[2]);
    for (path, lines) in [
        ("src/cli/a.rs", &[][..]),
        ("src/controller/a.rs", &[1]),
        ("src/telemetry/a.rs", &[1]),
        ("src/kube_api/a.rs", &[1]),
        ("src/shard/a.rs", &[1]),
    ] {
        check(layer_findings, path, "use crate::explain::Survey;", lines);
    }
}

#[test]
fn observe_uses_no_controller_and_only_the_command_line_uses_it() {
    let lower = "use crate::{observe::a, explain::b, kube_api::{objects::c, latest_value::d}, schedule, shard};";
    check(layer_findings, "src/observe/a.rs", lower, &[]);
    for name in [
        "cli",
        "controller::clock",
        "coordination",
        "telemetry",
        "kube_api::leases",
    ] {
        for path in ["src/observe.rs", "src/observe/fleet/tests.rs"] {
            check(layer_findings, path, &format!("use crate::{name};"), &[1]);
        }
    }
    for (path, lines) in [
        ("src/cli/a.rs", &[][..]),
        ("src/controller/a.rs", &[1]),
        ("src/explain/a.rs", &[1]),
        ("src/telemetry/a.rs", &[1]),
        ("src/kube_api/a.rs", &[1]),
    ] {
        check(layer_findings, path, "use crate::observe::fleet::Fleet;", lines);
    }
}

#[test]
fn impurity_is_found_in_pure_parts_of_a_layer() {
    for (path, lines) in [
        ("src/observe/fleet.rs", &[1][..]),
        ("src/observe/fleet/rows.rs", &[1]),
        ("src/observe/fleet/tests.rs", &[]),
        ("src/observe/report/html.rs", &[1]),
        ("src/observe/viewer.rs", &[]),
        ("src/observe/observer.rs", &[]),
        ("src/observe/observer/links.rs", &[1]),
    ] {
        check(purity_findings, path, "use tokio::sync;", lines);
    }
}

#[test]
fn impurity_is_found_only_in_the_pure_layers() {
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
        "#[derive(clap::Args)]",
        "use std::{fs, io};",
    ] {
        check(purity_findings, "src/shard/a.rs", text, &[1]);
        check(purity_findings, "src/explain/a.rs", text, &[1]);
        check(purity_findings, "src/schedule.rs", text, &[1]);
        check(purity_findings, "src/shard/a/tests.rs", text, &[]);
        check(purity_findings, "src/kube_api/a.rs", text, &[]);
        check(
            purity_findings,
            "src/shard/a.rs",
            &format!("#[cfg(test)]\nmod tests {{ {text} }}\n"),
            &[],
        );
    }
    check(
        purity_findings,
        "src/shard/a.rs",
        "use hashbrown::HashTable; InstantOutcome::Created; now.kube",
        &[],
    );
    check(
        purity_findings,
        "src/shard/a.rs",
        "#[cfg(test)]\nmod tests;\ntokio::f()",
        &[3],
    );
}

#[test]
fn spawn_is_found_outside_the_spawning_file() {
    check(
        spawn_findings,
        "src/controller/a.rs",
        "tokio::spawn(f());\ntask::spawn_blocking(g);",
        &[1, 2],
    );
    check(
        spawn_findings,
        "src/kube_api/a.rs",
        "use tokio::{\n  sync,\n  spawn,\n};",
        &[3],
    );
    check(
        spawn_findings,
        "src/controller/a.rs",
        "let mut set = JoinSet::new();\nset.spawn(f());",
        &[2],
    );
    check(
        spawn_findings,
        "src/controller/a.rs",
        "thread::scope(|s| s.spawn(f))",
        &[],
    );
    check(
        spawn_findings,
        "src/controller/a.rs",
        "#[cfg(test)]\nmod tests { fn f() { tokio::spawn(g()); } }",
        &[],
    );
    check(spawn_findings, SPAWNER, "tokio::spawn(f());", &[]);
}

#[test]
fn undeclared_file_is_found() {
    let source = |path: &str, text: &str| Source {
        path: path.to_owned(),
        text: text.to_owned(),
    };
    let sources = [
        source("src/lib.rs", "mod a; // mod d;"),
        source("src/a.rs", "mod b;"),
        source("src/a/b.rs", ""),
        source("src/a/c.rs", ""),
        source("src/d.rs", ""),
    ];
    let orphans = [
        "src/a/c.rs:1: no module declares it",
        "src/d.rs:1: no module declares it",
    ];
    assert_eq!(orphan_findings(&sources), orphans);
}

#[test]
fn missing_heads_generic_names_and_leftovers_are_found() {
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
fn real_time_sleep_is_found_only_in_tests() {
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
    check(sleep_findings, "tests/e2e/cases/firing.rs", "sleep(x)", &[]);
    check(sleep_findings, "tests/it/http.rs", "fn sleep() {}", &[]);
}

#[test]
fn long_file_is_found_unless_the_ratchet_allows_it() {
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
fn duplicate_metric_is_found() {
    let row = "    A: Gauge \"cronwheel_a\" []\n        \"Help on cronwheel_a\",\n";
    check(metric_findings, METRICS, row, &[]);
    check(metric_findings, METRICS, &format!("{row}{row}"), &[3]);
    check(metric_findings, METRICS, "nothing", &[1]);
}
