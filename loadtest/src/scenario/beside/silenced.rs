//! What the silenced built-in controller spends of its own limit on requests, and what it writes to its log.

use std::{
    collections::BTreeMap,
    fmt::{self, Display, Formatter},
    fs,
    path::Path,
};

use anyhow::Context as _;

use crate::audit::Request;

/// The size of a log at one instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LogSize {
    n_bytes: usize,
    n_lines: usize,
}

impl LogSize {
    pub(super) fn read(path: &Path) -> anyhow::Result<LogSize> {
        let text = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(LogSize {
            n_bytes: text.len(),
            n_lines: text.split(|byte| *byte == b'\n').count().saturating_sub(1),
        })
    }
}

/// The requests of the built-in controller in a period, by verb, resource and answer, and the growth of its log.
#[derive(Clone, Debug, Default)]
pub(super) struct Spending {
    seconds: f64,
    requests: BTreeMap<(String, String, u16), u32>,
    n_log_bytes: usize,
    n_log_lines: usize,
}

impl Spending {
    /// Counts requests of a period of so many seconds. The log grew from one size to another.
    pub(super) fn of<'r>(requests: impl Iterator<Item = &'r Request>, seconds: f64, log: [LogSize; 2]) -> Spending {
        let mut spending = Spending {
            seconds,
            n_log_bytes: log[1].n_bytes.saturating_sub(log[0].n_bytes),
            n_log_lines: log[1].n_lines.saturating_sub(log[0].n_lines),
            ..Spending::default()
        };
        for request in requests {
            let kind = (request.verb.clone(), request.resource.clone(), request.code);
            *spending.requests.entry(kind).or_default() += 1;
        }
        spending
    }
}

impl Display for Spending {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let a_second = |n: f64| n / self.seconds.max(1.0);
        #[expect(clippy::cast_precision_loss, reason = "a log of minutes")]
        let of_log = [self.n_log_lines, self.n_log_bytes].map(|n| a_second(n as f64));
        let n_requests: u32 = self.requests.values().sum();
        writeln!(
            f,
            "\nthe built-in controller in these {:.0} s: {:.1} requests a second; its log: {:.1} lines and {:.0} bytes a \
             second",
            self.seconds,
            a_second(f64::from(n_requests)),
            of_log[0],
            of_log[1]
        )?;
        writeln!(
            f,
            "\n| request of the built-in controller | answer | a second |\n|---|---|---|"
        )?;
        for ((verb, resource, code), n) in &self.requests {
            writeln!(f, "| {verb} {resource} | {code} | {:.2} |", a_second(f64::from(*n)))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn requests_and_log_are_counted_for_each_second() {
        let request = |code| Request {
            verb: "create".to_owned(),
            resource: "jobs".to_owned(),
            namespace: "a".to_owned(),
            name: "b".to_owned(),
            code,
            received: Timestamp::UNIX_EPOCH,
            answered: Timestamp::UNIX_EPOCH,
        };
        let requests: Vec<Request> = [[403; 30].as_slice(), &[201; 15]]
            .concat()
            .into_iter()
            .map(request)
            .collect();
        let log = [(100, 1), (6_100, 121)].map(|(n_bytes, n_lines)| LogSize { n_bytes, n_lines });
        let text = Spending::of(requests.iter(), 60.0, log).to_string();
        for line in [
            "the built-in controller in these 60 s: 0.8 requests a second; its log: 2.0 lines and 100 bytes a second\n",
            "| create jobs | 201 | 0.25 |\n",
            "| create jobs | 403 | 0.50 |\n",
        ] {
            assert!(text.contains(line), "{text}");
        }
    }
}
