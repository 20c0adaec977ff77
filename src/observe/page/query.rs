//! The state of the page, which is in its address.

use std::str::FromStr;

use jiff::{SignedDuration, Timestamp, civil::Time};

use crate::{
    observe::view::{CronJobName, Filter, StateFilter},
    schedule::{Zone, after},
};

/// Number of rows on a page of the list.
pub(super) const ROWS_PER_PAGE: usize = 100;
/// The longest search text, in bytes.
const TEXT_LENGTH_MAX: usize = 200;
/// The last page that an address can name. The list of a cluster is shorter.
const PAGES_MAX: usize = 100_000;
/// The longest span of the strip.
pub(super) const SPAN_MAX: SignedDuration = SignedDuration::from_hours(48);
/// The default span starts at a multiple of this.
const SPAN_ALIGNMENT_SECONDS: i64 = 15 * 60;
/// The instants that a span may touch, before and after now.
const SPAN_DISTANCE_MAX: SignedDuration = SignedDuration::from_hours(366 * 24);
/// The words in the search text before a span of the day.
const STARTS_BETWEEN: [&str; 2] = ["starts", "between"];
/// What may stand between two times of day instead of a word.
const DASHES: [char; 2] = ['-', '–'];

/// A value in an address that is not understood.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {problem}. {fix}")]
pub(super) struct QueryError {
    /// The parameter.
    pub(super) field: String,
    pub(super) problem: String,
    /// What to write instead.
    pub(super) fix: String,
}

/// The parameters of the page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct PageQuery {
    /// `q`: the search text.
    pub(super) text: String,
    pub(super) namespace: Option<Box<str>>,
    pub(super) state: Option<StateFilter>,
    /// `from` and `to`: what the strip shows, and when listed CronJobs have a slot.
    pub(super) span: Option<(Timestamp, Timestamp)>,
    /// `page`, from 0.
    pub(super) page_index: usize,
}

impl PageQuery {
    /// Parses the query of an address. An empty value counts as absent, because forms send those.
    pub(super) fn parse(query: &str, now: Timestamp) -> Result<PageQuery, QueryError> {
        let mut parsed = PageQuery::default();
        let (mut from, mut to) = (None, None);
        for (field, value) in form_urlencoded::parse(query.as_bytes()) {
            let is_empty = value.trim().is_empty();
            match field.as_ref() {
                "q" | "namespace" | "state" | "from" | "to" | "page" if is_empty => {}
                "q" => parsed.text = parse_text(&value)?,
                "namespace" => parsed.namespace = Some(parse_namespace(&value)?),
                "state" => parsed.state = Some(parse_state(&value)?),
                "from" => from = Some(parse_instant("from", &value)?),
                "to" => to = Some(parse_instant("to", &value)?),
                "page" => parsed.page_index = parse_page(&value)?,
                _ => return Err(unknown_field(&field)),
            }
        }
        parsed.span = parse_span(from, to, now)?;
        Ok(parsed)
    }

    /// The address of this state.
    pub(super) fn url(&self) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        if !self.text.is_empty() {
            query.append_pair("q", &self.text);
        }
        if let Some(namespace) = &self.namespace {
            query.append_pair("namespace", namespace);
        }
        if let Some(state) = self.state {
            query.append_pair("state", state.as_str());
        }
        if let Some((from, to)) = self.span {
            query.append_pair("from", &instant_text(from));
            query.append_pair("to", &instant_text(to));
        }
        if self.page_index > 0 {
            query.append_pair("page", &(self.page_index + 1).to_string());
        }
        let query = query.finish();
        // A colon needs no escape in a query.
        let query = query.replace("%3A", ":");
        if query.is_empty() {
            "/".to_owned()
        } else {
            ["/?", &query].concat()
        }
    }

    /// The address of the list in this state.
    pub(super) fn list_url(&self) -> String {
        self.url() + "#cronjobs"
    }

    pub(super) fn with_state(&self, state: Option<StateFilter>) -> PageQuery {
        PageQuery {
            state,
            ..self.first_page()
        }
    }

    pub(super) fn with_namespace(&self, namespace: Option<&str>) -> PageQuery {
        PageQuery {
            namespace: namespace.map(Into::into),
            ..self.first_page()
        }
    }

    pub(super) fn with_span(&self, span: Option<(Timestamp, Timestamp)>) -> PageQuery {
        PageQuery {
            span,
            ..self.first_page()
        }
    }

    pub(super) fn with_page(&self, page_index: usize) -> PageQuery {
        PageQuery {
            page_index,
            ..self.clone()
        }
    }

    fn first_page(&self) -> PageQuery {
        self.with_page(0)
    }

    /// Whether the list leaves CronJobs out.
    pub(super) fn is_filtered(&self) -> bool {
        *self != PageQuery::default().with_page(self.page_index)
    }

    /// The span of the strip: a day back and a day ahead, unless the address has another.
    pub(super) fn strip_span(&self, now: Timestamp) -> (Timestamp, Timestamp) {
        self.span.unwrap_or_else(|| {
            let start = now.as_second().div_euclid(SPAN_ALIGNMENT_SECONDS) * SPAN_ALIGNMENT_SECONDS;
            let aligned = Timestamp::from_second(start).unwrap_or(now);
            (after(aligned, -(SPAN_MAX / 2)), after(aligned, SPAN_MAX / 2))
        })
    }

    /// Whether the search text begins to name a time of day and does not go on as one.
    pub(super) fn has_misunderstood_time(&self) -> bool {
        split_starts_between(&self.text).1 == Some(TimeOfDay::Misunderstood)
    }

    /// The rows that the list shows.
    pub(super) fn filter(&self, zone: &Zone, now: Timestamp) -> Filter {
        let (text, in_text) = split_starts_between(&self.text);
        let span_in_text = match in_text {
            Some(TimeOfDay::Between(from, to)) => next_span((from, to), zone, now),
            Some(TimeOfDay::Misunderstood) | None => None,
        };
        Filter {
            text,
            namespace: self.namespace.clone(),
            state: self.state,
            slots_between: span_in_text.or(self.span),
            offset: self.page_index * ROWS_PER_PAGE,
            limit: ROWS_PER_PAGE,
        }
    }
}

