//! `shardSelector` of KEP-5866: selects objects by ranges of the hash of their uid or of their namespace.
//!
//! The text is a CEL expression that may contain only `shardRange(<field>, '<start>', '<end>')` and `||`. The results
//! equal those of the server. Only the messages for syntax errors differ.

use std::fmt;

use super::{Stored, selector_error::SelectorError};
use crate::fnv::fnv_1a;

/// The end of the last range: the greatest hash plus one.
const HASHES_END: &str = "0x10000000000000000";
const DIGITS_MAX: usize = 17;
/// The maximum depth of nested brackets.
const DEPTH_MAX: usize = 32;

/// The objects that a list or a watch includes, by hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ShardSelector {
    field: Field,
    ranges: Vec<Range>,
}

/// The hashed field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Uid,
    Namespace,
}

/// A half-open range of hashes. It has 128 bits because the end may be 2^64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Range {
    start: u128,
    end: u128,
}

impl ShardSelector {
    /// Parses the parameter, which is not empty.
    pub(crate) fn parse(text: &str) -> Result<ShardSelector, SelectorError> {
        let parsed = parse(text).map_err(|reason| SelectorError(format!("invalid shard selector: {reason}")))?;
        Ok(parsed)
    }

    pub(crate) fn matches(&self, object: &Stored) -> bool {
        let hash = match self.field {
            Field::Uid => fnv_1a(&object.uid.text()),
            Field::Namespace => fnv_1a(object.key.namespace().unwrap_or_default()),
        };
        let hash = u128::from(hash);
        self.ranges.iter().any(|range| range.start <= hash && hash < range.end)
    }
}

impl Field {
    const ALL: [Field; 2] = [Field::Uid, Field::Namespace];

    fn path(self) -> &'static str {
        match self {
            Field::Uid => "object.metadata.uid",
            Field::Namespace => "object.metadata.namespace",
        }
    }
}

/// Formats the selector as in `shardInfo`.
impl fmt::Display for ShardSelector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, Range { start, end }) in self.ranges.iter().enumerate() {
            let or = if at == 0 { "" } else { " || " };
            write!(
                formatter,
                "{or}shardRange({}, '0x{start:016x}', '0x{end:016x}')",
                self.field.path()
            )?;
        }
        Ok(())
    }
}

/// A part of an expression.
#[derive(Debug)]
enum Expression {
    /// A name, or names joined with dots.
    Path(String),
    Text(String),
    Number(&'static str),
    /// A function with its arguments. Operators are functions too.
    Call(String, Vec<Expression>),
}

impl Expression {
    /// The number of the kind of expression in the server's messages.
    fn kind(&self) -> u8 {
        match self {
            Expression::Call(..) => 1,
            Expression::Path(path) if path.contains('.') => 7,
            Expression::Path(_) => 3,
            Expression::Text(_) | Expression::Number(_) => 5,
        }
    }
}

fn parse(text: &str) -> Result<ShardSelector, String> {
    if text.trim().is_empty() {
        return Err("empty shard selector is not allowed; omit the parameter for unfiltered lists".to_owned());
    }
    let mut parser = Parser { rest: text };
    let expression = parser.alternatives(0)?;
    parser.end()?;
    let mut found = Vec::new();
    ranges(&expression, &mut found)?;
    let Some((field, _)) = found.first().copied() else {
        return Err(SYNTAX.to_owned());
    };
    if let Some((other, _)) = found.iter().find(|(other, _)| *other != field) {
        let (one, other) = (field.path(), other.path());
        return Err(format!(
            "all shard ranges must use the same field, got {one:?} and {other:?}"
        ));
    }
    let ranges = found.into_iter().map(|(_, range)| range).collect();
    Ok(ShardSelector { field, ranges })
}

fn ranges(expression: &Expression, found: &mut Vec<(Field, Range)>) -> Result<(), String> {
    let Expression::Call(function, arguments) = expression else {
        let kind = expression.kind();
        return Err(format!(
            "unexpected expression kind {kind}; expected shardRange() call or || operator"
        ));
    };
    match (function.as_str(), arguments.as_slice()) {
        (OR, arguments) => arguments.iter().try_for_each(|argument| ranges(argument, found)),
        ("shardRange", [field, start, end]) => {
            let field = hashed_field(field)?;
            let (start, end) = (bound(start, "hexStart")?, bound(end, "hexEnd")?);
            let range = Range {
                start: start.0,
                end: end.0,
            };
            if range.start >= range.end {
                return Err(format!("shard range start {} must be less than end {}", start.1, end.1));
            }
            found.push((field, range));
            Ok(())
        }
        ("shardRange", arguments) => Err(format!(
            "shardRange() requires exactly 3 arguments, got {}",
            arguments.len()
        )),
        (function, _) => Err(format!(
            "unsupported function {function:?}; only shardRange() and || are allowed"
        )),
    }
}

fn hashed_field(expression: &Expression) -> Result<Field, String> {
    let Expression::Path(path) = expression else {
        return Err(format!(
            "shardRange() first argument: expected field path (e.g. object.metadata.uid), got expression kind {}",
            expression.kind()
        ));
    };
    Field::ALL
        .into_iter()
        .find(|field| field.path() == path)
        .ok_or_else(|| {
            format!("unsupported field path {path:?}; supported: object.metadata.uid, object.metadata.namespace")
        })
}

/// Returns a bound and its text.
fn bound<'a>(expression: &'a Expression, name: &str) -> Result<(u128, &'a str), String> {
    let text = match expression {
        Expression::Text(text) => text,
        Expression::Number(go_type) => return Err(format!("{name} must be a string literal, got {go_type}")),
        Expression::Path(_) | Expression::Call(..) => {
            let kind = expression.kind();
            return Err(format!(
                "{name} must be a string literal (e.g. '0xff'), got expression kind {kind}"
            ));
        }
    };
    let Some(digits) = text.strip_prefix("0x") else {
        return Err(format!("{name} must have '0x' prefix, got {text:?}"));
    };
    if digits.is_empty() {
        return Err(format!("{name}: hex value is required after '0x'"));
    }
    if digits.len() > DIGITS_MAX {
        let n_digits = digits.len();
        return Err(format!(
            "{name}: hex value too long ({n_digits} chars, max 17): {digits:?}"
        ));
    }
    let is_digit = |character: char| character.is_ascii_digit() || ('a'..='f').contains(&character);
    if let Some(other) = digits.chars().find(|character| !is_digit(*character)) {
        return Err(format!("{name}: invalid hex character \"{other}\" in {text:?}"));
    }
    if digits.len() == DIGITS_MAX && text != HASHES_END {
        return Err(format!(
            "{name}: 17-digit hex value must be '{HASHES_END}' (2^64), got {text:?}"
        ));
    }
    if digits.len() < DIGITS_MAX - 1 {
        return Err(format!(
            "{name} must be a 0x-prefixed 16-digit hex value, got {text:?} (did you mean \"0x{digits:0>16}\"?)"
        ));
    }
    // The digits were checked above.
    Ok((u128::from_str_radix(digits, 16).unwrap_or_default(), text))
}

