//! Filters, the drawer, keys and the strip. Every view has an address.

use super::{
    Visit,
    browser::{ENTER, ESCAPE},
};

const NAMES: &str = ".list th a";

pub(super) async fn list_is_filtered_by_text_and_by_clicks(visit: &Visit) {
    let (browser, world) = (&visit.browser, &visit.world);
    let page = visit.open("none").await;
    let (shop, ops) = (&world.shop.name, &world.ops.name);
    let in_shop = |name: &str| format!("{shop}/{name}");
    let in_ops = |name: &str| format!("{ops}/{name}");

    browser.click("#q").await;
    browser.press("rotate").await;
    browser.wait_for_texts(NAMES, &[&in_ops("rotate")]).await;
    assert_eq!(browser.address().await, "/?q=rotate");
    assert_eq!(browser.text("[data-part=count] small").await, "1 of 8 match");
    browser.press(ESCAPE).await;
    browser.click(".filters .clear").await;
    browser
        .wait_for("return document.querySelectorAll(arguments[0]).length === 8", &[NAMES])
        .await;
    assert_eq!(browser.address().await, "/");

    for (state, expected) in [
        ("failed", in_shop("import")),
        ("lost", in_shop("sync")),
        ("late", in_shop("invoice")),
        ("blocked", in_ops("backup")),
        ("suspended", in_ops("cleanup")),
        ("never", in_ops("leap")),
    ] {
        browser
            .click(&format!(".filters a[href='/?state={state}#cronjobs']"))
            .await;
        browser.wait_for_texts(NAMES, &[&expected]).await;
        assert_eq!(browser.address().await, format!("/?state={state}"));
    }
    browser
        .open(&format!(
            "http://{}/?q=team%3Dblue&namespace={ops}&state=running",
            page.address
        ))
        .await;
    assert_eq!(browser.texts(NAMES).await, [in_ops("backup"), in_ops("rotate")]);
    browser.open(&format!("http://{}/", page.address)).await;
    browser.click(".tiles a[href='/?state=failed#cronjobs']").await;
    browser.wait_for_texts(NAMES, &[&in_shop("import")]).await;
    browser
        .click(&format!(
            ".names a[href='/?namespace={shop}&state=failed#cronjobs'], .names li:last-child a"
        ))
        .await;
    browser
        .wait_for("return location.search.includes('namespace=')", &[])
        .await;
    browser.back().await;
    browser
        .wait_for("return location.search === '?state=failed'", &[])
        .await;
    page.end().await;
}

pub(super) async fn drawer_opens_and_closes_by_click_key_and_back(visit: &Visit) {
    let (browser, world) = (&visit.browser, &visit.world);
    let page = visit.open("none").await;
    let import = format!("/cronjobs/{}/import", world.shop.name);
    let open = "return document.querySelector('dialog[open] h2.title')?.textContent || ''";
    let title_is = "return (document.querySelector('dialog[open] h2.title')?.textContent || '') === arguments[0]";

    browser.click(&format!(".list a[href='{import}']")).await;
    browser
        .wait_for(title_is, &[import.trim_start_matches("/cronjobs/")])
        .await;
    assert_eq!(browser.address().await, import);
    browser.back().await;
    browser.wait_for(title_is, &[""]).await;
    assert_eq!(browser.address().await, "/");

    // The focus is where it was: the row before it, by keys alone.
    browser.press("jkk").await;
    browser.press(ENTER).await;
    let before = format!("{}/rotate", world.ops.name);
    browser.wait_for(title_is, &[&before]).await;
    browser.press(ESCAPE).await;
    browser.wait_for(title_is, &[""]).await;
    browser.wait_for("return location.pathname === '/'", &[]).await;

    browser.press("?").await;
    browser
        .wait_for("return !!document.querySelector('dialog.help[open]')", &[])
        .await;
    browser.press(ESCAPE).await;
    browser
        .wait_for("return !document.querySelector('dialog[open]')", &[])
        .await;
    browser.press("/").await;
    browser.wait_for("return document.activeElement.id === 'q'", &[]).await;

    // A shared address has the same content as a page of its own.
    browser.open(&format!("http://{}{import}", page.address)).await;
    assert_eq!(browser.text("h2.title").await, import.trim_start_matches("/cronjobs/"));
    assert_eq!(browser.value::<String>(open, &[]).await, "");
    page.end().await;
}

pub(super) async fn strip_zooms_by_link_and_by_drag(visit: &Visit) {
    let browser = &visit.browser;
    let page = visit.open("none").await;
    // A click on the cell of the last slot of the first row.
    let plot = "const plot = document.querySelector('.plot'), box = plot.getBoundingClientRect(), data = plot.dataset; \
                const at = (seconds) => box.left + box.width * (seconds - data.from) / (data.to - data.from); ";
    let place = format!("{plot} return [at(+arguments[0]), box.top + +data.top + data.pitch / 2]");
    let slot = visit.world.slot(0).as_second();
    let (x, y): (f64, f64) = browser.value(&place, &[&slot.to_string()]).await;
    let (left, _): (f64, f64) = browser.value(&place, &[&(slot - 4 * 3_600).to_string()]).await;

    browser.drag((left, y), (x, y)).await;
    browser
        .wait_for(
            "return location.search.startsWith('?from=') && location.search.includes('&to=')",
            &[],
        )
        .await;
    let (from, to): (i64, i64) = browser
        .value(
            "const { from, to } = document.querySelector('.plot').dataset; return [+from, +to]",
            &[],
        )
        .await;
    assert!(
        (4 * 3_600..5 * 3_600).contains(&(to - from)) && (from..=to).contains(&slot),
        "{from} {to} {slot}"
    );
    browser.click(".zoom .reset").await;
    browser.wait_for("return location.search === ''", &[]).await;

    browser.click(".foot a").await;
    browser
        .wait_for(
            "const { from, to } = document.querySelector('.plot').dataset; return to - from === 3600",
            &[],
        )
        .await;
    let address = browser.address().await;
    browser.open(&format!("http://{}{address}", page.address)).await;
    // All hourly CronJobs had a slot in it, but the suspended one.
    assert_eq!(browser.texts(".list tbody tr").await.len(), 6);

    browser.open(&format!("http://{}/", page.address)).await;
    browser.drag((x, y), (x, y)).await;
    browser
        .wait_for("return location.search.includes('namespace=')", &[])
        .await;
    assert!(browser.address().await.contains(&visit.world.ops.name));
    page.end().await;
}
