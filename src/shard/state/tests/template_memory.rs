//! CronJobs whose template is too large to be held in memory.

use std::sync::Arc;

use super::world::{World, cron_job};
use crate::shard::{CronJobRecord, Input, JobTemplate, ResourceVersion, TemplateMemory, TemplateUse};

fn with_template(name: &str, n_bytes: usize) -> CronJobRecord {
    let record = cron_job(name);
    CronJobRecord {
        template: Arc::new(JobTemplate {
            body: "x".repeat(n_bytes).into(),
            ..JobTemplate::clone(&record.template)
        }),
        ..record
    }
}

/// A shard with a template memory of 1,000 bytes, half of which one namespace may use.
fn world(records: Vec<CronJobRecord>) -> (World, TemplateMemory) {
    let memory = TemplateMemory::new(1_000);
    let mut world = World::new("09:59:30", Vec::new(), Vec::new());
    world.shard.template_memory = memory.clone();
    for record in records {
        world.apply(record);
    }
    (world, memory)
}

const REPORT: &str = "Warning TemplateNotKept: the jobTemplate is not kept in memory, since the CronJobs of this namespace \
                      take too much: it is read again for each run";

#[test]
fn a_template_over_the_memory_limit_is_dropped_and_reported_once() {
    let (mut world, memory) = world(vec![with_template("small", 100), with_template("large", 501)]);
    world.expect(&[REPORT]);
    assert_eq!(
        memory.in_use(),
        TemplateUse {
            n_bytes: 100,
            n_not_kept: 1
        }
    );
    world.advance_to("10:00:00");
    world.effects();
    let is_kept = |world: &World| -> Vec<bool> {
        let orders = world.creates.iter();
        orders.map(|order| order.template.body.as_str().is_some()).collect()
    };
    assert_eq!(is_kept(&world), [true, false]);
    world.apply(CronJobRecord {
        resource_version: ResourceVersion(11),
        ..with_template("large", 501)
    });
    world.expect(&[]);
}

#[test]
fn a_template_is_kept_as_soon_as_it_fits() {
    let (mut world, memory) = world(vec![with_template("a", 400), with_template("b", 400)]);
    assert_eq!(memory.in_use().n_not_kept, 1);
    let uid = cron_job("a").identity.uid.clone();
    world.input(Input::CronJobDeleted(uid));
    assert_eq!(memory.in_use().n_bytes, 0);
    world.apply(CronJobRecord {
        resource_version: ResourceVersion(11),
        ..with_template("b", 400)
    });
    assert_eq!(
        memory.in_use(),
        TemplateUse {
            n_bytes: 400,
            n_not_kept: 0
        }
    );
}

#[test]
fn dropping_a_shard_frees_its_template_memory() {
    let (world, memory) = world(vec![with_template("a", 400), with_template("b", 400)]);
    drop(world);
    assert_eq!(memory.in_use(), TemplateUse::default());
}
