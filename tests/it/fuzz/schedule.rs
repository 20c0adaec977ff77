//! Parses any text as a schedule in any zone. Either it is refused, or its activations ascend from any instant.

use cronwheel::schedule::{ClockChange, CronJobSchedule, Schedule, Zone, due};
use jiff::{SignedDuration, Timestamp};

/// 2100-01-01, beyond the clock of any controller.
const TABLE_END_SECONDS: i64 = 4_102_444_800;

/// The input is an instant in eight bytes, followed by a schedule, a tab and a zone. The tab and the zone are optional.
pub(crate) fn run(data: &[u8]) {
    let Some((instant, text)) = data.split_first_chunk() else {
        return;
    };
    let second = i64::from_le_bytes(*instant) % Timestamp::MAX.as_second();
    let from = Timestamp::from_second(second).expect("time reaches further back than forward");
    let text = String::from_utf8_lossy(text);
    let (text, zone) = text
        .split_once('\t')
        .map_or((&*text, None), |(text, zone)| (text, Some(zone)));
    match CronJobSchedule::new(text, zone, &Zone::utc()).parsed {
        Ok(schedule) => {
            check_activations(&schedule, from);
            check_activations(&schedule.with_clock_change(ClockChange::Once), from);
        }
        Err(error) => assert!(!error.to_string().is_empty(), "{text:?} is refused without a reason"),
    }
    check_lines(text, zone, from);
}

/// Parses the text as the option `schedule`. Either it is refused, or its activations ascend too.
fn check_lines(text: &str, zone: Option<&str>, from: Timestamp) {
    let cron_job = CronJobSchedule::new("0 0 * * *", zone, &Zone::utc());
    match cron_job.with_schedules(text) {
        Ok(cron_job) => {
            let schedule = cron_job.parsed.expect("spec.schedule is valid");
            check_activations(&schedule, from);
            check_activations(&schedule.with_clock_change(ClockChange::Once), from);
        }
        Err(error) => assert!(!error.to_string().is_empty(), "{text:?} is refused without a reason"),
    }
}

fn check_activations(schedule: &Schedule, from: Timestamp) {
    let utc = Zone::utc();
    let mut latest = from;
    for _ in 0..4 {
        let Some(next) = schedule.next_after(latest, &utc) else {
            break;
        };
        assert!(next > latest, "{schedule:?} goes from {latest} to {next}");
        assert_eq!(next.subsec_nanosecond(), 0, "{schedule:?} gives {next}");
        latest = next;
    }
    let now = latest
        .saturating_add(SignedDuration::from_hours(24 * 400))
        .expect("no calendar units");
    // Zone tables end there. A later search for the latest slot would step through all slots.
    if now.as_second() > TABLE_END_SECONDS {
        return;
    }
    // A schedule may also never run.
    let _ = due::is_many_missed(schedule, &utc, from, now);
    match due::most_recent(schedule, &utc, from, now) {
        Some(slot) => assert!(
            from < slot && latest <= slot && slot <= now,
            "{schedule:?}: {slot} of {from} to {now}"
        ),
        None => assert_eq!(latest, from, "{schedule:?}: none of {from} to {now}"),
    }
}
