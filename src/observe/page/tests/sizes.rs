//! The page stays small.

use super::{
    super::frame::{SCRIPT, STYLE},
    app, fixture, get,
    markup::elements,
};

/// Page, styles and script together.
const BYTES_MAX: usize = 150_000;

#[tokio::test]
async fn a_page_of_a_large_fleet_is_small() {
    let app = app(fixture::large());
    for uri in ["/", "/?page=200", "/?from=2026-11-27T20:00Z&to=2026-11-27T23:00Z"] {
        #[expect(clippy::disallowed_methods, reason = "the time is printed, not judged")]
        let start = std::time::Instant::now();
        let page = get(&app, uri).await.text;
        let total = page.len() + STYLE.len() + SCRIPT.len();
        eprintln!(
            "{uri}: {} bytes, {total} with styles and script, in {:?}",
            page.len(),
            start.elapsed()
        );
        assert!(
            total <= BYTES_MAX,
            "{uri}: {} bytes, {total} with styles and script",
            page.len()
        );
        let elements = elements(&page);
        let rows = elements
            .iter()
            .filter(|element| element.attribute("scope") == Some("row"));
        assert_eq!(rows.count(), 100, "{uri}");
    }
}
