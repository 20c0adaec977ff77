//! Compares parts of the walks with the library that Kubernetes uses: all departures from the calendar, and samples.

use jiff::Timestamp;

use super::{Breadth, mix::CronJob, walk::Stretch, zones::SoakZone};
use crate::{
    differential::{oracle::Oracle, queries::Query},
    random::Random,
};

/// The number of activations per query.
const CHAIN_LENGTH: usize = 24;

/// A part of a walk: the query, and the activations of cronwheel.
pub(super) struct Sample {
    query: Query,
    ours: Vec<i64>,
    /// The end of the walk.
    until: i64,
}

/// Returns the samples of the walk of a CronJob.
pub(super) fn samples(cron_job: &CronJob, zone: &SoakZone, stretches: &[Stretch], breadth: &Breadth) -> Vec<Sample> {
    let mut samples = Vec::new();
    // The seed gives each schedule different positions, and the same positions in each run.
    let seed = cron_job.schedule.bytes().chain(zone.name.bytes());
    let mut random = Random::new(seed.fold(0, |seed, byte| seed * 31 % 1_000_003 + u64::from(byte)));
    for stretch in stretches {
        let mut sampled_until = 0;
        for &place in &stretch.departures {
            if place >= sampled_until {
                let begin = place.saturating_sub(3);
                sampled_until = begin + CHAIN_LENGTH;
                samples.push(sample(cron_job, stretch, begin));
            }
        }
        for _ in 0..breadth.n_samples {
            samples.push(sample(cron_job, stretch, random.below(stretch.fires.len() + 1)));
        }
    }
    samples
}

fn sample(cron_job: &CronJob, stretch: &Stretch, begin: usize) -> Sample {
    let from = begin
        .checked_sub(1)
        .map_or(stretch.from, |before| stretch.fires[before]);
    let ours: Vec<i64> = stretch.fires[begin..].iter().copied().take(CHAIN_LENGTH).collect();
    let is_end = begin + ours.len() == stretch.fires.len();
    let query = Query {
        schedule: cron_job.schedule.clone(),
        zone: cron_job.time_zone.unwrap_or_default().to_owned(),
        from: Timestamp::from_second(from).expect("an instant"),
        count: u32::try_from(ours.len() + usize::from(is_end)).expect("a short chain"),
    };
    Sample {
        query,
        ours,
        until: stretch.until,
    }
}

/// The library as a process.
pub(super) struct Library {
    oracle: Oracle,
}

impl Library {
    pub(super) fn start() -> Library {
        Library {
            oracle: Oracle::start(),
        }
    }

    /// Compares the samples. Returns the number of compared activations.
    pub(super) fn check(&mut self, samples: &[Sample]) -> usize {
        let queries: Vec<Query> = samples.iter().map(|sample| sample.query.clone()).collect();
        let answers = self.oracle.answers(&queries);
        let compared = samples.iter().zip(&answers).map(|(sample, answer)| {
            sample
                .compare(answer)
                .unwrap_or_else(|difference| panic!("{}: {difference}\n  the library: {answer}", sample.query))
        });
        compared.sum()
    }
}

impl Sample {
    /// Returns the number of equal activations, or the first difference.
    fn compare(&self, answer: &str) -> Result<usize, String> {
        let mut reference = self.query.from;
        let mut tokens = answer.split(' ');
        for (place, ours) in self.ours.iter().enumerate() {
            let token = tokens.next().unwrap_or("nothing");
            let Ok(theirs) = token.parse::<Timestamp>() else {
                return Err(format!("cronwheel continues to {ours}, the library has {token}"));
            };
            // The library may return the reference itself repeatedly, unlike cronwheel.
            if theirs <= reference {
                return Ok(place);
            }
            if theirs.as_second() != *ours {
                return Err(format!(
                    "activation {place} of cronwheel is {ours}, of the library {theirs}"
                ));
            }
            reference = theirs;
        }
        match tokens.next().map(str::parse::<Timestamp>) {
            Some(Ok(theirs)) if theirs.as_second() <= self.until => Err(format!("cronwheel stops before {theirs}")),
            _ => Ok(self.ours.len()),
        }
    }
}