const OR: &str = "_||_";
const AND: &str = "_&&_";
const SYNTAX: &str = "CEL parse error: Syntax error";

/// Parses an expression from left to right.
struct Parser<'a> {
    rest: &'a str,
}

impl<'a> Parser<'a> {
    /// Consumes a token if it comes next.
    fn take(&mut self, sign: &str) -> bool {
        let rest = self.rest.trim_start().strip_prefix(sign);
        self.rest = rest.unwrap_or(self.rest);
        rest.is_some()
    }

    fn end(&self) -> Result<(), String> {
        if self.rest.trim().is_empty() {
            Ok(())
        } else {
            Err(SYNTAX.to_owned())
        }
    }

    fn alternatives(&mut self, depth: usize) -> Result<Expression, String> {
        self.chain(OR, "||", depth, |parser, depth| {
            parser.chain(AND, "&&", depth, Parser::operand)
        })
    }

    /// Parses operands with one operator between them.
    fn chain(
        &mut self,
        function: &str,
        sign: &str,
        depth: usize,
        mut operand: impl FnMut(&mut Parser<'a>, usize) -> Result<Expression, String>,
    ) -> Result<Expression, String> {
        let mut operands = vec![operand(self, depth)?];
        while self.take(sign) {
            operands.push(operand(self, depth)?);
        }
        match (operands.len(), operands.pop()) {
            (1, Some(only)) => Ok(only),
            (_, last) => {
                operands.extend(last);
                Ok(Expression::Call(function.to_owned(), operands))
            }
        }
    }

    fn operand(&mut self, depth: usize) -> Result<Expression, String> {
        if depth > DEPTH_MAX {
            return Err(SYNTAX.to_owned());
        }
        if self.take("(") {
            let inner = self.alternatives(depth + 1)?;
            return if self.take(")") {
                Ok(inner)
            } else {
                Err(SYNTAX.to_owned())
            };
        }
        for quote in ["'", "\""] {
            if self.take(quote) {
                let (text, rest) = self.rest.split_once(quote).ok_or(SYNTAX)?;
                self.rest = rest;
                return Ok(Expression::Text(text.to_owned()));
            }
        }
        let token = self.token()?;
        if token.starts_with(|character: char| character.is_ascii_digit()) {
            return Ok(Expression::Number(if token.contains('.') {
                "float64"
            } else {
                "int64"
            }));
        }
        if self.take("(") {
            return Ok(Expression::Call(token.to_owned(), self.arguments(depth)?));
        }
        Ok(Expression::Path(token.to_owned()))
    }

    fn arguments(&mut self, depth: usize) -> Result<Vec<Expression>, String> {
        let mut arguments = Vec::new();
        if self.take(")") {
            return Ok(arguments);
        }
        loop {
            arguments.push(self.alternatives(depth + 1)?);
            match (self.take(","), self.take(")")) {
                (true, false) => {}
                (false, true) => return Ok(arguments),
                (true, true) | (false, false) => return Err(SYNTAX.to_owned()),
            }
        }
    }

    /// Parses a number, or names joined with dots.
    fn token(&mut self) -> Result<&'a str, String> {
        let rest = self.rest.trim_start();
        let is_part = |character: char| character.is_ascii_alphanumeric() || matches!(character, '_' | '.');
        let end = rest.find(|character| !is_part(character)).unwrap_or(rest.len());
        if end == 0 {
            return Err(SYNTAX.to_owned());
        }
        let (token, rest) = rest.split_at(end);
        self.rest = rest;
        Ok(token)
    }
}

#[cfg(test)]
mod tests;
