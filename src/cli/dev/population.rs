//! The CronJobs of `--cronjobs`, drawn from a seed to resemble those of a cluster.
//!
//! Invariant: the same seed gives the same CronJobs, and a larger number adds CronJobs to those of a smaller one.

use apisim::Random;
use serde_json::{Value, json};

/// The tasks in each namespace.
const NAMESPACES: [(&str, [&str; 4]); 5] = [
    ("shop", ["sync-stock", "close-carts", "price-feed", "send-receipts"]),
    (
        "billing",
        ["invoice-export", "payment-retry", "ledger-check", "dunning"],
    ),
    ("reports", ["daily-sales", "funnel", "weekly-digest", "usage"]),
    (
        "platform",
        ["backup", "rotate-keys", "prune-images", "certificate-check"],
    ),
    ("data", ["load-events", "compact", "refresh-views", "train"]),
];

const TIME_ZONES: [&str; 8] = [
    "Europe/Berlin",
    "America/New_York",
    "Asia/Tokyo",
    "Etc/UTC",
    "America/Sao_Paulo",
    "Asia/Kolkata",
    "Australia/Sydney",
    "Europe/London",
];

/// The namespaces of the CronJobs.
pub(super) fn namespaces() -> impl Iterator<Item = &'static str> {
    NAMESPACES.iter().map(|(name, _)| *name)
}

/// Draws CronJobs one by one.
pub(super) struct Population {
    random: Random,
    n_drawn: u32,
}

impl Population {
    pub(super) fn new(seed: u64) -> Population {
        Population {
            random: Random::new(seed),
            n_drawn: 0,
        }
    }

    /// Draws the next CronJob.
    pub(super) fn draw(&mut self) -> Value {
        let number = self.n_drawn;
        self.n_drawn += 1;
        let (namespace, tasks) = self.pick(&NAMESPACES);
        let task = self.pick(&tasks);
        // With few CronJobs, one fires soon.
        let schedule = if number == 0 {
            "* * * * *".to_owned()
        } else {
            self.schedule()
        };
        let mut spec = json!({
            "schedule": schedule,
            "concurrencyPolicy": self.policy(),
            "jobTemplate": {"spec": self.job_spec(task)},
        });
        if !schedule.starts_with("@every") && self.is_one_of_hundred(40) {
            spec["timeZone"] = self.pick(&TIME_ZONES).into();
        }
        if self.is_one_of_hundred(25) {
            spec["startingDeadlineSeconds"] = self.pick(&[10, 30, 60, 200, 600]).into();
        }
        if self.is_one_of_hundred(10) {
            spec["successfulJobsHistoryLimit"] = self.pick(&[0, 1, 5]).into();
        }
        if number > 0 && self.is_one_of_hundred(2) {
            spec["suspend"] = true.into();
        }
        let name = format!("{task}-{number:05}");
        json!({
            "apiVersion": "batch/v1",
            "kind": "CronJob",
            "metadata": {"name": name, "namespace": namespace, "labels": {"app": task}},
            "spec": spec,
        })
    }

    fn schedule(&mut self) -> String {
        let (minute, hour) = (self.random.below(60), self.random.below(24));
        match self.random.below(100) {
            0..20 => "* * * * *".to_owned(),
            20..30 => "*/5 * * * *".to_owned(),
            // Uneven minutes, which avoid the common even ones.
            30..40 => format!("{}-59/5 * * * *", minute % 5),
            40..52 => "*/15 * * * *".to_owned(),
            52..56 => "@hourly".to_owned(),
            56..70 => format!("{minute} * * * *"),
            70..74 => "@daily".to_owned(),
            74..86 => format!("{minute} {hour} * * *"),
            86..92 => format!("{minute} {hour} * * 1-5"),
            92..95 => format!("{minute} {hour} {} * *", 1 + self.random.below(28)),
            // Not below a minute: Jobs are named by the minute.
            _ => format!("@every {}", self.pick(&["1m", "90s", "5m", "10m", "1h30m"])),
        }
    }

