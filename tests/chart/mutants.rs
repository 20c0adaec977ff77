//! Small changes of a Prometheus expression. A test of the expression must detect each of them.

use std::collections::BTreeSet;

/// An expression with one change.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Mutant {
    /// A description of the change.
    pub(super) change: String,
    pub(super) expression: String,
}

/// Functions and aggregations, and their replacements.
const FUNCTIONS: [(&str, &[&str]); 9] = [
    ("rate", &["increase", "irate"]),
    ("increase", &["rate"]),
    ("sum", &["max", "avg"]),
    ("max", &["min", "sum"]),
    ("min", &["max", "sum"]),
    ("count", &["sum"]),
    ("min_over_time", &["max_over_time"]),
    ("max_over_time", &["min_over_time"]),
    ("changes", &["count_over_time"]),
];

/// Operators, and their replacements.
const OPERATORS: [(&str, &[&str]); 10] = [
    ("/", &["*"]),
    ("*", &["/"]),
    ("-", &["+"]),
    ("+", &["-"]),
    ("and", &["unless"]),
    ("or", &["unless"]),
    ("unless", &["and"]),
    ("==", &["!="]),
    (">", &["<", ">="]),
    (">=", &["<", ">"]),
];

/// Windows, and their replacements.
const WINDOWS: [(&str, &str); 14] = [
    ("$__rate_interval", "$__range"),
    ("$__range", "$__rate_interval"),
    ("2m", "5m"),
    ("5m", "10m"),
    ("10m", "5m"),
    ("15m", "5m"),
    ("15m:1m", "5m:1m"),
    ("30m", "1h"),
    ("1h", "5m"),
    ("2h", "1h"),
    ("6h", "2h"),
    ("1d", "6h"),
    ("3d", "1d"),
    ("30d", "5m"),
];

/// All changes of an expression. `other_metrics` returns the replacements of a metric.
pub(super) fn of(expression: &str, other_metrics: impl Fn(&str) -> Vec<String>) -> Vec<Mutant> {
    let text = Text::new(expression);
    let mut mutants = BTreeSet::new();
    for (position, token) in text.tokens.iter().enumerate() {
        let mut change_to = |new: &str| {
            mutants.insert(text.replace(position..position + 1, new, &format!("{token} becomes {new}")));
        };
        let next = text.tokens.get(position + 1).copied();
        for new in [other_metrics(token), replacements(token, next)].concat() {
            change_to(&new);
        }
        mutants.extend(text.changed_matcher(position));
        mutants.extend(text.changed_labels(position));
        mutants.extend(text.without_operand(position));
    }
    mutants.into_iter().collect()
}

/// The replacements of a token that is neither a metric nor a label.
fn replacements(token: &str, next: Option<&str>) -> Vec<String> {
    let found = |table: &[(&str, &[&str])]| {
        let entry = table.iter().find(|(old, _)| *old == token);
        entry.map_or_else(Vec::new, |(_, new)| new.iter().map(ToString::to_string).collect())
    };
    if let Some(window) = token.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        let (_, new) = WINDOWS.iter().find(|(old, _)| *old == window).expect("a known window");
        return vec![format!("[{new}]")];
    }
    if let Ok(number) = token.parse::<f64>() {
        return if number == 0.0 {
            vec!["1".to_owned()]
        } else {
            vec![(number * 1.5).to_string(), (number * 0.5).to_string()]
        };
    }
    let is_call = next.is_some_and(|next| next == "(" || next.trim().is_empty());
    let functions = if is_call { found(&FUNCTIONS) } else { Vec::new() };
    [functions, found(&OPERATORS)].concat()
}

/// The tokens of an expression. Their concatenation is its text.
struct Text<'e> {
    tokens: Vec<&'e str>,
}

