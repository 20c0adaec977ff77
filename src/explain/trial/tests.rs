//! Tests of a trial on which cronwheel panics.

use super::*;
use crate::shard::state::{PanicAt, PanicsOn, test_record};

#[test]
fn f_18_a_trial_on_which_cronwheel_panics_explains_nothing() {
    let (record, world) = (test_record("backup"), World::of_cluster());
    let now: Timestamp = "2026-05-05T10:00:05Z".parse().unwrap();
    let places: [(PanicAt, PanicsOn); 4] = [
        (PanicAt::Evaluation, |_, at| at == PanicAt::Evaluation),
        (PanicAt::Start, |_, at| at == PanicAt::Start),
        (PanicAt::Ordered, |_, at| at == PanicAt::Ordered),
        (PanicAt::Answered, |_, at| at == PanicAt::Answered),
    ];
    for (place, panics_on) in places {
        let mut trial = Trial::new(&record, &world, AssumedCreate::Created, (None, now));
        trial.shard.panics_on = Some(panics_on);
        let error = trial.run().err().map(|error| error.to_string());
        let cause = format!("cronwheel panicked, which is a fault of cronwheel: panics at {place:?}, as told");
        let expected = format!("CronJob default/backup: {cause}; please report this with the objects");
        assert_eq!(error, Some(expected));
    }
}
