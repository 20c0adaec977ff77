//! The contents of the page.

use super::*;
use crate::scenario::compare::result::tests::result;

#[test]
fn the_page_has_thresholds_table_drawings_and_flags() {
    let page = page(&result(&[900.0; 3], &[8_000.0; 3]));
    for part in [
        "<p class=\"met\">✓ p99: 900, ",
        "<td>8000 (8000 to 8000)</td>",
        "Creates over the minute",
        "share of runs, %",
        ">measured</text>",
        "<code>--flag</code>",
        "<code>loadtest compare</code>",
    ] {
        assert!(page.contains(part), "{part} is not in\n{page}");
    }
    assert_eq!(page.matches("<svg").count(), 4);
    assert_eq!(page.matches("<svg").count(), page.matches("</svg>").count());
}

#[test]
fn page_has_no_external_resources() {
    let page = page(&result(&[900.0; 3], &[8_000.0; 3]));
    for forbidden in ["http:", "https:", "src=", "href=", "url(", "@import", "<script"] {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
}

#[test]
fn incomplete_result_is_marked_on_the_page() {
    let mut result = result(&[], &[]);
    result.incomplete = Some("<interrupted>".into());
    let page = page(&result);
    assert!(page.contains("Incomplete: &lt;interrupted&gt;"), "{page}");
    assert!(page.contains("Nothing was measured."));
}

#[test]
fn threshold_is_drawn_only_in_the_lateness_chart() {
    let result = result(&[900.0], &[8_000.0]);
    assert!(lateness_chart(&result).svg().contains(">p99</text>"));
    assert!(!cpu_chart(&result).svg().contains(">p99</text>"));
}

#[test]
fn processor_time_is_drawn_as_a_rate() {
    let chart = cpu_chart(&result(&[900.0], &[]));
    let points: Vec<String> = chart
        .series
        .iter()
        .flat_map(|series| &series.points)
        .map(text)
        .collect();
    // 1000 ms within 60 s.
    assert_eq!(points, ["59.0: 16.7"]);
}

fn text((x, y): &(f64, f64)) -> String {
    format!("{x:.1}: {y:.1}")
}
