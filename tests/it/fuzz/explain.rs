//! Passes any text as a file to `explain`. Either it is refused with a reason, or the output is valid.

use clap::Parser as _;
use cronwheel::cli::explain::{ExplainArgs, run as explain};
use jiff::Timestamp;
use serde_json::Value;

#[derive(clap::Parser)]
struct ExplainCommand {
    #[command(flatten)]
    args: ExplainArgs,
}

/// The input is a byte that selects the options, followed by YAML or JSON.
pub(crate) fn run(data: &[u8]) {
    let Some((options, text)) = data.split_first() else {
        return;
    };
    let assumed = ["created", "exists", "foreign", "error"][usize::from(options & 3)];
    let assume = format!("--assume=create={assumed}");
    let is_json = options & 4 == 0;
    let format = if is_json { "--output=json" } else { "--output=text" };
    let command = ExplainCommand::parse_from(["explain", "--file=-", &assume, format]);
    let now = Timestamp::from_second(1_780_000_000).expect("an instant");
    let (mut output, mut notes) = (Vec::new(), Vec::new());
    match explain(&command.args, now, text, &mut output, &mut notes) {
        Ok(()) if is_json => {
            let answer: Value = serde_json::from_slice(&output).expect("JSON alone");
            assert!(answer.is_object() || answer.is_array(), "{answer}");
        }
        Ok(()) => assert!(!output.is_empty(), "the answer is empty"),
        Err(error) => assert!(!error.to_string().is_empty(), "refused without a reason"),
    }
}
