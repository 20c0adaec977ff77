//! The report as one HTML page: no scripts, no other files, light and dark.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::{
    document::{Block, Document, Head},
    text,
};
use crate::observe::words::harmless;

/// Nothing may be loaded or run; the style is in the page.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'";

const STYLE: &str = "\
:root{color-scheme:light dark;--ink:#222;--soft:#68707a;--line:#dcdfe3;--ground:#fdfdfb;--bar:#5b8fbf}\
@media(prefers-color-scheme:dark){:root{--ink:#e4e6e8;--soft:#9aa3ad;--line:#3a4047;--ground:#15181b;--bar:#6fa3d3}}\
body{margin:2rem auto;max-width:62rem;padding:0 1rem;background:var(--ground);color:var(--ink);\
font:15px/1.5 system-ui,sans-serif}\
h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2rem;border-bottom:1px solid var(--line)}h3{font-size:1rem}\
.wide{overflow-x:auto}table{border-collapse:collapse}th,td{padding:.2rem .8rem .2rem 0;text-align:left}\
th{color:var(--soft);font-weight:normal}td{border-top:1px solid var(--line)}\
.number{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}\
pre{overflow-x:auto;padding:.6rem;border:1px solid var(--line)}.more{color:var(--soft);display:block}\
svg{width:100%;height:auto}rect{fill:var(--bar)}text{fill:var(--soft);font:10px system-ui,sans-serif}";

/// The drawing of the seconds: width of a second, height of the longest bar, and height with the numbers.
const SECOND_WIDTH: u64 = 12;
const BAR_HEIGHT: u64 = 80;
const HEIGHT: u64 = 96;

pub(super) fn render(document: &Document) -> String {
    let title = harmless(&document.title);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { (title) }
                @for one in &document.opening { (block(one)) }
                @for section in &document.sections {
                    section {
                        h2 { (section.title) }
                        @for one in &section.blocks { (block(one)) }
                    }
                }
            }
        }
    };
    page.into_string() + "\n"
}

fn block(block: &Block) -> Markup {
    match block {
        Block::Paragraph(text) => html! { p { (harmless(text)) } },
        Block::List(points) => html! {
            ul {
                @for (text, more) in points {
                    li {
                        (harmless(text))
                        @if let Some(more) = more { span.more { (harmless(more)) } }
                    }
                }
            }
        },
        Block::Table { heads, rows } => table(heads, rows),
        Block::Bars(values) => bars(values),
        Block::Entry(title) => html! { h3 { (harmless(title)) } },
        Block::Command(words) => html! { pre { code { (text::command(words).join("\n")) } } },
    }
}

fn table(heads: &[Head], rows: &[Vec<String>]) -> Markup {
    let class = |head: &Head| head.is_number().then_some("number");
    html! {
        div.wide {
            table {
                thead { tr {
                    @for head in heads { th scope="col" class=[class(head)] { (head.text()) } }
                } }
                tbody {
                    @for row in rows { tr {
                        @for (cell, head) in row.iter().zip(heads) { td class=[class(head)] { (harmless(cell)) } }
                    } }
                }
            }
        }
    }
}

fn bars(values: &[u64]) -> Markup {
    let max = values.iter().copied().max().unwrap_or_default().max(1);
    let bars = (0_u64..).zip(values).filter(|(_, value)| **value > 0);
    let bar = |(second, value): (u64, &u64)| {
        let height = (value * BAR_HEIGHT).div_ceil(max);
        html! {
            rect x=(second * SECOND_WIDTH + 1) y=(BAR_HEIGHT - height) width=(SECOND_WIDTH - 2) height=(height) {
                title { "second " (second) ": " (value) }
            }
        }
    };
    let width = SECOND_WIDTH * values.len() as u64;
    html! {
        svg viewBox=(format!("0 0 {width} {HEIGHT}")) role="img" aria-label="Jobs by second of the minute" {
            @for one in bars { (bar(one)) }
            @for second in (0..values.len() as u64).step_by(10) {
                text x=(second * SECOND_WIDTH) y=(HEIGHT - 3) { (second) }
            }
        }
    }
}
