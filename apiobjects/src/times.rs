//! Times in the formats of the API, in UTC and truncated to the precision of the format. Years before 0 have six
//! digits; the API server writes four.

use jiff::{
    Timestamp,
    fmt::{rfc2822, temporal::DateTimePrinter},
};

const SECONDS: DateTimePrinter = DateTimePrinter::new().precision(Some(0));
const MICROSECONDS: DateTimePrinter = DateTimePrinter::new().precision(Some(6));

/// A `metav1.Time`: whole seconds.
pub fn seconds(time: Timestamp) -> String {
    SECONDS.timestamp_to_string(&time)
}

/// A `metav1.MicroTime`.
pub fn microseconds(time: Timestamp) -> String {
    MICROSECONDS.timestamp_to_string(&time)
}

/// The `Date` header of a response. `None` before the year 0, which the format does not support.
pub fn http_date(time: Timestamp) -> Option<String> {
    rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&time).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_the_formats_of_the_api() {
        let table = [
            (
                "2026-01-02T03:04:05Z",
                "2026-01-02T03:04:05Z",
                "2026-01-02T03:04:05.000000Z",
                "Fri, 02 Jan 2026 03:04:05 GMT",
            ),
            (
                "2026-11-22T23:59:59.999999999Z",
                "2026-11-22T23:59:59Z",
                "2026-11-22T23:59:59.999999Z",
                "Sun, 22 Nov 2026 23:59:59 GMT",
            ),
            (
                "0001-01-01T00:00:00Z",
                "0001-01-01T00:00:00Z",
                "0001-01-01T00:00:00.000000Z",
                "Mon, 01 Jan 0001 00:00:00 GMT",
            ),
            (
                "1969-12-31T23:59:58.5Z",
                "1969-12-31T23:59:58Z",
                "1969-12-31T23:59:58.500000Z",
                "Wed, 31 Dec 1969 23:59:58 GMT",
            ),
        ];
        for (time, in_seconds, in_microseconds, date) in table {
            let time: Timestamp = time.parse().unwrap();
            assert_eq!(seconds(time), in_seconds);
            assert_eq!(microseconds(time), in_microseconds);
            assert_eq!(http_date(time).as_deref(), Some(date));
        }
    }
}
