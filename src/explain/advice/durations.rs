//! Durations after `@every`, and those of other tools.

use super::characters::Mended;

/// Units with their names, and the factor and unit in a duration of Go.
const UNITS: [(&[&str], u64, &str); 5] = [
    (&["s", "sec", "secs", "second", "seconds"], 1, "s"),
    (&["m", "min", "mins", "minute", "minutes"], 1, "m"),
    (&["h", "hr", "hrs", "hour", "hours"], 1, "h"),
    (&["d", "day", "days"], 24, "h"),
    (&["w", "week", "weeks"], 168, "h"),
];

/// Writes a duration such as `1d`, `5 minutes` or `1h 30m` as an interval of Kubernetes. `text` may begin with `@every`
/// or `every`.
pub(super) fn mend(text: &str) -> Option<Mended> {
    let rest = text.strip_prefix('@').unwrap_or(text);
    let rest = rest.strip_prefix("every").unwrap_or(rest).trim();
    let interval = interval(rest)?;
    let has_days = rest.chars().any(|c| matches!(c, 'd' | 'w'));
    let reason = if has_days && !rest.contains("second") {
        "durations have hours, minutes and seconds"
    } else {
        "intervals are written like @every 1h30m"
    };
    (interval != text).then(|| Mended::new(reason, interval))
}

/// `rate(5 minutes)`, as AWS has it.
pub(super) fn mend_rate(text: &str) -> Option<Mended> {
    let inner = text.strip_prefix("rate(")?.strip_suffix(')')?;
    Some(Mended::new("rate(…) is AWS's", interval(inner.trim())?))
}

fn interval(mut text: &str) -> Option<String> {
    let mut parts = String::new();
    while !text.is_empty() {
        let (digits, rest) = text.split_at(text.find(|c: char| !c.is_ascii_digit())?);
        let rest = rest.trim_start();
        let end = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        let (unit, rest) = rest.split_at(end);
        let (_, factor, letter) = UNITS.iter().find(|(names, _, _)| names.contains(&unit))?;
        let number = digits.parse::<u32>().ok()?;
        parts += &(u64::from(number) * factor).to_string();
        parts += letter;
        text = rest.trim_start();
    }
    (!parts.is_empty()).then(|| format!("@every {parts}"))
}
