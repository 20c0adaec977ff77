//! Validation of CronJobs (B-16.2).

use serde_json::Value;

use super::{
    Checks,
    field_error::Errors,
    job,
    metadata::{self, NameRule, member_text},
    path::Path,
};

const SPEC: Path<'static> = Path::root("spec");
/// The maximum length of the name. The name of a Job has at most 63 characters, including an eleven-character suffix.
const NAME_LENGTH_MAX: usize = 52;
/// The maximum length of a part of a time zone's name, in characters.
const ZONE_PART_LENGTH_MAX: usize = 14;
const POLICIES: [&str; 3] = ["Allow", "Forbid", "Replace"];

/// Checks a new CronJob.
pub(super) fn create(object: &Value, checks: &Checks, errors: &mut Errors) {
    metadata::check_with_finalizers(object, true, NameRule::DnsSubdomain, errors);
    spec(&object["spec"], None, checks, errors);
    let name = metadata::text(object, "name");
    if name.len() > NAME_LENGTH_MAX {
        errors.invalid(
            &Path::root("metadata").child("name"),
            name,
            "must be no more than 52 characters",
        );
    }
}

/// Checks an update of a CronJob. A name that is too long is accepted.
pub(super) fn update(new: &Value, old: &Value, checks: &Checks, errors: &mut Errors) {
    metadata::check_update_with_finalizers(new, old, errors);
    spec(&new["spec"], Some(&old["spec"]), checks, errors);
}

fn spec(spec: &Value, old: Option<&Value>, checks: &Checks, errors: &mut Errors) {
    let may_have_zone = old.is_some_and(|old| member_text(old, "schedule").contains("TZ"));
    schedule(spec, may_have_zone, checks, errors);
    let member = "startingDeadlineSeconds";
    errors.non_negative(&SPEC.child(member), spec.get(member));
    if old.is_none_or(|old| old["timeZone"] != spec["timeZone"]) {
        time_zone(&spec["timeZone"], checks, errors);
    }
    let path = SPEC.child("concurrencyPolicy");
    match member_text(spec, "concurrencyPolicy") {
        "" => errors.required(&path, ""),
        policy if POLICIES.contains(&policy) => {}
        policy => errors.unsupported(&path, policy, &POLICIES),
    }
    job_template(&spec["jobTemplate"]["spec"], errors);
    for member in ["successfulJobsHistoryLimit", "failedJobsHistoryLimit"] {
        errors.non_negative(&SPEC.child(member), spec.get(member));
    }
}

fn schedule(spec: &Value, may_have_zone: bool, checks: &Checks, errors: &mut Errors) {
    let path = SPEC.child("schedule");
    let schedule = member_text(spec, "schedule");
    if schedule.is_empty() {
        return errors.required(&path, "");
    }
    if let Err(reason) = (checks.schedule)(schedule) {
        errors.invalid(&path, schedule, &reason);
    }
    match (schedule.contains("TZ"), may_have_zone) {
        (true, false) => {
            let detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
            errors.invalid(&path, schedule, detail);
        }
        (true, true) if !spec["timeZone"].is_null() => {
            let detail = "cannot use both timeZone field and TZ or CRON_TZ in schedule";
            errors.invalid(&path, schedule, detail);
        }
        (true, true) | (false, _) => {}
    }
}

fn time_zone(zone: &Value, checks: &Checks, errors: &mut Errors) {
    let path = SPEC.child("timeZone");
    let Some(zone) = zone.as_str() else { return };
    if zone.is_empty() {
        return errors.invalid(&path, zone, "timeZone must be nil or non-empty string");
    }
    let unknown = format!("unknown time zone {zone}");
    if !zone.split('/').all(is_zone_part) {
        return errors.invalid(&path, zone, &unknown);
    }
    if zone.eq_ignore_ascii_case("Local") {
        let detail = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
        errors.invalid(&path, zone, detail);
    }
    // In Go, this name means the zone of the process.
    if zone != "Local" && !(checks.time_zone)(zone) {
        errors.invalid(&path, zone, &unknown);
    }
}

fn is_zone_part(part: &str) -> bool {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b'+');
    !matches!(part, "" | "." | "..")
        && !part.starts_with('-')
        && part.len() <= ZONE_PART_LENGTH_MAX
        && part.bytes().all(is_allowed)
}

fn job_template(spec: &Value, errors: &mut Errors) {
    let template = SPEC.child("jobTemplate");
    let path = template.child("spec");
    job::spec(spec, &path, errors);
    if !spec["selector"].is_null() {
        errors.invalid(
            &path.child("selector"),
            spec["selector"].clone(),
            "`selector` will be auto-generated",
        );
    }
    if spec["manualSelector"] == Value::Bool(true) {
        errors.unsupported(&path.child("manualSelector"), true, &["nil", "false"]);
    }
}
