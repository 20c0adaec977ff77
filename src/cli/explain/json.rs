//! An explanation as JSON, for programs. Its members are part of the command's contract.

use serde::Serialize;
use serde_json::{Value, value::RawValue};

use super::explanation::{EventLine, Explanation};

#[derive(Serialize)]
#[serde(untagged)]
enum Answers<'a> {
    One(Answer<'a>),
    Several(Vec<Answer<'a>>),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer<'a> {
    decision: &'static str,
    reason: &'static str,
    slot: Option<String>,
    /// The body as it would be sent, with numbers of any length.
    job: Option<&'a RawValue>,
    deletes: Vec<&'a str>,
    status: Option<&'a Value>,
    events: Vec<Event<'a>>,
    next_wakeup: Option<String>,
}

#[derive(Serialize)]
struct Event<'a> {
    r#type: &'static str,
    reason: &'static str,
    message: &'a str,
}

/// Formats one explanation as an object, several as a list.
pub(super) fn document(explanations: &[Explanation]) -> serde_json::Result<String> {
    let answers = match explanations {
        [one] => Answers::One(answer(one)),
        several => Answers::Several(several.iter().map(answer).collect()),
    };
    serde_json::to_string(&answers).map(|text| indented(&text))
}

fn answer(explanation: &Explanation) -> Answer<'_> {
    let instant = |instant: Option<jiff::Timestamp>| instant.map(|instant| instant.to_string());
    Answer {
        decision: explanation.reason.decision().as_str(),
        reason: explanation.reason.meaning().name,
        slot: instant(explanation.slot),
        job: explanation.job.as_ref().map(|job| &*job.body),
        deletes: explanation
            .deletes
            .iter()
            .map(|deletion| deletion.name.as_str())
            .collect(),
        status: explanation.status.as_ref(),
        events: explanation.events.iter().map(event).collect(),
        next_wakeup: instant(explanation.next_wakeup),
    }
}

fn event(event: &EventLine) -> Event<'_> {
    Event {
        r#type: event.event_type.as_str(),
        reason: event.reason.as_str(),
        message: &event.message,
    }
}

/// Formats JSON with one line per member and item. Raw parts keep their tokens, which a parsed value would lose.
fn indented(json: &str) -> String {
    let mut indented = Indented::default();
    let mut characters = json.chars();
    while let Some(character) = characters.next() {
        match character {
            '{' | '[' => indented.open(character),
            '}' | ']' => indented.close(character),
            ',' => {
                indented.text.push(',');
                indented.new_line();
            }
            ':' => indented.text.push_str(": "),
            '"' => {
                indented.begin_value();
                indented.text.push('"');
                while let Some(character) = characters.next() {
                    indented.text.push(character);
                    match character {
                        '"' => break,
                        '\\' => indented.text.extend(characters.next()),
                        _ => {}
                    }
                }
            }
            ' ' | '\t' | '\n' | '\r' => {}
            _ => {
                indented.begin_value();
                indented.text.push(character);
            }
        }
    }
    indented.text
}

#[derive(Default)]
struct Indented {
    text: String,
    depth: usize,
    /// Whether nothing follows the last bracket yet.
    is_empty: bool,
}

impl Indented {
    fn open(&mut self, bracket: char) {
        self.begin_value();
        self.text.push(bracket);
        self.depth += 1;
        self.is_empty = true;
    }

    fn close(&mut self, bracket: char) {
        self.depth = self.depth.saturating_sub(1);
        if !self.is_empty {
            self.new_line();
        }
        self.is_empty = false;
        self.text.push(bracket);
    }

    fn begin_value(&mut self) {
        if self.is_empty {
            self.new_line();
            self.is_empty = false;
        }
    }

    fn new_line(&mut self) {
        self.text.push('\n');
        self.text.extend(std::iter::repeat_n("  ", self.depth));
    }
}
