//! What needs attention, and the advice.

use maud::{Markup, html};

use super::{clock::Clock, query, query::PageQuery, words};
use crate::observe::view::{Advice, Attention, CronJobName, StateFilter, Trouble};

/// CronJobs that are listed. The rest is counted, with links to the list.
const LISTED_MAX: usize = 12;

/// Instead of a calm sentence until everything is listed.
const UNKNOWN: &str = "Not known yet: the CronJobs and Jobs are being listed.";

/// All kinds of trouble, in the order of the count of the rest.
const TROUBLES: [Trouble; 7] = [
    Trouble::Lost,
    Trouble::Late,
    Trouble::Failed,
    Trouble::Doubled,
    Trouble::Blocked,
    Trouble::NoSuccess,
    Trouble::Never,
];

/// The CronJobs that need attention.
pub(super) fn section(attention: &[Attention], is_listed: bool, clock: &Clock) -> Markup {
    let (listed, rest) = attention.split_at(attention.len().min(LISTED_MAX));
    html! {
        section.panel #attention data-part="attention" {
            h2 { "Needs attention " small { "oldest first" } }
            @if attention.is_empty() {
                p.nothing { @if is_listed { "Nothing known is wrong." } @else { (UNKNOWN) } }
            } @else {
                div.scroll tabindex="0" role="region" aria-label="Needs attention" {
                    table.attention {
                        thead {
                            tr {
                                th scope="col" { span.hidden { "What" } }
                                th scope="col" { "CronJob" }
                                th.num scope="col" { "For" }
                                th.num scope="col" { "Last success" }
                            }
                        }
                        tbody {
                            @for one in listed { (row(one, clock)) }
                        }
                    }
                }
                (rest_links(rest))
            }
        }
    }
}

fn row(attention: &Attention, clock: &Clock) -> Markup {
    html! {
        tr {
            td { (pill(attention.trouble)) }
            td.name {
                (cron_job_link(&attention.cron_job))
                small { (attention.reason) }
            }
            td.num {
                @match attention.since {
                    Some(since) => (clock.age(since)),
                    None => "always",
                }
            }
            td.num.dim {
                @match attention.last_success {
                    Some(last_success) => (clock.home_time(last_success)),
                    None => "never",
                }
            }
        }
    }
}

/// The word for a kind of trouble, with its colour and form.
pub(super) fn pill(trouble: Trouble) -> Markup {
    let class = match trouble {
        Trouble::NoSuccess | Trouble::Doubled => "failed",
        Trouble::Lost | Trouble::Late | Trouble::Failed | Trouble::Blocked | Trouble::Never => trouble.as_str(),
    };
    html! { span.pill.(class) { (trouble.as_str()) } }
}

/// The name of a CronJob as a link to it. The script opens such links in the drawer.
pub(super) fn cron_job_link(cron_job: &CronJobName) -> Markup {
    html! {
        a href=(query::cron_job_url(cron_job)) { (cron_job.namespace) "/" wbr; (cron_job.name) }
    }
}

fn rest_links(rest: &[Attention]) -> Markup {
    let counts = TROUBLES.map(|trouble| (trouble, rest.iter().filter(|one| one.trouble == trouble).count()));
    let counted: Vec<_> = counts.iter().filter(|(_, n_cron_jobs)| *n_cron_jobs > 0).collect();
    let text = |trouble: Trouble, n_cron_jobs: usize| match counted.len() {
        1 => trouble.as_str().to_owned(),
        _ => format!("{} {}", words::size(n_cron_jobs), trouble.as_str()),
    };
    html! {
        @if !rest.is_empty() {
            p.rest {
                (words::size(rest.len())) " more: "
                @for (index, (trouble, n_cron_jobs)) in counted.iter().enumerate() {
                    @if index > 0 { ", " }
                    @let text = text(*trouble, *n_cron_jobs);
                    @match state(*trouble) {
                        Some(state) => a href=(PageQuery::default().with_state(Some(state)).list_url()) { (text) },
                        None => (text),
                    }
                }
            }
        }
    }
}

/// The state by which the list shows such CronJobs.
fn state(trouble: Trouble) -> Option<StateFilter> {
    match trouble {
        Trouble::Lost => Some(StateFilter::Lost),
        Trouble::Late => Some(StateFilter::Late),
        Trouble::Failed => Some(StateFilter::Failed),
        Trouble::Blocked => Some(StateFilter::Blocked),
        Trouble::Never => Some(StateFilter::Never),
        Trouble::NoSuccess | Trouble::Doubled => None,
    }
}

/// The advice.
pub(super) fn advice(advice: &[Advice], is_listed: bool) -> Markup {
    html! {
        section.panel #advice data-part="advice" {
            h2 { "Advice" }
            @if advice.is_empty() {
                p.nothing {
                    @if is_listed { "None: peaks, deadlines and clock changes look harmless." } @else { (UNKNOWN) }
                }
            } @else {
                ul {
                    @for one in advice { li { (sentence(one)) } }
                }
            }
        }
    }
}

/// The sentence. Names in it are links, and the other CronJobs are named below it.
fn sentence(advice: &Advice) -> Markup {
    let mut others: Vec<&CronJobName> = advice.cron_jobs.iter().collect();
    let mut text = html! { (advice.sentence) };
    if let [only] = advice.cron_jobs.as_slice() {
        let name = format!("{}/{}", only.namespace, only.name);
        if let Some((before, after)) = advice.sentence.split_once(&name) {
            text = html! { (before) (cron_job_link(only)) (after) };
            others.clear();
        }
    }
    let n_unnamed = advice.n_cron_jobs.saturating_sub(advice.cron_jobs.len());
    html! {
        (text)
        @if !others.is_empty() {
            details {
                summary { (words::counted(advice.n_cron_jobs.try_into().unwrap_or(u64::MAX), "CronJob")) }
                @for (index, cron_job) in others.iter().enumerate() {
                    @if index > 0 { ", " }
                    (cron_job_link(cron_job))
                }
                @if n_unnamed > 0 { " and " (words::size(n_unnamed)) " more" }
            }
        }
    }
}
