//! What surrounds every page: the head, the name of the cluster, banners.

use maud::{DOCTYPE, Markup, html};

use super::{Heading, clock::Clock};

pub(super) const STYLE: &str = include_str!("style.css");
pub(super) const SCRIPT: &str = include_str!("script.js");
pub(super) const ICON: &str = include_str!("favicon.svg");

const STYLE_HASH: u32 = hash(STYLE);
const SCRIPT_HASH: u32 = hash(SCRIPT);

/// Namespaces that are named in a banner.
const NAMED_MAX: usize = 10;

/// A page without its content.
pub(super) struct Frame<'a> {
    pub(super) title: &'a str,
    pub(super) heading: &'a Heading,
    pub(super) clock: &'a Clock,
    /// The version of what is shown.
    pub(super) version: u64,
    /// What stands beside the name of the cluster.
    pub(super) summary: Markup,
}

impl Frame<'_> {
    /// The whole page. Parts that the script replaces have `data-part`.
    pub(super) fn page(&self, content: &Markup) -> Markup {
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (self.title) " · " (self.heading.cluster) }
                    link rel="icon" href="/favicon.svg" type="image/svg+xml";
                    link rel="stylesheet" href={ "/style.css?" (STYLE_HASH) };
                    script src={ "/script.js?" (SCRIPT_HASH) } defer {}
                }
                body data-version=(self.version) {
                    a.skip href="#main" { "Skip to content" }
                    (patterns())
                    (self.header())
                    main #main tabindex="-1" {
                        (self.banners())
                        (self.notes())
                        (content)
                    }
                    footer {
                        "This page only reads. "
                        span.keys { kbd { "?" } " shows the keys." }
                    }
                }
            }
        }
    }

    fn header(&self) -> Markup {
        html! {
            header data-part="header" {
                h1 { a href="/" { "CronJobs of " (self.heading.cluster) } }
                p.who { (self.summary) }
                (self.live())
            }
        }
    }

    /// The time of the page. The script turns it into a running clock, and says whether it is live.
    fn live(&self) -> Markup {
        let now = self.clock.now;
        let state = if self.heading.is_live {
            "as of"
        } else {
            "not current, as of"
        };
        html! {
            p.live.stale[!self.heading.is_live] {
                span.state role="status" { (state) } " "
                time datetime=(now.strftime("%Y-%m-%dT%H:%M:%SZ")) title=(self.clock.full(now, &self.clock.home)) {
                    (self.clock.precise(now))
                }
            }
        }
    }

    fn banners(&self) -> Markup {
        let unreadable = &self.heading.unreadable_namespaces;
        html! {
            div.banners data-part="banners" {
                @for banner in &self.heading.banners {
                    p.banner { (banner) }
                }
                @if !unreadable.is_empty() {
                    p.banner { (unreadable_sentence(unreadable)) }
                }
            }
        }
    }

    fn notes(&self) -> Markup {
        html! {
            div.notes data-part="notes" {
                @for note in &self.heading.notes { p { (note) } }
            }
        }
    }
}

fn unreadable_sentence(namespaces: &[Box<str>]) -> String {
    let named: Vec<&str> = namespaces.iter().take(NAMED_MAX).map(AsRef::as_ref).collect();
    let rest = match namespaces.len() - named.len() {
        0 => String::new(),
        n_more => format!(" and {n_more} more"),
    };
    let named = named.join(", ");
    format!("Not shown, because the account may not list their CronJobs and Jobs: {named}{rest}.")
}

/// The hatches of all charts. An element without size holds them, because a hidden one loses them.
fn patterns() -> Markup {
    html! {
        svg.patterns width="0" height="0" aria-hidden="true" focusable="false" {
            pattern id="hatch" width="5" height="5" patternUnits="userSpaceOnUse" patternTransform="rotate(45)" {
                rect.ground width="5" height="5" {}
                rect.line width="2" height="5" {}
            }
            pattern id="clock-hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(-45)" {
                rect.line width="1" height="6" {}
            }
        }
    }
}

/// A hash of a text, FNV-1a.
const fn hash(text: &str) -> u32 {
    let bytes = text.as_bytes();
    let (mut hash, mut at) = (0x811c_9dc5_u32, 0);
    while at < bytes.len() {
        hash = (hash ^ bytes[at] as u32).wrapping_mul(0x0100_0193);
        at += 1;
    }
    hash
}
