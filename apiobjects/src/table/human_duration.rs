//! Durations as `kubectl` prints them: with two or three digits, more precise the shorter they are.

use jiff::SignedDuration;

const HOURS_PER_YEAR: i64 = 24 * 365;

/// `12s`, `4m5s`, `3h`, `2d4h`, `120d`, `2y3d`. Slightly negative durations are 0, because clocks differ.
pub fn human_duration(duration: SignedDuration) -> String {
    let seconds = duration.as_secs();
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86_400);
    match () {
        () if seconds < -1 => "<invalid>".to_owned(),
        () if seconds < 0 => "0s".to_owned(),
        () if seconds < 120 => format!("{seconds}s"),
        () if minutes < 10 => with_rest(minutes, "m", seconds % 60, "s"),
        () if minutes < 180 => format!("{minutes}m"),
        () if hours < 8 => with_rest(hours, "h", minutes % 60, "m"),
        () if hours < 48 => format!("{hours}h"),
        () if hours < 24 * 8 => with_rest(days, "d", hours % 24, "h"),
        () if hours < HOURS_PER_YEAR * 2 => format!("{days}d"),
        () if hours < HOURS_PER_YEAR * 8 => with_rest(days / 365, "y", days % 365, "d"),
        () => format!("{}y", days / 365),
    }
}

fn with_rest(count: i64, unit: &str, rest: i64, rest_unit: &str) -> String {
    if rest == 0 {
        format!("{count}{unit}")
    } else {
        format!("{count}{unit}{rest}{rest_unit}")
    }
}

#[cfg(test)]
mod tests {
    use jiff::SignedDuration;

    use super::human_duration;

    #[test]
    fn durations_are_formatted_as_by_kubectl() {
        let (minute, hour, day) = (60, 3600, 86_400);
        let cases = [
            (-2, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (2 * minute, "2m"),
            (9 * minute + 59, "9m59s"),
            (10 * minute + 59, "10m"),
            (3 * hour - 1, "179m"),
            (3 * hour, "3h"),
            (7 * hour + 5 * minute, "7h5m"),
            (8 * hour + 5 * minute, "8h"),
            (48 * hour - 1, "47h"),
            (2 * day, "2d"),
            (2 * day + 4 * hour, "2d4h"),
            (8 * day + 4 * hour, "8d"),
            (729 * day, "729d"),
            (730 * day, "2y"),
            (733 * day, "2y3d"),
            (8 * 365 * day + day, "8y"),
        ];
        for (seconds, expected) in cases {
            assert_eq!(
                human_duration(SignedDuration::from_secs(seconds)),
                expected,
                "{seconds}"
            );
        }
    }
}
