//! Documentation pages that are generated from code, completely or between two marks. Tests compare the pages with the
//! code, or regenerate them on request.

mod constants;

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The environment variable that makes the tests regenerate the pages.
const WRITE: &str = "CRONWHEEL_WRITE_DOCS";
/// The marks around the generated part of a page.
const BEGIN: &str = "<!-- made by a test -->\n";
const END: &str = "<!-- end -->\n";

pub(super) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

/// Asserts that a page contains the generated text, or writes it.
pub(super) fn assert_current(page: &str, generated: &str) {
    let path = root().join(page);
    let former = fs::read_to_string(&path).unwrap();
    let current = filled(&former, generated).unwrap_or_else(|| panic!("{page} has no {BEGIN:?} followed by {END:?}"));
    if std::env::var_os(WRITE).is_some() {
        fs::write(&path, current).unwrap();
    } else {
        assert!(
            former == current,
            "{page} is outdated; regenerate it: {WRITE}=1 cargo test --test it page"
        );
    }
}

/// Replaces the text between the marks of a page.
fn filled(former: &str, generated: &str) -> Option<String> {
    let (before, rest) = former.split_once(BEGIN)?;
    let (_, after) = rest.split_once(END)?;
    Some(format!("{before}{BEGIN}\n{}\n\n{END}{after}", generated.trim()))
}

#[test]
fn page_is_filled_only_between_its_marks() {
    let former = format!("# Head\n\n{BEGIN}old\n{END}\ntail\n");
    let page = filled(&former, "new\n").unwrap();
    assert_eq!(page, format!("# Head\n\n{BEGIN}\nnew\n\n{END}\ntail\n"));
    assert_eq!(filled(&page, "new").unwrap(), page);
    assert_eq!(filled("# Head\n", "new"), None);
}

// The page has the commands of a build with all features.
#[cfg(feature = "dev")]
mod cli {
    //! `docs/reference/cli.md`: the long help of every command.

    use std::fmt::Write as _;

    use clap::{Command, CommandFactory};
    use cronwheel::cli::args::Cli;

    #[test]
    fn page_of_commands_is_up_to_date() {
        let mut cli = Cli::command().term_width(100);
        cli.build();
        let mut page = String::new();
        describe(&mut page, &mut cli, 2);
        super::assert_current("docs/reference/cli.md", &page);
    }

    fn describe(page: &mut String, command: &mut Command, depth: usize) {
        let name = command.get_bin_name().unwrap_or("cronwheel").to_owned();
        let help = command.render_long_help().to_string();
        let help: Vec<&str> = help.lines().map(str::trim_end).collect();
        let _ = writeln!(
            page,
            "{} `{name}`\n\n```\n{}\n```\n",
            "#".repeat(depth),
            help.join("\n").trim()
        );
        for inner in command.get_subcommands_mut().filter(|inner| inner.get_name() != "help") {
            describe(page, inner, depth + 1);
        }
    }
}

mod metrics {
    //! `docs/reference/metrics.md`: the table of metrics.

    use std::fmt::Write as _;

    use cronwheel::telemetry::metrics::table::{ALL, MetricKind};

    #[test]
    fn page_of_metrics_is_up_to_date() {
        let mut page =
            String::from("| Metric | Kind | Labels | Description | When it moves |\n|---|---|---|---|---|\n");
        for metric in ALL {
            let kind = match metric.kind {
                MetricKind::Counter => "counter",
                MetricKind::Gauge => "gauge",
                MetricKind::Histogram => "histogram",
            };
            let labels: Vec<String> = metric.labels.iter().map(|label| format!("`{label}`")).collect();
            let _ = writeln!(
                page,
                "| `{}` | {kind} | {} | {} | {} |",
                metric.name,
                labels.join(", "),
                metric.help,
                metric.when_it_moves
            );
        }
        super::assert_current("docs/reference/metrics.md", &page);
    }
}
