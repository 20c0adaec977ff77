//! `run-now`: a run that a user asks for by a token.

/// The annotation of a CronJob with the token of the last run that was asked for and is answered: its Job was created, or
/// it was refused. cronwheel writes it together with the status.
pub const RUN_DONE_ANNOTATION: &str = "cronwheel.dev/run-now-done";

/// Longest token, in bytes.
pub(crate) const TOKEN_MAX_BYTES: usize = 63;

/// Reads a token: a value of a label that is not empty.
pub(super) fn read_token(value: &str) -> Result<Box<str>, String> {
    let is_inner = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let is_outer = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
    let bytes = value.as_bytes();
    let is_valid = bytes.iter().copied().all(is_inner) && is_outer(bytes.first()) && is_outer(bytes.last());
    if is_valid && bytes.len() <= TOKEN_MAX_BYTES {
        Ok(value.into())
    } else {
        Err(format!(
            "a token has 1 to {TOKEN_MAX_BYTES} letters, digits, '-', '_' and '.', and begins and ends with a letter or digit"
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_a_label_value_that_is_not_empty() {
        let longest = "x".repeat(TOKEN_MAX_BYTES);
        for token in ["a", "7", "2026-12-24T18.00_a", &*longest] {
            assert_eq!(read_token(token).as_deref(), Ok(token));
        }
        let too_long = "x".repeat(TOKEN_MAX_BYTES + 1);
        for value in ["", "-a", "a-", ".", "a b", "a/b", "a:b", "ä", "a\n", &*too_long] {
            let problem = read_token(value).unwrap_err();
            assert!(problem.starts_with("a token has 1 to 63 letters"), "{value}: {problem}");
        }
    }
}