    fn policy(&mut self) -> &'static str {
        match self.random.below(100) {
            0..45 => "Allow",
            45..85 => "Forbid",
            _ => "Replace",
        }
    }

    fn job_spec(&mut self, task: &str) -> Value {
        let seconds = match self.random.below(100) {
            0..70 => 1 + self.random.below(10),
            70..95 => 10 + self.random.below(50),
            // Longer than a minute, so that concurrency policies have an effect.
            _ => 60 + self.random.below(180),
        };
        let mut annotations = json!({"run-for": format!("{seconds}s")});
        let mut spec = json!({});
        match self.random.below(100) {
            0..3 => annotations["outcome"] = "fail".into(),
            3 => {
                annotations["outcome"] = "hang".into();
                spec["activeDeadlineSeconds"] = 90.into();
            }
            _ => {}
        }
        if self.is_one_of_hundred(5) {
            spec["ttlSecondsAfterFinished"] = 60.into();
        }
        spec["backoffLimit"] = self.pick(&[0, 2, 6]).into();
        spec["template"] = json!({
            "metadata": {"annotations": annotations},
            "spec": {
                "restartPolicy": "Never",
                "containers": [{"name": task, "image": format!("{task}:1.4.2"), "args": ["--once"]}],
            },
        });
        spec
    }

    fn is_one_of_hundred(&mut self, percent: u64) -> bool {
        self.random.below(100) < percent
    }

    fn pick<T: Copy, const N: usize>(&mut self, choices: &[T; N]) -> T {
        let at = usize::try_from(self.random.below(N as u64)).unwrap_or_default();
        choices[at]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use apisim::{Checks, Resource, check_annotations, objects::validation};

    use super::*;
    use crate::schedule::{Zone, describe::surprises, parse_standard};

    fn draw(seed: u64, n_members: usize) -> Vec<Value> {
        let mut population = Population::new(seed);
        (0..n_members).map(|_| population.draw()).collect()
    }

    /// Returns how many CronJobs have this value at the pointer.
    fn count(members: &[Value], pointer: &str, is_counted: impl Fn(&Value) -> bool) -> usize {
        members
            .iter()
            .filter(|member| member.pointer(pointer).is_some_and(&is_counted))
            .count()
    }

    #[test]
    fn population_is_determined_by_its_seed() {
        assert_eq!(draw(7, 50)[..20], draw(7, 20)[..]);
        assert_ne!(draw(7, 20), draw(8, 20));
    }

    #[test]
    fn generated_cron_jobs_are_valid_and_have_unique_names() {
        let checks = Checks {
            schedule: |text| parse_standard(text).map(drop).map_err(|error| error.to_string()),
            time_zone: |name| Zone::load(name).is_ok(),
            admission: check_annotations,
        };
        let members = draw(1, 5_000);
        let mut names = BTreeSet::new();
        for member in &members {
            let mut object = member.clone();
            apisim::objects::defaulting::apply(Resource::CronJob, &mut object);
            let errors = validation::create(Resource::CronJob, &object, &checks);
            assert!(errors.is_empty(), "{errors:?}\n{object}");
            assert_eq!((checks.admission)(Resource::CronJob, &object), Ok(()));
            assert!(namespaces().any(|namespace| member["metadata"]["namespace"] == namespace));
            assert!(names.insert(member["metadata"]["name"].to_string()));
        }
    }

    #[test]
    fn generated_intervals_are_at_least_a_minute() {
        for member in draw(1, 5_000) {
            let schedule = member["spec"]["schedule"].as_str().unwrap();
            let parsed = parse_standard(schedule).unwrap();
            if parsed.is_every() {
                assert_eq!(surprises(schedule, &parsed), [""; 0], "{schedule}");
            }
        }
    }

    #[test]
    fn the_first_generated_cron_job_fires_every_minute() {
        for seed in 0..50 {
            let spec = &draw(seed, 1)[0]["spec"];
            assert_eq!(spec["schedule"], "* * * * *");
            assert_eq!(spec["suspend"], Value::Null);
        }
    }

    #[test]
    fn the_population_is_varied() {
        let members = draw(1, 1_000);
        let check = |pointer: &str, value: &str, range: std::ops::Range<usize>| {
            let n = count(&members, pointer, |found| {
                found.as_str().is_some_and(|text| text.starts_with(value))
            });
            assert!(range.contains(&n), "{pointer} {value}: {n}");
        };
        check("/spec/schedule", "* * * * *", 150..260);
        check("/spec/schedule", "*/5 ", 60..150);
        check("/spec/schedule", "@every ", 25..90);
        check("/spec/schedule", "@daily", 15..80);
        check("/spec/concurrencyPolicy", "Allow", 380..520);
        check("/spec/concurrencyPolicy", "Forbid", 330..470);
        check("/spec/concurrencyPolicy", "Replace", 100..210);
        check("/spec/timeZone", "", 300..450);
        let annotations = "/spec/jobTemplate/spec/template/metadata/annotations";
        check(&format!("{annotations}/outcome"), "fail", 10..60);
        check(&format!("{annotations}/outcome"), "hang", 1..30);
        let n_suspended = count(&members, "/spec/suspend", |value| *value == true);
        assert!((5..45).contains(&n_suspended), "{n_suspended}");
    }
}
