//! Runs the commands of the pages that need no cluster and whose output does not depend on the time, and compares the
//! output with the page.

use std::process::Command;

use super::{page::blocks, pages, shell::words};
use crate::pages::root;

/// A command after a prompt, with the lines below it.
fn quoted(block: &str) -> Option<(&str, &str)> {
    let (command, output) = block.strip_prefix("$ ")?.split_once('\n')?;
    Some((command, output))
}

/// `next` and `explain` of files at a given time, and refused schedules.
fn is_repeatable(command: &str, output: &str) -> bool {
    let at_a_time = command.contains(" --from 2") || command.contains(" --now 2");
    let is_refused = command.starts_with("cronwheel next '") && output.starts_with("cronwheel: refused");
    command.starts_with("cronwheel ") && !command.contains(" backfill ") && (at_a_time || is_refused)
}

#[test]
fn outputs_on_the_pages_are_those_of_the_program() {
    let mut n_outputs = 0;
    for path in pages() {
        let page = std::fs::read_to_string(&path).unwrap();
        for block in blocks(&page) {
            let Some((command, expected)) = quoted(&block.text) else {
                continue;
            };
            if !is_repeatable(command, expected) {
                continue;
            }
            n_outputs += 1;
            let output = Command::new(env!("CARGO_BIN_EXE_cronwheel"))
                .args(&words(command)[1..])
                .current_dir(root())
                .output()
                .unwrap();
            let text = [output.stdout, output.stderr].concat();
            assert_eq!(
                String::from_utf8_lossy(&text),
                expected,
                "{}: {command}",
                path.display()
            );
        }
    }
    assert!(n_outputs >= 3, "only {n_outputs} outputs were compared");
}