impl<'e> Text<'e> {
    fn new(mut rest: &'e str) -> Text<'e> {
        let mut tokens = Vec::new();
        while let Some(first) = rest.chars().next() {
            let (token, after) = rest.split_at(length_of_token(first, rest));
            tokens.push(token);
            rest = after;
        }
        Text { tokens }
    }

    fn replace(&self, range: std::ops::Range<usize>, new: &str, change: &str) -> Mutant {
        let before = self.tokens[..range.start].concat();
        let after = self.tokens[range.end..].concat();
        Mutant {
            change: format!("{change}, at {}", before.len()),
            expression: format!("{before}{new}{after}"),
        }
    }

    /// Changes of a label matcher that begins here: without the matcher, with its opposite, and without one of its
    /// values.
    fn changed_matcher(&self, position: usize) -> Vec<Mutant> {
        let Some([label, operator, value]) = self.tokens.get(position..position + 3) else {
            return Vec::new();
        };
        let is_matcher = ["=", "=~"].contains(operator) && value.starts_with('"');
        if !is_matcher {
            return Vec::new();
        }
        let end = position + 3 + usize::from(self.tokens.get(position + 3) == Some(&","));
        let without = self.replace(position..end, "", &format!("without {label}{operator}{value}"));
        let opposite = if *operator == "=" { "!=" } else { "!~" };
        let denied = self.replace(
            position + 1..position + 2,
            opposite,
            &format!("{label}{operator}{value} is denied"),
        );
        let values: Vec<&str> = value.trim_matches('"').split('|').collect();
        let n_values = values.len();
        let fewer = (0..n_values).filter(|_| n_values > 1).map(|left_out| {
            let kept = values.iter().enumerate().filter(|(index, _)| *index != left_out);
            let kept: Vec<&str> = kept.map(|(_, value)| *value).collect();
            let new = format!("\"{}\"", kept.join("|"));
            self.replace(
                position + 2..position + 3,
                &new,
                &format!("{label} without {}", values[left_out]),
            )
        });
        [without, denied].into_iter().chain(fewer).collect()
    }

    /// Changes of the labels of `by (…)` and `on (…)` that begin here: without one label, and with another one.
    fn changed_labels(&self, position: usize) -> Vec<Mutant> {
        let keyword = self.tokens[position];
        if !["by", "on"].contains(&keyword) {
            return Vec::new();
        }
        let open = position + usize::from(self.tokens[position + 1].trim().is_empty()) + 1;
        let close = open + self.tokens[open..].iter().position(|token| *token == ")").unwrap_or(0);
        let inside = self.tokens[open + 1..close].concat();
        let labels: Vec<&str> = inside.split(',').map(str::trim).collect();
        let with = |labels: &[&str], change: &str| {
            self.replace(
                open + 1..close,
                &labels.join(", "),
                &format!("{keyword} ({inside}): {change}"),
            )
        };
        let without = labels.iter().map(|left_out| {
            let kept: Vec<&str> = labels.iter().filter(|label| *label != left_out).copied().collect();
            with(&kept, &format!("without {left_out}"))
        });
        // `instance` is a label of some series. `version` is a label of only one side of an operator.
        let more = if keyword == "by" { "instance" } else { "version" };
        let more = (!labels.contains(&more)).then(|| with(&[&labels[..], &[more]].concat(), &format!("with {more}")));
        without.chain(more).collect()
    }

    /// The expression without the left and without the right operand of an operator at this position.
    fn without_operand(&self, position: usize) -> Vec<Mutant> {
        let Some(rank) = rank_of(self.tokens[position]) else {
            return Vec::new();
        };
        let end = self.end_of_operand(position, rank);
        let start = self.start_of_operand(position, rank);
        let mut right = position + 1;
        let next = self.tokens[right..].iter().find(|token| !token.trim().is_empty());
        if next.is_some_and(|next| ["on", "ignoring"].contains(next)) {
            right += self.tokens[right..].iter().position(|token| *token == ")").unwrap_or(0) + 1;
        }
        let operator = self.tokens[position];
        let operands = [
            (self.tokens[right..end].concat(), "left"),
            (self.tokens[start..position].concat(), "right"),
        ];
        let is_number = |operand: &str| operand.trim().starts_with(|first: char| first.is_ascii_digit());
        operands
            .into_iter()
            .filter(|(kept, _)| !is_number(kept))
            .map(|(kept, side)| {
                let change = format!("without the {side} of {operator}");
                self.replace(start..end, &format!(" {} ", kept.trim()), &change)
            })
            .collect()
    }

    fn start_of_operand(&self, position: usize, rank: u8) -> usize {
        let mut depth = 0;
        for index in (0..position).rev() {
            match self.tokens[index] {
                ")" | "}" => depth += 1,
                "(" | "{" | "," if depth == 0 => return index + 1,
                "(" | "{" => depth -= 1,
                token if depth == 0 && rank_of(token).is_some_and(|other| other < rank) => return index + 1,
                _ => {}
            }
        }
        0
    }

    fn end_of_operand(&self, position: usize, rank: u8) -> usize {
        let mut depth = 0;
        for index in position + 1..self.tokens.len() {
            match self.tokens[index] {
                "(" | "{" => depth += 1,
                ")" | "}" | "," if depth == 0 => return index,
                ")" | "}" => depth -= 1,
                token if depth == 0 && rank_of(token).is_some_and(|other| other <= rank) => return index,
                _ => {}
            }
        }
        self.tokens.len()
    }
}

/// The precedence of an operator.
fn rank_of(token: &str) -> Option<u8> {
    match token {
        "or" => Some(1),
        "and" | "unless" => Some(2),
        "==" | ">" | ">=" => Some(3),
        "+" | "-" => Some(4),
        "*" | "/" => Some(5),
        _ => None,
    }
}

fn length_of_token(first: char, rest: &str) -> usize {
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || "_:.$".contains(letter);
    let run = |belongs: &dyn Fn(char) -> bool| rest.find(|letter| !belongs(letter)).unwrap_or(rest.len());
    match first {
        '"' => {
            let mut is_escaped = false;
            let end = rest.char_indices().skip(1).find(|(_, letter)| {
                let ends = *letter == '"' && !is_escaped;
                is_escaped = *letter == '\\' && !is_escaped;
                ends
            });
            end.map_or(rest.len(), |(end, _)| end + 1)
        }
        '[' => rest.find(']').map_or(rest.len(), |end| end + 1),
        '=' | '!' | '<' | '>' => run(&|letter| "=!<>~".contains(letter)),
        first if first.is_whitespace() => run(&char::is_whitespace),
        first if is_word(first) => run(&is_word),
        first => first.len_utf8(),
    }
}

#[test]
fn every_part_of_an_expression_is_changed() {
    let other = |token: &str| Vec::from_iter((token == "a_total").then(|| "b_total".to_owned()));
    let expression = r#"sum by (x) (rate(a_total{job=~"$job", code="1|2"}[5m])) > 14.5 or on (y) vector(0)"#;
    let mutants = of(expression, other);
    let expressions: BTreeSet<&str> = mutants.iter().map(|mutant| &*mutant.expression).collect();
    for (old, new) in [
        ("a_total", "b_total"),
        ("sum by", "max by"),
        ("(x)", "()"),
        ("(x)", "(x, instance)"),
        ("rate", "increase"),
        (r#"job=~"$job","#, ""),
        ("=~", "!~"),
        (r#"code="1|2""#, ""),
        ("1|2", "1"),
        ("[5m]", "[10m]"),
        (" > ", " >= "),
        ("14.5", "21.75"),
        (" > 14.5 ", ""),
        (" or ", " unless "),
        (" or on (y) vector(0)", ""),
        ("(y)", "()"),
        ("vector(0)", "vector(1)"),
    ] {
        let expected = expression.replacen(old, new, 1);
        let is_there = expressions
            .iter()
            .any(|found| found.replace(' ', "") == expected.replace(' ', ""));
        assert!(is_there, "{expected} is not in {expressions:#?}");
    }
    assert!(expressions.contains(" vector(0) "), "{expressions:#?}");
    assert!(!expressions.contains(expression));
}

#[test]
fn operand_ends_at_an_operator_of_lower_precedence() {
    let mutants = of("a / b > 1 and c or d", |_| Vec::new());
    let without: Vec<&str> = mutants
        .iter()
        .filter(|mutant| mutant.change.starts_with("without"))
        .map(|mutant| &*mutant.expression)
        .collect();
    for expected in ["a > 1 and c or d", "c or d", "a / b > 1 or d", "a / b > 1 and c", "d"] {
        let is_there = without
            .iter()
            .any(|found| found.replace(' ', "") == expected.replace(' ', ""));
        assert!(is_there, "{expected} is not in {without:?}");
    }
}
