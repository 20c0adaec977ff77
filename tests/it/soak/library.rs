//! Compares parts of the walks with the library that Kubernetes uses: all departures from the calendar, and samples.

use jiff::Timestamp;

use super::{Breadth, mix::CronJob, walk::Stretch, zones::SoakZone};
use crate::{
    differential::{oracle::Oracle, queries::Query},
    random::Random,
};

/// The number of activations per query.
const CHAIN_LENGTH: usize = 24;

/// A part of a walk: the query, and our answer.
pub(super) struct Sample {
    query: Query,
    ours: Vec<i64>,
    /// Where the walk ended.
    until: i64,
}

/// The queries about a CronJob.
pub(super) fn samples(cron_job: &CronJob, zone: &SoakZone, stretches: &[Stretch], breadth: &Breadth) -> Vec<Sample> {
    let mut samples = Vec::new();
    // The same positions in each run, but different ones for each schedule.
    let seed = cron_job.schedule.bytes().chain(zone.name.bytes());
    let mut random = Random::new(seed.fold(0, |seed, byte| seed * 31 % 1_000_003 + u64::from(byte)));
    for stretch in stretches {
        let mut asked_until = 0;
        for &place in &stretch.departures {
            if place >= asked_until {
                let begin = place.saturating_sub(3);
                asked_until = begin + CHAIN_LENGTH;
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
    /// The number of equal activations, or the first difference.
    fn compare(&self, answer: &str) -> Result<usize, String> {
        let mut reference = self.query.from;
        let mut tokens = answer.split(' ');
        for (place, ours) in self.ours.iter().enumerate() {
            let token = tokens.next().unwrap_or("nothing");
            let Ok(theirs) = token.parse::<Timestamp>() else {
                return Err(format!("we go on to {ours}, it says {token}"));
            };
            // The library may return the reference itself, repeatedly. Cronwheel does not.
            if theirs <= reference {
                return Ok(place);
            }
            if theirs.as_second() != *ours {
                return Err(format!("our answer {place} is {ours}, its {theirs}"));
            }
            reference = theirs;
        }
        match tokens.next().map(str::parse::<Timestamp>) {
            Some(Ok(theirs)) if theirs.as_second() <= self.until => Err(format!("we stop before {theirs}")),
            _ => Ok(self.ours.len()),
        }
    }
}
