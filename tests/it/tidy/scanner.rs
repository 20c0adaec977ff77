//! A scanner for Rust with the functions that the checks need. It splits code into tokens without comments and
//! literals, separates tests, and finds the names under a path. Tokens keep their line numbers.

/// A word or a character of the code, with its line.
#[derive(Clone, Copy)]
pub(super) struct Token<'a> {
    pub(super) text: &'a str,
    pub(super) line: usize,
}

/// Replaces comments, strings and characters with blanks. Line numbers stay the same.
pub(super) fn blanked(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut code = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        if let Some(end) = opaque_end(&chars, at) {
            let end = end.min(chars.len());
            code.extend(chars[at..end].iter().map(|c| if *c == '\n' { '\n' } else { ' ' }));
            at = end;
        } else {
            code.push(chars[at]);
            at += 1;
        }
    }
    code
}

/// The end of the comment or literal that starts at `at`, if any.
fn opaque_end(chars: &[char], at: usize) -> Option<usize> {
    let next = chars.get(at + 1).copied();
    match (chars[at], next) {
        ('/', Some('/')) => Some(position_from(chars, at, '\n')),
        ('/', Some('*')) => Some(block_comment_end(chars, at)),
        ('"', _) => Some(string_end(chars, at)),
        ('\'', Some('\\')) => Some(position_from(chars, at + 3, '\'') + 1),
        ('\'', _) if chars.get(at + 2) == Some(&'\'') => Some(at + 3),
        ('r' | 'b' | 'c', _) => raw_string_end(chars, at),
        _ => None,
    }
}

fn position_from(chars: &[char], from: usize, wanted: char) -> usize {
    (from..chars.len())
        .find(|&at| chars[at] == wanted)
        .unwrap_or(chars.len())
}

fn block_comment_end(chars: &[char], start: usize) -> usize {
    let (mut depth, mut at) = (0_usize, start);
    while at < chars.len() {
        match (chars[at], chars.get(at + 1)) {
            ('/', Some('*')) => depth += 1,
            ('*', Some('/')) => depth -= 1,
            _ => {
                at += 1;
                continue;
            }
        }
        at += 2;
        if depth == 0 {
            break;
        }
    }
    at
}

fn string_end(chars: &[char], start: usize) -> usize {
    let mut at = start + 1;
    while at < chars.len() && chars[at] != '"' {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    at + 1
}

/// The end of a literal such as `r"..."` or `br#"..."#`. The identifier `r#type` and names that end in `r` are no
/// literals.
fn raw_string_end(chars: &[char], start: usize) -> Option<usize> {
    if start > 0 && is_word(chars[start - 1]) {
        return None;
    }
    let r = if chars[start] == 'r' { start } else { start + 1 };
    if chars.get(r) != Some(&'r') {
        return None;
    }
    let hashes = chars[r + 1..].iter().take_while(|c| **c == '#').count();
    let quote = r + 1 + hashes;
    if chars.get(quote) != Some(&'"') {
        return None;
    }
    let closes =
        |at: &usize| chars[*at] == '"' && chars[at + 1..].iter().take(hashes).filter(|c| **c == '#').count() == hashes;
    Some(
        (quote + 1..chars.len())
            .find(closes)
            .map_or(chars.len(), |at| at + 1 + hashes),
    )
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Splits code into words, `::`, and single characters.
pub(super) fn tokens(code: &str) -> Vec<Token<'_>> {
    let mut found = Vec::new();
    for (number, line) in code.lines().enumerate() {
        let mut rest = line.trim_start();
        while let Some(first) = rest.chars().next() {
            let length = if is_word(first) {
                rest.find(|c| !is_word(c)).unwrap_or(rest.len())
            } else if rest.starts_with("::") {
                2
            } else {
                first.len_utf8()
            };
            found.push(Token {
                text: &rest[..length],
                line: number + 1,
            });
            rest = rest[length..].trim_start();
        }
    }
    found
}

/// Whether the tokens at `at` are `expected`.
pub(super) fn matches_at(tokens: &[Token<'_>], at: usize, expected: &[&str]) -> bool {
    tokens
        .get(at..at + expected.len())
        .is_some_and(|slice| slice.iter().map(|token| token.text).eq(expected.iter().copied()))
}

/// Splits tokens into production code and items under `#[cfg(test)]`.
pub(super) fn split_tests<'a>(tokens: &[Token<'a>]) -> (Vec<Token<'a>>, Vec<Token<'a>>) {
    let (mut production, mut tests, mut at) = (Vec::new(), Vec::new(), 0);
    while at < tokens.len() {
        if matches_at(tokens, at, &["#", "[", "cfg", "(", "test", ")", "]"]) {
            let end = item_end(tokens, at + 7);
            tests.extend_from_slice(&tokens[at..end]);
            at = end;
        } else {
            production.push(tokens[at]);
            at += 1;
        }
    }
    (production, tests)
}

/// The end of the item that starts at `start`: after its body, or after its semicolon.
fn item_end(tokens: &[Token<'_>], start: usize) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(start) {
        match token.text {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && matches!(token.text, "}" | ";") {
            return at + 1;
        }
    }
    tokens.len()
}

/// Returns the names directly under `root` in every path and group: `b` and `c` of `root::b::x` and `root::{c::y}`.
pub(super) fn names_under<'a>(tokens: &[Token<'a>], root: &str) -> Vec<Token<'a>> {
    let mut names = Vec::new();
    for at in (0..tokens.len()).filter(|at| matches_at(tokens, *at, &[root, "::"])) {
        let under = &tokens[at + 2..];
        if matches_at(under, 0, &["{"]) {
            names.extend(names_in_group(under));
        } else {
            names.extend(under.first());
        }
    }
    names
}

fn names_in_group<'a>(group: &[Token<'a>]) -> Vec<Token<'a>> {
    let mut depth = 0_usize;
    let mut names = Vec::new();
    for pair in group.windows(2) {
        match pair[0].text {
            "{" => depth += 1,
            "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
        if depth == 1 && matches!(pair[0].text, "{" | ",") && pair[1].text != "}" {
            names.push(pair[1]);
        }
    }
    names
}

#[test]
fn comments_and_literals_are_blanked_and_lines_kept() {
    let cases = [
        ("a // b\nc", "a\nc"),
        ("a /* b /* c */\n d */ e", "a\n e"),
        ("a /*", "a"),
        (r#"a "b\"c" d"#, "a d"),
        ("a r#\"b\"c\"# d", "a d"),
        ("br\"b\\\" d", "d"),
        (r"'\'' 'x' '\u{1f}' &'a str", "&'a str"),
        ("\"for\" r#type", "r#type"),
    ];
    let words = |line: &str| line.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    for (text, code) in cases {
        let found = blanked(text);
        assert_eq!(found.chars().count(), text.chars().count(), "{text}");
        assert!(
            found.lines().map(words).eq(code.lines().map(words)),
            "{text} became {found}"
        );
    }
}
