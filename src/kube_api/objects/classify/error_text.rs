//! The text of errors.

use std::{error::Error, fmt::Write as _, io};

use super::connection::{UNREACHABLE, connection_problem};

/// Maximum size of a message that is passed on: messages go into Events, whose size is limited.
pub const MESSAGE_MAX_BYTES: usize = 1024;

/// Returns why a connection failed, without the request that needed it, or else the text of the error.
pub fn cause_text(error: &(dyn Error + 'static)) -> String {
    connection_problem(error).unwrap_or_else(|| error_text(error))
}

/// Returns the text of an error and its sources, each once. From an error of the transport on, the text is its cause
/// and remedy, if they are known. The text of an answer of the API server is its message and code.
pub fn error_text(error: &(dyn Error + 'static)) -> String {
    let mut text = String::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let is_of_transport = error.is::<kube::Error>() || error.is::<io::Error>();
        let problem = is_of_transport.then(|| connection_problem(error)).flatten();
        let known = problem.or_else(|| error.downcast_ref::<kube::Error>().and_then(answer_text));
        let part = known.clone().unwrap_or_else(|| error.to_string());
        // The cause names the problem again, and more exactly.
        if known.is_some() && text.ends_with(UNREACHABLE) {
            text.truncate(text.len() - UNREACHABLE.len());
            text.push_str(&part);
        } else if !text.contains(&part) {
            let separator = if text.is_empty() { "" } else { ": " };
            // Writing to a string does not fail.
            let _ = write!(text, "{separator}{part}");
        }
        next = error.source().filter(|_| known.is_none());
    }
    bounded(&text)
}

/// Returns the message and the code of an answer of the API server. The text of `kube` repeats them as `Debug` output.
fn answer_text(error: &kube::Error) -> Option<String> {
    if let kube::Error::Api(status) = error {
        return Some(format!("{} ({})", status.message, status.code));
    }
    None
}

/// Cuts a message to [`MESSAGE_MAX_BYTES`].
pub(in crate::kube_api) fn bounded(message: &str) -> String {
    message[..message.floor_char_boundary(MESSAGE_MAX_BYTES)].to_owned()
}
