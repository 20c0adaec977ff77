//! The commands that the screen suggests for another terminal. They depend on the state of the first CronJob.

use std::path::Path;

use super::figures::{Figures, Subject};

/// The example in the repository.
const EXAMPLE: &str = "examples/hello.yaml";

/// The beginnings of the commands.
#[derive(Clone, Debug)]
pub(super) struct Hints {
    /// `kubectl` with the kubeconfig.
    kubectl: String,
    /// The command by which this program was started.
    program: String,
    kubeconfig: String,
    /// The command that creates a first CronJob.
    create: String,
    /// Whether the CronJobs of all namespaces are listed.
    is_for_all: bool,
}

impl Hints {
    /// Creates the hints for a program, the path of a kubeconfig, and whether `--cronjobs` fills namespaces.
    pub(super) fn new(program: &str, kubeconfig: &Path, is_for_all: bool) -> Hints {
        let create = if Path::new(EXAMPLE).exists() {
            format!("apply -f {EXAMPLE}")
        } else {
            "create cronjob hello --image=busybox --schedule='* * * * *' -- echo hello".to_owned()
        };
        let kubeconfig = quoted(&kubeconfig.display().to_string());
        Hints {
            kubectl: format!("kubectl --kubeconfig {kubeconfig}"),
            program: quoted(program),
            kubeconfig,
            create,
            is_for_all,
        }
    }

    /// Returns the commands that fit the state, the most useful last.
    pub(super) fn commands(&self, figures: &Figures) -> Vec<String> {
        let kubectl = &self.kubectl;
        let scope = if self.is_for_all { " -A" } else { "" };
        let get = format!("{kubectl} get cronjobs,jobs{scope}");
        match &figures.subject {
            Some(subject) => vec![get, self.next_step(subject)],
            None if self.is_for_all => vec![get],
            None => vec![format!("{kubectl} {}", self.create)],
        }
    }

    fn next_step(&self, subject: &Subject) -> String {
        let Hints {
            kubectl,
            program,
            kubeconfig,
            ..
        } = self;
        let name = &subject.name;
        let namespace = match subject.namespace.as_str() {
            "default" => String::new(),
            other => format!(" -n {other}"),
        };
        let suspend = |value: &str| {
            let patch = format!(r#"'{{"spec":{{"suspend":{value}}}}}'"#);
            format!("{kubectl}{namespace} patch cronjob {name} -p {patch}")
        };
        if subject.is_suspended {
            suspend("false")
        } else if !subject.has_run {
            format!("{program} explain {name}{namespace} --kubeconfig {kubeconfig}")
        } else if !subject.has_manual_job {
            format!("{kubectl}{namespace} create job manual --from=cronjob/{name}")
        } else {
            suspend("true")
        }
    }
}

/// Quotes a word for a shell.
fn quoted(word: &str) -> String {
    let is_plain = |character: char| character.is_alphanumeric() || "-_./+,:@".contains(character);
    if word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// Wraps a command into lines that a shell reads as one: broken at spaces outside quotes, indented.
pub(super) fn wrapped(command: &str, columns: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = "  ".to_owned();
    for word in words(command) {
        // The space before the word, and the space and the backslash after it.
        let has_room = line.len() + 1 + word.len() + 2 <= columns;
        if !has_room && !line.trim().is_empty() {
            lines.push(format!("{line} \\"));
            line = String::from("    ");
        }
        if !line.trim().is_empty() {
            line.push(' ');
        }
        line += word;
    }
    lines.push(line);
    lines
}

/// Splits at spaces outside single quotes.
fn words(command: &str) -> Vec<&str> {
    let mut is_quoted = false;
    let splits = command.split(move |character| {
        is_quoted ^= character == '\'';
        character == ' ' && !is_quoted
    });
    splits.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_quoted_for_the_shell() {
        for (path, expected) in [
            ("cronwheel-dev.kubeconfig", "cronwheel-dev.kubeconfig"),
            ("/tmp/a_b/c+d", "/tmp/a_b/c+d"),
            ("my files/k", "'my files/k'"),
            ("it's", r"'it'\''s'"),
            ("$HOME/k", "'$HOME/k'"),
        ] {
            assert_eq!(quoted(path), expected);
        }
    }

    #[test]
    fn hints_follow_the_steps_of_the_user() {
        let hints = Hints {
            create: "apply -f examples/hello.yaml".to_owned(),
            ..Hints::new("target/release/cronwheel", Path::new("k"), false)
        };
        let commands = |subject: Option<Subject>| {
            hints.commands(&Figures {
                subject,
                ..Figures::default()
            })
        };
        assert_eq!(commands(None), ["kubectl --kubeconfig k apply -f examples/hello.yaml"]);
        let mut subject = Subject {
            namespace: "default".to_owned(),
            name: "hello".to_owned(),
            is_suspended: false,
            has_run: false,
            has_manual_job: false,
        };
        let mut check = |change: fn(&mut Subject), expected: &str| {
            change(&mut subject);
            let get = "kubectl --kubeconfig k get cronjobs,jobs";
            assert_eq!(commands(Some(subject.clone())), [get, expected]);
        };
        check(|_| {}, "target/release/cronwheel explain hello --kubeconfig k");
        check(
            |subject| subject.has_run = true,
            "kubectl --kubeconfig k create job manual --from=cronjob/hello",
        );
        check(
            |subject| subject.has_manual_job = true,
            r#"kubectl --kubeconfig k patch cronjob hello -p '{"spec":{"suspend":true}}'"#,
        );
        check(
            |subject| subject.is_suspended = true,
            r#"kubectl --kubeconfig k patch cronjob hello -p '{"spec":{"suspend":false}}'"#,
        );
        check(
            |subject| subject.namespace = "shop".to_owned(),
            r#"kubectl --kubeconfig k -n shop patch cronjob hello -p '{"spec":{"suspend":false}}'"#,
        );
    }

    #[test]
    fn with_many_cron_jobs_the_hint_lists_all_namespaces() {
        let hints = Hints::new("cronwheel", Path::new("k"), true);
        let expected = ["kubectl --kubeconfig k get cronjobs,jobs -A"];
        assert_eq!(hints.commands(&Figures::default()), expected);
    }

    #[test]
    fn long_commands_are_wrapped_with_backslashes() {
        let command = "kubectl --kubeconfig k create cronjob hello --schedule='* * * * *' -- echo hello";
        assert_eq!(
            wrapped(command, 40),
            [
                "  kubectl --kubeconfig k create \\",
                "    cronjob hello \\",
                "    --schedule='* * * * *' -- echo \\",
                "    hello"
            ]
        );
        assert_eq!(wrapped(command, 200), [format!("  {command}")]);
        for columns in 0..100 {
            let joined = wrapped(command, columns).join("\n").replace(" \\\n    ", " ");
            assert_eq!(joined, format!("  {command}"), "{columns}");
        }
    }
}
