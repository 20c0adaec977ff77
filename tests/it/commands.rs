//! Checks the commands in README and docs: programs, flags, targets, values and files exist, and a test runs the
//! commands of kubectl and helm.
//!
//! A comment `<!-- not run: reason -->` before a block says that no test runs its commands. Their flags are checked too.

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::{CommandFactory as _, error::ErrorKind};
use cronwheel::cli::args::Cli;
use serde_json::Value;

use crate::pages::root;

mod outputs;
mod page;
mod shell;

use page::{Block, blocks, inline_commands};
use shell::{commands, words};

/// The folders and files with commands for users and contributors.
const PAGES: [&str; 7] = [
    "README.md",
    "CONTRIBUTING.md",
    "deploy/helm/cronwheel/README.md",
    "docs/start",
    "docs/operate",
    "docs/reference",
    "docs/contribute",
];
/// The help of all commands. It is made by a test.
const GENERATED: &str = "docs/reference/cli.md";
/// Programs that need no check.
const SHELL: [&str; 5] = ["echo", "export", "for", "done", "sed"];
/// Commands of which the text in a file shows that a test runs them.
const RUN_BY_A_TEST: [(&str, &str, &str); 11] = [
    ("kubectl apply", "tests/it/dev/kubectl.rs", r#""apply", "-f""#),
    ("kubectl get", "tests/it/dev/kubectl.rs", r#""get", "#),
    (
        "kubectl label namespace",
        "tests/install/release.rs",
        r#""label", "namespace""#,
    ),
    (
        "kubectl delete validatingadmissionpolicybinding",
        "tests/e2e/cases/built_in_policy.rs",
        r#""delete", "validatingadmissionpolicybinding""#,
    ),
    ("helm install", "tests/install/cases.rs", r#""install""#),
    ("helm upgrade", "tests/install/cases.rs", r#""upgrade""#),
    ("helm rollback", "tests/install/cases.rs", r#""rollback""#),
    ("helm uninstall", "tests/install/objects.rs", r#""uninstall""#),
    ("helm test", "tests/install/helm_test.rs", r#""test""#),
    ("helm template", "tests/chart/main.rs", r#""template""#),
    ("promtool test", "tests/chart/alerts.rs", r#""test", "rules""#),
];

/// What clap calls errors and is none.
const ANSWERS: [ErrorKind; 2] = [ErrorKind::DisplayHelp, ErrorKind::DisplayVersion];
/// The errors of a command that leaves values out, or has words in their place.
const LEFT_OUT: [ErrorKind; 4] = [
    ErrorKind::MissingRequiredArgument,
    ErrorKind::ValueValidation,
    ErrorKind::InvalidValue,
    ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand,
];

/// What commands may refer to.
struct Known {
    makefile: String,
    manifest: String,
    values: Value,
}

impl Known {
    fn read() -> Self {
        let read = |path: &str| fs::read_to_string(root().join(path)).unwrap();
        Self {
            makefile: read("Makefile"),
            manifest: read("Cargo.toml"),
            values: serde_saphyr::from_str(&read("deploy/helm/cronwheel/values.yaml")).unwrap(),
        }
    }

    /// Returns what is wrong with one command.
    fn fault(&self, command: &[String], is_marked: bool) -> Option<String> {
        let arguments: Vec<&str> = command.iter().map(String::as_str).collect();
        match arguments.as_slice() {
            ["cronwheel" | "/cronwheel" | "target/release/cronwheel", rest @ ..]
            | ["kubectl", "cronwheel", rest @ ..] => fault_of_flags(rest, false),
            ["make", rest @ ..] => rest.iter().find_map(|word| self.fault_of_target(word)),
            ["cargo", rest @ ..] => self.fault_of_cargo(rest),
            ["helm", rest @ ..] => self
                .fault_of_values(rest)
                .or_else(|| fault_of_run(&arguments, is_marked)),
            ["kubectl", rest @ ..] => {
                let inner = rest.iter().position(|word| *word == "--").map(|at| &command[at + 2..]);
                inner
                    .and_then(|inner| self.fault(inner, is_marked))
                    .or_else(|| fault_of_run(&arguments, is_marked))
            }
            [program, ..] if SHELL.contains(program) => None,
            _ => fault_of_run(&arguments, is_marked),
        }
    }

    fn fault_of_target(&self, word: &str) -> Option<String> {
        let is_target = word.contains('=') || self.makefile.contains(&format!("\n{word}:"));
        (!is_target).then(|| format!("the Makefile has no target {word}"))
    }

    /// `cargo run` without a package runs cronwheel.
    fn fault_of_cargo(&self, arguments: &[&str]) -> Option<String> {
        let after = |flag: &str| {
            arguments
                .iter()
                .position(|word| *word == flag)
                .map(|at| arguments[at + 1])
        };
        if let Some(package) = after("-p").or_else(|| after("--package")) {
            let exists = root().join(package).join("Cargo.toml").exists();
            return (!exists).then(|| format!("no package {package}"));
        }
        if let Some(test) = after("--test") {
            let exists = self.manifest.contains(&format!("name = \"{test}\""));
            return (!exists).then(|| format!("no test {test}"));
        }
        let at = arguments.iter().position(|word| *word == "--")?;
        (arguments[0] == "run").then(|| fault_of_flags(&arguments[at + 1..], false))?
    }

    /// The keys of `--set` are values of the chart.
    fn fault_of_values(&self, arguments: &[&str]) -> Option<String> {
        let set = arguments.windows(2).filter(|pair| pair[0] == "--set");
        set.map(|pair| pair[1].split('=').next().unwrap_or_default())
            .find_map(|key| {
                let pointer = format!("/{}", key.replace('.', "/"));
                (self.values.pointer(&pointer).is_none()).then(|| format!("the chart has no value {key}"))
            })
    }

    /// The keys of an example of values exist. Other YAML is left out: one of its first keys is none of the chart.
    fn fault_of_example(&self, yaml: &str) -> Option<String> {
        let example: Value = serde_saphyr::from_str(yaml).ok()?;
        let is_of_the_chart = example.as_object()?.keys().all(|key| self.values.get(key).is_some());
        is_of_the_chart.then(|| unknown_key(&example, &self.values))?
    }
}

/// Returns the first key that the defaults do not have. Defaults that are empty or no objects admit any.
fn unknown_key(example: &Value, defaults: &Value) -> Option<String> {
    let (example, defaults) = (example.as_object()?, defaults.as_object()?);
    if defaults.is_empty() {
        return None;
    }
    example.iter().find_map(|(key, value)| match defaults.get(key) {
        Some(default) => unknown_key(value, default),
        None => Some(format!("the chart has no value {key}")),
    })
}

/// Parses arguments with the command line of cronwheel. An inline command may leave out values, or name placeholders.
fn fault_of_flags(arguments: &[&str], is_inline: bool) -> Option<String> {
    let is_placeholder = |word: &str| word.len() > 1 && word.chars().all(|letter| letter.is_ascii_uppercase());
    let filled = arguments.iter().map(|word| match word.split_once('=') {
        Some((flag, value)) if is_placeholder(value) => format!("{flag}=name"),
        _ if is_placeholder(word) => "name".to_owned(),
        _ => (*word).to_owned(),
    });
    let error = Cli::command()
        .try_get_matches_from(std::iter::once("cronwheel".to_owned()).chain(filled))
        .err()?;
    let is_accepted = ANSWERS.contains(&error.kind()) || (is_inline && LEFT_OUT.contains(&error.kind()));
    (!is_accepted).then(|| error.to_string().lines().next().unwrap_or_default().to_owned())
}

/// A command of another program is run by a test, or its block is marked.
fn fault_of_run(arguments: &[&str], is_marked: bool) -> Option<String> {
    let text = without_global_flags(arguments).join(" ");
    let is_run = RUN_BY_A_TEST.iter().any(|(start, _, _)| {
        text.strip_prefix(start)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    });
    (!is_run && !is_marked).then(|| "no test runs it, and no `<!-- not run: reason -->` is before it".to_owned())
}

/// Leaves out the flags of kubectl that stand before its verb.
fn without_global_flags<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    let mut kept = Vec::new();
    let mut rest = arguments.iter();
    while let Some(word) = rest.next() {
        if kept.len() == 1 && ["-n", "--namespace", "--kubeconfig"].contains(word) {
            rest.next();
        } else {
            kept.push(*word);
        }
    }
    kept
}

/// The pages in [`PAGES`].
fn pages() -> Vec<PathBuf> {
    let mut found = Vec::new();
    for place in PAGES {
        let path = root().join(place);
        if path.is_dir() {
            found.extend(fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
        } else {
            found.push(path);
        }
    }
    let is_page = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "md");
    found.retain(|path| is_page(path) && *path != root().join(GENERATED));
    found
}

/// Returns the faults of a page, and the number of its commands.
fn faults(known: &Known, path: &Path, text: &str) -> (Vec<String>, usize) {
    let mut faults = Vec::new();
    let mut n_commands = 0;
    for Block {
        language,
        text,
        is_marked,
    } in blocks(text)
    {
        if language == "yaml" {
            faults.extend(known.fault_of_example(&text));
        }
        for line in page::command_lines(&language, &text) {
            for command in commands(&words(&line)) {
                n_commands += 1;
                let fault = known.fault(&command, is_marked);
                faults.extend(fault.map(|fault| format!("{}: {line}: {fault}", path.display())));
            }
        }
    }
    for line in inline_commands(text) {
        for command in commands(&words(&line)) {
            n_commands += 1;
            let arguments: Vec<&str> = command.iter().map(String::as_str).collect();
            let fault = match arguments.as_slice() {
                ["cronwheel", rest @ ..] => fault_of_flags(rest, true),
                ["make", target, ..] => known.fault_of_target(target),
                _ => None,
            };
            faults.extend(fault.map(|fault| format!("{}: {line}: {fault}", path.display())));
        }
    }
    (faults, n_commands)
}

#[test]
fn every_command_of_the_pages_exists_and_is_run_or_marked() {
    let known = Known::read();
    let (mut all, mut n_commands) = (Vec::new(), 0);
    for path in pages() {
        let (faults, n) = faults(&known, &path, &fs::read_to_string(&path).unwrap());
        all.extend(faults);
        n_commands += n;
    }
    assert!(n_commands > 200, "only {n_commands} commands were found");
    assert!(all.is_empty(), "{}", all.join("\n"));
}

#[test]
fn tests_run_the_listed_commands() {
    for (command, file, text) in RUN_BY_A_TEST {
        let source = fs::read_to_string(root().join(file)).unwrap();
        assert!(source.contains(text), "{command}: {file} has no {text}");
    }
}

#[test]
fn faults_of_commands_are_found() {
    let known = Known::read();
    for (page, expected) in [
        ("```\ncronwheel next --zone UTC\n```\n", "--zone"),
        ("```\nkubectl exec a -- /cronwheel shards --none\n```\n", "--none"),
        ("```\ncargo run --release -- dev --cron\n```\n", "--cron"),
        ("```\ncargo test --test none\n```\n", "no test none"),
        ("```\nmake nothing\n```\n", "no target nothing"),
        ("```\nhelm install a b --set image.none=1\n```\n", "no value image.none"),
        ("```yaml\nui: {none: true}\n```\n", "no value none"),
        ("```\nkubectl drain node\n```\n", "no test runs it"),
        ("```\n$ nothing\n```\n", "no test runs it"),
        ("`cronwheel next --zone UTC`\n", "--zone"),
        ("`make nothing`\n", "no target nothing"),
    ] {
        let (found, _) = faults(&known, Path::new("page"), page);
        assert!(found.iter().any(|fault| fault.contains(expected)), "{page}: {found:?}");
    }
    for page in [
        "```\ncronwheel explain NAME -n shop  # why\n```\n",
        "<!-- not run: needs a node -->\n```\nkubectl drain node\n```\n",
        "```\nkubectl -n shop get jobs | cronwheel next -f - -n 2\n```\n",
        "```text\ncronwheel dev ran for 2m\n```\n",
        "`cronwheel backfill NAME` and `make check`\n",
    ] {
        let (found, n_commands) = faults(&known, Path::new("page"), page);
        assert!(found.is_empty(), "{page}: {found:?}");
        assert!(n_commands > 0 || page.contains("text"), "{page}");
    }
}
