//! An explanation as JSON, for programs: its members are part of the command's contract.

use serde_json::{Value, json};

use super::explanation::{EventLine, Explanation};

/// One explanation is an object, several are a list.
pub(super) fn document(explanations: &[Explanation]) -> Value {
    match explanations {
        [one] => object(one),
        several => several.iter().map(object).collect(),
    }
}

fn object(explanation: &Explanation) -> Value {
    let instant = |instant: Option<jiff::Timestamp>| instant.map(|instant| instant.to_string());
    json!({
        "decision": explanation.reason.decision().as_str(),
        "reason": explanation.reason.meaning().name,
        "slot": instant(explanation.slot),
        "job": explanation.job,
        "deletes": explanation.deletes.iter().map(|deletion| &deletion.name).collect::<Vec<&String>>(),
        "status": explanation.status,
        "events": explanation.events.iter().map(event).collect::<Vec<Value>>(),
        "nextWakeup": instant(explanation.next_wakeup),
    })
}

fn event(event: &EventLine) -> Value {
    json!({
        "type": event.event_type.as_str(),
        "reason": event.reason.as_str(),
        "message": event.message,
    })
}
