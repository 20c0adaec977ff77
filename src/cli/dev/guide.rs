//! The first lines of the output: addresses, and commands to try in another terminal.

use std::path::Path;

/// The example in the repository.
const EXAMPLE: &str = "examples/hello.yaml";

/// The width of the names of addresses.
const NAME_COLUMNS: usize = 13;

/// What the first lines say.
#[derive(Clone, Debug)]
pub(super) struct Guide<'a> {
    /// The URL of the page.
    pub(super) page: String,
    /// The URL of the API server.
    pub(super) api_server: String,
    /// The URL of the metrics.
    pub(super) metrics: String,
    /// The command by which this program was started.
    pub(super) program: &'a str,
    pub(super) kubeconfig: &'a Path,
    /// Whether `--cronjobs` fills namespaces.
    pub(super) is_filled: bool,
}

impl Guide<'_> {
    /// Returns the lines.
    pub(super) fn lines(&self) -> Vec<String> {
        let addresses = [
            ("page", &self.page),
            ("API server", &self.api_server),
            ("metrics", &self.metrics),
        ];
        let addresses = addresses.map(|(name, address)| format!("{name:<NAME_COLUMNS$}{address}"));
        let commands = self.commands().into_iter().map(|command| format!("  {command}"));
        let mut lines = Vec::from(addresses);
        lines.push("Try, in another terminal:".to_owned());
        lines.extend(commands);
        lines.push("Ctrl-C ends it. Each minute has a line:".to_owned());
        lines
    }

    /// The CronJob `hello` of the commands exists after the first one.
    fn commands(&self) -> Vec<String> {
        let kubeconfig = quoted(&self.kubeconfig.display().to_string());
        let kubectl = format!("kubectl --kubeconfig {kubeconfig}");
        if self.is_filled {
            return vec![format!("{kubectl} get cronjobs,jobs -A")];
        }
        let create = if Path::new(EXAMPLE).exists() {
            format!("apply -f {EXAMPLE}")
        } else {
            "create cronjob hello --image=busybox --schedule='* * * * *' -- echo hello".to_owned()
        };
        let program = quoted(self.program);
        vec![
            format!("{kubectl} {create}"),
            format!("{kubectl} get cronjobs,jobs"),
            format!("{program} explain hello --kubeconfig {kubeconfig}"),
        ]
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

#[cfg(test)]
mod tests {
    use super::*;

    fn guide(is_filled: bool) -> Guide<'static> {
        Guide {
            page: "http://127.0.0.1:6441".to_owned(),
            api_server: "http://127.0.0.1:6440".to_owned(),
            metrics: "http://127.0.0.1:38699/metrics".to_owned(),
            program: "target/release/cronwheel",
            kubeconfig: Path::new("my k"),
            is_filled,
        }
    }

    #[test]
    fn the_first_lines_have_addresses_and_commands() {
        let expected = [
            "page         http://127.0.0.1:6441",
            "API server   http://127.0.0.1:6440",
            "metrics      http://127.0.0.1:38699/metrics",
            "Try, in another terminal:",
            "  kubectl --kubeconfig 'my k' apply -f examples/hello.yaml",
            "  kubectl --kubeconfig 'my k' get cronjobs,jobs",
            "  target/release/cronwheel explain hello --kubeconfig 'my k'",
            "Ctrl-C ends it. Each minute has a line:",
        ];
        assert_eq!(guide(false).lines(), expected);
    }

    #[test]
    fn with_many_cron_jobs_the_command_lists_all_namespaces() {
        let commands = ["kubectl --kubeconfig 'my k' get cronjobs,jobs -A"];
        assert_eq!(guide(true).commands(), commands);
    }

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
}
