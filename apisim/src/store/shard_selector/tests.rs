//! Cases that the contract tests do not cover: equivalent forms of an expression, and invalid ones.

use super::{SYNTAX, ShardSelector};

const LOWER: &str = "shardRange(object.metadata.uid, '0x0000000000000000', '0x8000000000000000')";
const UPPER: &str = "shardRange(object.metadata.uid, '0x8000000000000000', '0x10000000000000000')";

fn check(text: &str, expected: &str) {
    assert_eq!(ShardSelector::parse(text).unwrap().to_string(), expected, "{text}");
}

fn check_refused(text: &str, expected: &str) {
    let error = ShardSelector::parse(text).unwrap_err();
    assert_eq!(error.0, format!("invalid shard selector: {expected}"), "{text}");
}

#[test]
fn equivalent_expressions_have_one_canonical_form() {
    let both = format!("{LOWER} || {UPPER}");
    check(LOWER, LOWER);
    check(&both, &both);
    check(&format!(" ( {LOWER} )||({UPPER}) "), &both);
    check(
        "shardRange( object.metadata.namespace ,\"0x0000000000000000\",'0x8000000000000000' )",
        "shardRange(object.metadata.namespace, '0x0000000000000000', '0x8000000000000000')",
    );
}

#[test]
fn syntax_errors_are_refused() {
    for text in [
        "shardRange(",
        "shardRange(a b)",
        "shardRange(a,)",
        "'a",
        "||",
        "a ||",
        &format!("{LOWER} x"),
    ] {
        check_refused(text, SYNTAX);
    }
    check_refused(&"(".repeat(100_000), SYNTAX);
}

#[test]
fn unsupported_expressions_have_distinct_errors() {
    let range = |start: &str, end: &str| format!("shardRange(object.metadata.uid, {start}, {end})");
    for (text, expected) in [
        (range("'0x'", "'0x1'"), "hexStart: hex value is required after '0x'"),
        (
            range("'0x0000000000000000'", "'0x100000000000000000'"),
            "hexEnd: hex value too long (18 chars, max 17): \"100000000000000000\"",
        ),
        (range("1.5", "2"), "hexStart must be a string literal, got float64"),
        (
            LOWER.replace("object.metadata.uid", "'x'"),
            "shardRange() first argument: expected field path (e.g. object.metadata.uid), got expression kind 5",
        ),
        (
            "none()".to_owned(),
            "unsupported function \"none\"; only shardRange() and || are allowed",
        ),
        (
            "x".to_owned(),
            "unexpected expression kind 3; expected shardRange() call or || operator",
        ),
    ] {
        check_refused(&text, expected);
    }
}
