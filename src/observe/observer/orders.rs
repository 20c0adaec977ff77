//! Orders of the links, carried out in the fleet.

use jiff::Timestamp;

use super::links::{Order, optional::OptionalOrder};
use crate::observe::{
    facts::{Kind, OptionalKind},
    fleet::Fleet,
    watch::Object,
};

/// Changes the fleet.
pub(super) fn obey(fleet: &mut Fleet, order: Order, (kind, namespace): (Kind, Option<&str>), now: Timestamp) {
    match (order, kind) {
        (Order::Nothing, _) => {}
        (Order::Apply(Object::CronJob(facts)), _) => fleet.apply_cron_job(*facts, now),
        (Order::Apply(Object::Run(run)), _) => fleet.apply_run(*run, now),
        (Order::Apply(Object::Namespace(namespace)), _) => fleet.apply_namespace(*namespace, now),
        (Order::Apply(Object::Calendar(calendar)), _) => fleet.apply_calendar(*calendar, now),
        (Order::Remove(uid), Kind::CronJob) => fleet.remove_cron_job(&uid, now),
        (Order::Remove(uid), Kind::Job) => fleet.remove_run(&uid, now),
        (Order::Retain(uids), Kind::CronJob) => fleet.retain_cron_jobs(&uids, namespace, now),
        (Order::Retain(uids), Kind::Job) => fleet.retain_runs(&uids, namespace, now),
        (Order::Forget, _) => fleet.forget_namespace(namespace.unwrap_or_default()),
    }
}

/// Changes what the CronJobs of the fleet get from their namespaces.
pub(super) fn obey_optional(
    fleet: &mut Fleet,
    order: OptionalOrder,
    (kind, namespace): (OptionalKind, Option<&str>),
    now: Timestamp,
) {
    match (order, kind) {
        (OptionalOrder::Begin, OptionalKind::Calendar) => fleet.begin_calendars(namespace, now),
        (OptionalOrder::Apply(object), _) => obey(fleet, Order::Apply(object), (Kind::CronJob, namespace), now),
        (OptionalOrder::Remove(uid), OptionalKind::Namespace) => fleet.remove_namespace(&uid, now),
        (OptionalOrder::Remove(uid), OptionalKind::Calendar) => fleet.remove_calendar(&uid, now),
        (OptionalOrder::Retain(uids), OptionalKind::Namespace) => fleet.retain_namespaces(&uids, namespace, now),
        (OptionalOrder::Retain(uids), OptionalKind::Calendar) => fleet.retain_calendars(&uids, namespace, now),
        (OptionalOrder::Lose, OptionalKind::Namespace) => fleet.lose_namespaces(namespace, now),
        (OptionalOrder::Regain, OptionalKind::Namespace) => fleet.regain_namespaces(namespace),
        (OptionalOrder::Nothing, _)
        | (OptionalOrder::Begin, OptionalKind::Namespace)
        | (OptionalOrder::Lose | OptionalOrder::Regain, OptionalKind::Calendar) => {}
    }
}
