//! Blocks and inline code of a page.

use super::shell::is_assignment;

/// Programs whose name at the beginning of a line makes it a command.
const PROGRAMS: [&str; 14] = [
    "cronwheel",
    "kubectl",
    "helm",
    "make",
    "cargo",
    "docker",
    "skopeo",
    "cosign",
    "gh",
    "git",
    "sha256sum",
    "promtool",
    "echo",
    "for",
];

/// A fenced block.
pub(super) struct Block {
    pub(super) language: String,
    pub(super) text: String,
    /// Whether a comment before the block says that no test runs it.
    pub(super) is_marked: bool,
}

pub(super) fn blocks(page: &str) -> Vec<Block> {
    let mut found = Vec::new();
    let mut open: Option<Block> = None;
    let mut is_marked = false;
    for line in page.lines() {
        let fence = line.trim_start().strip_prefix("```");
        match (fence, open.take()) {
            (Some(_), Some(block)) => found.push(block),
            (Some(language), None) => {
                open = Some(Block {
                    language: language.trim().to_owned(),
                    text: String::new(),
                    is_marked,
                });
            }
            (None, Some(mut block)) => {
                block.text.push_str(line);
                block.text.push('\n');
                open = Some(block);
            }
            (None, None) => {}
        }
        is_marked = line.trim_start().starts_with("<!-- not run: ");
    }
    found
}

/// The commands of a block, each on one line. With a prompt, only the lines with a prompt are commands.
pub(super) fn command_lines(language: &str, block: &str) -> Vec<String> {
    if !["", "console", "sh"].contains(&language) {
        return Vec::new();
    }
    let joined = block.replace("\\\n", " ");
    let has_prompt = joined.lines().any(|line| line.starts_with("$ "));
    let lines = joined.lines().map(str::trim);
    if has_prompt {
        lines
            .filter_map(|line| line.strip_prefix("$ "))
            .map(str::to_owned)
            .collect()
    } else {
        lines.filter(|line| is_command(line)).map(str::to_owned).collect()
    }
}

fn is_command(line: &str) -> bool {
    let mut words = line.split_ascii_whitespace().skip_while(|word| is_assignment(word));
    words.next().is_some_and(|word| PROGRAMS.contains(&word))
}

/// Inline code outside of blocks that begins with `cronwheel` or `make` and has arguments.
pub(super) fn inline_commands(page: &str) -> Vec<String> {
    let mut is_fenced = false;
    let mut found = Vec::new();
    for line in page.lines() {
        let is_fence = line.trim_start().starts_with("```");
        is_fenced ^= is_fence;
        if is_fenced || is_fence {
            continue;
        }
        let code = line.split('`').skip(1).step_by(2);
        let is_inline = |code: &&str| code.starts_with("cronwheel ") || code.starts_with("make ");
        found.extend(code.filter(is_inline).map(|code| code.replace("\\|", "|")));
    }
    found
}
