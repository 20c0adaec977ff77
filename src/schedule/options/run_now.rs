//! `run-now`: a run that a user asks for by a token.

/// The annotation of a CronJob with the tokens of the last runs that were asked for and are answered: their Jobs were
/// created, or they were refused. The newest is first, with commas between. cronwheel writes it together with the status.
pub const RUN_DONE_ANNOTATION: &str = "cronwheel.dev/run-now-done";

/// Longest token, in bytes.
const TOKEN_MAX_BYTES: usize = 63;

/// How many answered tokens are remembered, so that a token that comes back starts nothing.
pub(crate) const TOKENS_REMEMBERED_MAX: usize = 10;

/// The answered tokens after this one was answered. No token has a comma.
pub(crate) fn with_token_done(done: &str, token: &str) -> String {
    let others = tokens_of(done).filter(|other| *other != token);
    let tokens = std::iter::once(token).chain(others).take(TOKENS_REMEMBERED_MAX);
    tokens.collect::<Vec<_>>().join(",")
}

/// The answered tokens in the value of [`RUN_DONE_ANNOTATION`]. Any user may have written it.
pub fn tokens_of(done: &str) -> impl Iterator<Item = &str> {
    done.split(',').filter(|token| !token.is_empty())
}

/// Whether the value of [`RUN_DONE_ANNOTATION`] is one that cronwheel writes; others would take memory that nothing bounds.
pub(crate) fn may_be_done(done: &str) -> bool {
    done.len() <= TOKENS_REMEMBERED_MAX * (TOKEN_MAX_BYTES + 1)
}

/// Reads a token: a value of a label that is not empty.
pub(crate) fn read_token(value: &str) -> Result<Box<str>, String> {
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
    fn the_last_ten_tokens_are_remembered_the_newest_first() {
        let longest = |n: usize| format!("{n}").repeat(TOKEN_MAX_BYTES);
        let mut done = String::new();
        for n in 0..10 {
            done = with_token_done(&done, &longest(n));
        }
        assert!(may_be_done(&done) && tokens_of(&done).any(|token| token == longest(0)));
        done = with_token_done(&done, "b");
        let tokens: Vec<&str> = tokens_of(&done).collect();
        assert_eq!((tokens.len(), tokens[0], tokens[9]), (10, "b", &*longest(1)));
        // One that is answered again is the newest.
        assert_eq!(with_token_done("b,a", "a"), "a,b");
        assert!(!may_be_done(&",".repeat(1_000)));
    }

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
