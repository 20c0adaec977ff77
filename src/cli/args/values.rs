//! Parsers of flag values that several commands share or that have bounds. Errors contain a correction.

use std::{
    net::{Ipv4Addr, SocketAddr},
    time::Duration,
};

use jiff::{SignedDuration, Span, SpanRelativeTo, Timestamp};

use crate::{
    coordination::{InstallationName, is_dns_label},
    explain::advice::zone_advice,
    schedule::{
        Zone,
        options::{OptionName, freeze_end},
    },
};

/// Reads a duration of any length. A day has 24 hours; months and years have no fixed length.
pub(in crate::cli) fn duration(text: &str) -> Option<SignedDuration> {
    let of_days = || {
        text.parse::<Span>()
            .ok()?
            .to_duration(SpanRelativeTo::days_are_24_hours())
            .ok()
    };
    text.parse().ok().or_else(of_days)
}

fn parse_duration(text: &str) -> Result<SignedDuration, String> {
    duration(text).ok_or_else(|| "write a number with its unit, such as 500ms, 2s, 1m, 1h30m or 3d".to_owned())
}

fn parse_within(text: &str, least: SignedDuration, most: SignedDuration) -> Result<SignedDuration, String> {
    let duration = parse_duration(text)?;
    if duration < least || duration > most {
        return Err(format!("give a duration from {least:#} to {most:#}"));
    }
    Ok(duration)
}

pub(in crate::cli) fn parse_freeze_until(text: &str) -> Result<Timestamp, String> {
    let example = OptionName::FreezeUntil.example();
    freeze_end(text).ok_or_else(|| format!("it is no instant in RFC 3339; write it like {example}"))
}

pub(in crate::cli) fn parse_flush_interval(text: &str) -> Result<Duration, String> {
    let interval = parse_within(text, SignedDuration::ZERO, SignedDuration::from_mins(1))?;
    Ok(interval.unsigned_abs())
}

/// Whole seconds in `Date` headers show no difference below a second.
pub(in crate::cli) fn parse_clock_skew(text: &str) -> Result<SignedDuration, String> {
    parse_within(text, SignedDuration::from_secs(1), SignedDuration::from_hours(1))
}

/// The built-in controller is at most minutes late.
pub(in crate::cli) fn parse_canary_wait(text: &str) -> Result<Duration, String> {
    let wait = parse_within(text, SignedDuration::from_secs(1), SignedDuration::from_mins(10))?;
    Ok(wait.unsigned_abs())
}

/// Parses the longest time for which a command follows a Job.
pub(in crate::cli) fn parse_wait(text: &str) -> Result<Duration, String> {
    let wait = parse_within(text, SignedDuration::from_secs(1), SignedDuration::from_hours(31 * 24))?;
    Ok(wait.unsigned_abs())
}

/// Parses a duration before now: `6h`, or `6h ago`. A report of more than a year would be of Jobs that no cluster keeps.
pub(in crate::cli) fn parse_since(text: &str) -> Result<SignedDuration, String> {
    let duration = text.strip_suffix("ago").map_or(text, str::trim_end);
    parse_within(
        duration,
        SignedDuration::from_mins(1),
        SignedDuration::from_hours(366 * 24),
    )
}

/// Parses a duration of at least a second.
#[cfg(feature = "dev")]
pub(in crate::cli) fn parse_run_time(text: &str) -> Result<Duration, String> {
    let duration = parse_within(text, SignedDuration::from_secs(1), SignedDuration::from_hours(365 * 24))?;
    Ok(duration.unsigned_abs())
}

pub(in crate::cli) fn parse_clock_offset(text: &str) -> Result<SignedDuration, String> {
    let years = SignedDuration::from_hours(20 * 365 * 24);
    parse_within(text, -years, years)
}

/// Parses an address and port, or a port of all addresses.
pub(in crate::cli) fn parse_listen_anywhere(text: &str) -> Result<SocketAddr, String> {
    parse_listen(text, Ipv4Addr::UNSPECIFIED)
}

/// Parses an address and port, or a port of the loopback address.
pub(in crate::cli) fn parse_listen_here(text: &str) -> Result<SocketAddr, String> {
    parse_listen(text, Ipv4Addr::LOCALHOST)
}

fn parse_listen(text: &str, address: Ipv4Addr) -> Result<SocketAddr, String> {
    let port = text.strip_prefix(':').unwrap_or(text).parse();
    port.map(|port: u16| (address, port).into())
        .or_else(|_| text.parse())
        .map_err(|_| "write a port, or an address and a port, such as 8080 or 127.0.0.1:8080".to_owned())
}

pub(in crate::cli) fn parse_zone(name: &str) -> Result<Zone, String> {
    Zone::load(name).map_err(|error| format!("{error}; {}", zone_advice(name)))
}

/// Parses the name of an installation, a DNS label.
pub(in crate::cli) fn parse_installation(name: &str) -> Result<InstallationName, String> {
    InstallationName::new(name)
        .ok_or_else(|| "write a name of lower-case letters, digits and '-', at most 63, such as team-a".to_owned())
}

pub(in crate::cli) fn parse_namespace(name: &str) -> Result<String, String> {
    if is_dns_label(name) {
        Ok(name.to_owned())
    } else {
        Err("write the name of one namespace: lower-case letters, digits and '-', at most 63".to_owned())
    }
}

/// Parses the name of a Pod, a part of the holder identity in Leases.
pub(in crate::cli) fn parse_pod_name(name: &str) -> Result<String, String> {
    if name.is_empty() || name.contains('/') {
        Err("write the metadata.name of the Pod, which has no '/'".to_owned())
    } else {
        Ok(name.to_owned())
    }
}

/// Parses the uid of a Pod, a part of the name of its Lease.
pub(in crate::cli) fn parse_pod_uid(uid: &str) -> Result<String, String> {
    if is_dns_label(uid) {
        Ok(uid.to_owned())
    } else {
        Err("write the metadata.uid of the Pod: lower-case letters, digits and '-', at most 63".to_owned())
    }
}

/// Parses the name of an admission policy.
pub(in crate::cli) fn parse_policy_name(name: &str) -> Result<Box<str>, String> {
    if name.len() <= 253 && name.split('.').all(is_dns_label) {
        Ok(name.into())
    } else {
        Err("write the name of one ValidatingAdmissionPolicy, such as cronwheel-built-in-writes".to_owned())
    }
}

/// Parses the key of a label.
pub(in crate::cli) fn parse_label_key(key: &str) -> Result<Box<str>, String> {
    let is_name = |name: &str| {
        let is_end = |c: Option<char>| c.is_some_and(|c| c.is_ascii_alphanumeric());
        let is_inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
        name.len() <= 63 && is_end(name.chars().next()) && is_end(name.chars().last()) && name.chars().all(is_inner)
    };
    let is_key = match key.split_once('/') {
        Some((prefix, name)) => prefix.len() <= 253 && prefix.split('.').all(is_dns_label) && is_name(name),
        None => is_name(key),
    };
    if is_key {
        Ok(key.into())
    } else {
        Err("write the key of one label, such as team or example.com/team".to_owned())
    }
}
