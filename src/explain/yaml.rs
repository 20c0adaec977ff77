//! Reads YAML as `kubectl` does: converted to JSON, with the booleans and octal numbers of YAML 1.1, times as strings, the
//! last of equal keys, and each document for itself.

use serde_json::{Number, Value};

/// Maximum number of documents in one input: more CronJobs than the largest clusters have.
const DOCUMENTS_MAX: usize = 1 << 20;

/// Maximum number of nodes of a small input, including those that aliases repeat.
const NODES_MIN: usize = 250_000;

/// The same for one of several documents that are read alone.
const NODES_OF_DOCUMENT_MIN: usize = 10_000;

/// Maximum nesting; an API server accepts no more in an object.
const DEPTH_MAX: usize = 100;

/// What the documents of a text contain, in their order.
#[derive(Debug, Default)]
pub(super) struct Contents {
    /// Documents that are not empty. The error of one that is not YAML has the problem, its line in the text, and the fix.
    pub(super) documents: Vec<Result<Value, String>>,
    /// Keys that occur twice.
    pub(super) notes: Vec<String>,
}

/// Parses all documents.
pub(super) fn parse(text: &str) -> Contents {
    let mut contents = Contents::default();
    let whole = parse_part(text, 0, NODES_MIN, &mut contents.notes);
    let parts = parts(text);
    match whole {
        Err(_) if parts.len() > 1 => {}
        Err(problem) => {
            contents.documents.push(Err(problem));
            return contents;
        }
        Ok(values) => {
            contents.documents.extend(values.into_iter().map(Ok));
            return contents;
        }
    }
    for (first_line, part) in parts {
        match parse_part(part, first_line, NODES_OF_DOCUMENT_MIN, &mut contents.notes) {
            Ok(values) => contents.documents.extend(values.into_iter().map(Ok)),
            Err(problem) => contents.documents.push(Err(problem)),
        }
    }
    contents
}

/// Splits a text at the lines that begin with `---`. Returns the number of lines before each part, and its text.
fn parts(text: &str) -> Vec<(usize, &str)> {
    let mut parts = Vec::new();
    let (mut start, mut start_line, mut at) = (0, 0, 0);
    for (line_number, line) in text.split_inclusive('\n').enumerate() {
        let is_separator = line
            .strip_prefix("---")
            .is_some_and(|rest| rest.trim_start().len() < rest.len() || rest.is_empty());
        if is_separator {
            parts.push((start_line, &text[start..at]));
            (start, start_line) = (at + line.len(), line_number + 1);
        }
        at += line.len();
    }
    parts.push((start_line, &text[start..]));
    let is_blank = |line: &str| line.trim().is_empty() || line.trim_start().starts_with('#');
    parts.retain(|(_, part)| !part.lines().all(is_blank));
    parts
}

fn parse_part(text: &str, first_line: usize, nodes_min: usize, notes: &mut Vec<String>) -> Result<Vec<Value>, String> {
    use serde_saphyr::DuplicateKeyPolicy::{Error, LastWins};
    let in_text = |error: &serde_saphyr::Error| {
        let problem = error.render_with_formatter(&serde_saphyr::UserMessageFormatter);
        at_line(&problem, first_line)
    };
    let parsed = parse_with(text, nodes_min, Error);
    let parsed = match parsed {
        Err(error) if error.to_string().contains("duplicate mapping key") => {
            let parsed = parse_with(text, nodes_min, LastWins);
            if parsed.is_ok() {
                let problem = in_text(&error).replace(" not allowed here", "");
                notes.push(format!("{problem}; kubectl keeps the last"));
            }
            parsed
        }
        parsed => parsed,
    };
    let mut values = parsed.map_err(|error| {
        let fix = fix(text, &error.to_string());
        format!("not YAML: {}; {fix}", in_text(&error))
    })?;
    values.iter_mut().for_each(normalise_numbers);
    Ok(values)
}

fn parse_with(
    text: &str,
    nodes_min: usize,
    duplicate_keys: serde_saphyr::DuplicateKeyPolicy,
) -> Result<Vec<Value>, serde_saphyr::Error> {
    // The size of the input bounds its content, except for the nodes that aliases repeat.
    let n_nodes_max = text.len().max(nodes_min);
    let options = serde_saphyr::options! {
        duplicate_keys: duplicate_keys,
        legacy_octal_numbers: true,
        with_snippet: false,
        budget: serde_saphyr::budget! {
            max_events: n_nodes_max.saturating_mul(4),
            max_nodes: n_nodes_max,
            max_total_scalar_bytes: n_nodes_max.saturating_mul(16),
            max_documents: DOCUMENTS_MAX,
            max_depth: DEPTH_MAX,
        },
    };
    serde_saphyr::from_multiple_with_options(text, options)
}

/// Adds the lines before the part to the line in an error.
fn at_line(problem: &str, first_line: usize) -> String {
    let shifted = problem.rsplit_once(" at line ").and_then(|(head, tail)| {
        let end = tail.find(|c: char| !c.is_ascii_digit()).unwrap_or(tail.len());
        let line: usize = tail[..end].parse().ok()?;
        Some(format!("{head} at line {}{}", line + first_line, &tail[end..]))
    });
    shifted.unwrap_or_else(|| problem.to_owned())
}

fn fix(text: &str, error: &str) -> String {
    if text.contains("{{") {
        return "render a Helm template first, such as helm template CHART | cronwheel explain -f -".to_owned();
    }
    if ["alias", "anchor"].iter().any(|word| error.contains(word)) {
        return "put a schedule that begins with * in quotes".to_owned();
    }
    // These characters begin no plain value.
    for character in ['@', '%', '`'] {
        if error.contains(&format!("unexpected character: `{character}'")) {
            let value = value_with(text, character).unwrap_or(format!("a value that begins with {character}"));
            return format!("put {value} in quotes");
        }
    }
    if error.contains("tabs") {
        return "indent with spaces, not with tabs".to_owned();
    }
    "correct it there".to_owned()
}

/// Returns the first value of a line that begins with this character.
fn value_with(text: &str, character: char) -> Option<String> {
    let is_wanted = |value: &str| value.starts_with(character);
    let of_line = |line: &str| {
        let (_, value) = line.split_once(": ")?;
        let value = value.split(" #").next()?.trim();
        is_wanted(value).then(|| value.to_owned())
    };
    text.lines().find_map(of_line)
}

/// Writes whole numbers with a point or an exponent as Go's encoder does, through which `kubectl` sends them: `1.2096e+06`
/// becomes `1209600`.
pub(super) fn normalise_numbers(value: &mut Value) {
    /// Go's encoder writes larger numbers with an exponent.
    const EXPONENT_FROM: f64 = 1e21;
    match value {
        Value::Number(number) => {
            let whole = number
                .as_f64()
                .filter(|float| float.fract() == 0.0 && float.abs() < EXPONENT_FROM);
            // Numbers that are integers already stay.
            if let Some(float) = whole.filter(|_| number.is_f64())
                && let Ok(integer) = format!("{float:.0}").parse::<i64>()
            {
                *number = Number::from(integer);
            }
        }
        Value::Array(elements) => elements.iter_mut().for_each(normalise_numbers),
        Value::Object(members) => members.iter_mut().for_each(|(_, value)| normalise_numbers(value)),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}