/// The address of a CronJob.
pub(super) fn cron_job_url(cron_job: &CronJobName) -> String {
    use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
    const KEPT: &percent_encoding::AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_');
    let [namespace, name] = [&cron_job.namespace, &cron_job.name].map(|part| utf8_percent_encode(part, KEPT));
    format!("/cronjobs/{namespace}/{name}")
}

/// Parses the two segments of the address of a CronJob.
pub(super) fn parse_cron_job(namespace: &str, name: &str) -> Result<CronJobName, QueryError> {
    if !is_object_name(name) {
        return Err(error("name", "is no name of a CronJob", NAME_FIX));
    }
    Ok(CronJobName {
        namespace: parse_namespace(namespace)?,
        name: name.into(),
    })
}

/// Parses whether the page of a CronJob has the text of `explain`. The script asks for it once.
pub(super) fn parse_explain(query: &str) -> Result<bool, QueryError> {
    let mut is_wanted = true;
    for (field, value) in form_urlencoded::parse(query.as_bytes()) {
        match (field.as_ref(), value.as_ref()) {
            ("explain", "no") => is_wanted = false,
            ("explain", "yes") => is_wanted = true,
            ("explain", _) => return Err(error("explain", "is neither yes nor no", "Leave it out")),
            _ => return Err(error(&field, "is no parameter of this page", "The only one is explain")),
        }
    }
    Ok(is_wanted)
}

/// An instant in an address, without seconds if they are zero.
pub(super) fn instant_text(at: Timestamp) -> String {
    let format = if at.as_second() % 60 == 0 {
        "%Y-%m-%dT%H:%MZ"
    } else {
        "%Y-%m-%dT%H:%M:%SZ"
    };
    at.strftime(format).to_string()
}

const NAME_FIX: &str = "Names have lower case letters, digits, - and .";

fn error(field: &str, problem: &str, fix: &str) -> QueryError {
    QueryError {
        field: field.to_owned(),
        problem: problem.to_owned(),
        fix: fix.to_owned(),
    }
}

fn unknown_field(field: &str) -> QueryError {
    let fix = "The parameters are q, namespace, state, from, to and page";
    error(field, "is no parameter of this page", fix)
}

fn parse_text(value: &str) -> Result<String, QueryError> {
    if value.len() > TEXT_LENGTH_MAX || value.contains(char::is_control) {
        let problem = format!("has more than {TEXT_LENGTH_MAX} bytes, or control characters");
        return Err(error(
            "q",
            &problem,
            "Search for a part of a name, or for key=value of a label",
        ));
    }
    Ok(value.trim().to_owned())
}

fn parse_namespace(value: &str) -> Result<Box<str>, QueryError> {
    if value.len() > 63 || !is_object_name(value) || value.contains('.') {
        return Err(error(
            "namespace",
            "is no name of a namespace",
            "Names have lower case letters, digits and -",
        ));
    }
    Ok(value.into())
}

/// Whether the API server accepts the text as a name.
fn is_object_name(value: &str) -> bool {
    let is_end = |byte: Option<&u8>| byte.is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
    let bytes = value.as_bytes();
    let is_inner = |byte: &u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.');
    bytes.len() <= 253 && is_end(bytes.first()) && is_end(bytes.last()) && bytes.iter().all(is_inner)
}

fn parse_state(value: &str) -> Result<StateFilter, QueryError> {
    let found = StateFilter::ALL.into_iter().find(|state| state.as_str() == value);
    found.ok_or_else(|| {
        let states = StateFilter::ALL.map(StateFilter::as_str).join(", ");
        error("state", "is no state", &["The states are ", &states].concat())
    })
}

