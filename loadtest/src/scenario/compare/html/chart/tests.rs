//! The positions of figures.

use super::*;

fn ruler(axis: Axis, figures: &[f64]) -> Ruler {
    Ruler::of(axis, figures, (0.0, 100.0)).unwrap()
}

fn chart(points: Vec<(f64, f64)>) -> Chart {
    Chart {
        x: Axis::logarithmic("lateness, ms"),
        y: Axis::linear("share <%>"),
        series: vec![Series {
            name: Some("a & b".into()),
            colour: "#123456",
            points,
        }],
        lines: vec![Line {
            name: "limit".into(),
            x: 1_000.0,
        }],
        bands: vec![Band {
            name: "measured".into(),
            begin: 1.0,
            end: 10.0,
        }],
        is_stepped: false,
    }
}

#[test]
fn figures_are_placed_by_their_share_of_the_range() {
    let check = |ruler: Ruler, figure: f64, expected: f64| {
        let place = ruler.place(figure);
        assert!((place - expected).abs() < 1e-6, "{figure}: {place}");
    };
    let linear = ruler(Axis::linear("x"), &[-10.0, 30.0]);
    check(linear, -10.0, 0.0);
    check(linear, 0.0, 25.0);
    check(linear, 30.0, 100.0);
    check(linear, 99.0, 100.0);
    let logarithmic = ruler(Axis::logarithmic("x"), &[2.0, 5_000.0]);
    check(logarithmic, 1.0, 0.0);
    check(logarithmic, 100.0, 50.0);
    check(logarithmic, 10_000.0, 100.0);
    check(ruler(Axis::linear("x"), &[7.0]), 7.0, 0.0);
}

#[test]
fn axis_marks_are_round_numbers() {
    let marks = |axis: Axis, figures: &[f64]| {
        let marks = ruler(axis, figures).marks();
        marks.into_iter().map(figure_text).collect::<Vec<_>>().join(" ")
    };
    assert_eq!(marks(Axis::linear("x"), &[0.0, 60.0]), "0 10 20 30 40 50 60");
    assert_eq!(marks(Axis::linear("x"), &[-3.0, 118.0]), "0 50 100");
    assert_eq!(marks(Axis::linear("x"), &[0.0, 0.7]), "0 0.2 0.4 0.6");
    assert_eq!(
        marks(Axis::logarithmic("x"), &[0.5, 90_000.0]),
        "0.1 1 10 100 1000 10000 100000"
    );
}

#[test]
fn a_drawing_has_its_series_lines_and_bands() {
    let svg = chart(vec![(2.0, 0.0), (200.0, 100.0)]).svg();
    assert!(svg.starts_with("<svg viewBox") && svg.ends_with("</svg>"), "{svg}");
    for part in [
        "stroke=\"#123456\"",
        "a &amp; b",
        "share &lt;%&gt;",
        ">limit<",
        ">measured<",
    ] {
        assert!(svg.contains(part), "{part} is not in\n{svg}");
    }
    // From 1 to 1,000 ms: the point at 200 ms, and at 100 % of the runs.
    assert!(svg.contains(&format!(",{TOP:.1}\" fill=\"none\"")), "{svg}");
}

#[test]
fn empty_chart_says_that_nothing_was_measured() {
    assert_eq!(chart(Vec::new()).svg(), "<p>Nothing was measured.</p>");
}

#[test]
fn a_stepped_figure_holds_until_the_next_one() {
    let mut chart = chart(vec![(1.0, 5.0), (2.0, 0.0), (3.0, 7.0)]);
    assert_eq!(chart.drawn_points(&chart.series[0]), chart.series[0].points);
    chart.is_stepped = true;
    let corners = [(1.0, 5.0), (2.0, 5.0), (2.0, 0.0), (3.0, 0.0), (3.0, 7.0)];
    assert_eq!(chart.drawn_points(&chart.series[0]), corners);
}