fn parse_page(value: &str) -> Result<usize, QueryError> {
    let page: Option<usize> = value.parse().ok().filter(|page| (1..=PAGES_MAX).contains(page));
    page.map(|page| page - 1)
        .ok_or_else(|| error("page", "is no number of a page", "Pages count from 1"))
}

fn parse_instant(field: &str, value: &str) -> Result<Timestamp, QueryError> {
    let value = value.trim();
    // RFC 3339 wants seconds; addresses are shorter without them.
    let with_seconds = value.strip_suffix('Z').map(|minutes| [minutes, ":00Z"].concat());
    let parsed = Timestamp::from_str(value).ok();
    let parsed = parsed.or_else(|| with_seconds.and_then(|text| Timestamp::from_str(&text).ok()));
    parsed.ok_or_else(|| error(field, "is no instant", "Write it as 2026-11-21T10:30Z"))
}

fn parse_span(
    from: Option<Timestamp>,
    to: Option<Timestamp>,
    now: Timestamp,
) -> Result<Option<(Timestamp, Timestamp)>, QueryError> {
    let (from, to) = match (from, to) {
        (None, None) => return Ok(None),
        (Some(from), Some(to)) => (from, to),
        (None, Some(_)) => return Err(error("from", "is missing", "Give both from and to")),
        (Some(_), None) => return Err(error("to", "is missing", "Give both from and to")),
    };
    let length = to.duration_since(from);
    if length < SignedDuration::from_mins(1) || length > SPAN_MAX {
        let fix = "The span from from to to has at least a minute and at most 48 hours";
        return Err(error("to", "is not within 48 hours after from", fix));
    }
    if [from, to]
        .iter()
        .any(|at| at.duration_since(now).abs() > SPAN_DISTANCE_MAX)
    {
        return Err(error("from", "is more than a year away", "Choose a nearer span"));
    }
    Ok(Some((from, to)))
}

/// What a search text says of the time of day.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TimeOfDay {
    Between(Time, Time),
    /// It begins as if it named one.
    Misunderstood,
}

/// Takes `starts between 02:00 and 03:00` out of a search text.
fn split_starts_between(text: &str) -> (String, Option<TimeOfDay>) {
    let words: Vec<&str> = text.split_whitespace().collect();
    let is_start = |pair: &[&str]| {
        let both = pair.iter().zip(STARTS_BETWEEN);
        both.into_iter()
            .all(|(word, expected)| word.eq_ignore_ascii_case(expected))
    };
    let Some(start) = words.windows(STARTS_BETWEEN.len()).position(is_start) else {
        return (words.join(" "), None);
    };
    let times = &words[start + STARTS_BETWEEN.len()..];
    match times_of_day(times) {
        Some((from, to, n_words)) => {
            let rest = [&words[..start], &times[n_words..]].concat();
            (rest.join(" "), Some(TimeOfDay::Between(from, to)))
        }
        None => (words.join(" "), Some(TimeOfDay::Misunderstood)),
    }
}

/// Two times of day at the start of some words, and the number of their words.
fn times_of_day(words: &[&str]) -> Option<(Time, Time, usize)> {
    if let Some((from, to)) = words.first()?.split_once(DASHES) {
        return Some((parse_time(from)?, parse_end(to)?, 1));
    }
    let [from, and, to, ..] = words else { return None };
    let is_and = and.eq_ignore_ascii_case("and") || DASHES.iter().any(|dash| *and == dash.to_string());
    let (from, to) = (parse_time(from)?, parse_end(to)?);
    is_and.then_some((from, to, 3))
}

fn parse_time(text: &str) -> Option<Time> {
    Time::strptime("%H:%M", text).ok()
}

/// The end of a span can be the end of the day.
fn parse_end(text: &str) -> Option<Time> {
    if text == "24:00" {
        Some(Time::midnight())
    } else {
        parse_time(text)
    }
}

/// The next time of day between two times, in a zone. It has not ended yet.
fn next_span((from, to): (Time, Time), zone: &Zone, now: Timestamp) -> Option<(Timestamp, Timestamp)> {
    let zone = zone.to_jiff();
    let today = now.to_zoned(zone.clone()).date();
    let instant = |date: jiff::civil::Date, time: Time| {
        let zoned = date.to_datetime(time).to_zoned(zone.clone());
        zoned.ok().map(|zoned| zoned.timestamp())
    };
    let mut day = today.yesterday().ok()?;
    for _ in 0..3 {
        let end_day = if to <= from { day.tomorrow().ok()? } else { day };
        let span = (instant(day, from)?, instant(end_day, to)?);
        if span.1 > now {
            return Some(span);
        }
        day = day.tomorrow().ok()?;
    }
    None
}

#[cfg(test)]
mod tests;
