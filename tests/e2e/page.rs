//! The page of `cronwheel ui` in a real browser, on a real API server. Cases share the control plane of the outages, and
//! run one at a time: a browser keeps two cores busy.

mod browser;
mod built_in;
mod living;
mod moving;
mod pictures;
mod safety;
mod size;
mod values;
mod world;

use std::{pin::Pin, time::Duration};

use libtest_mimic::Trial;

use self::{browser::Browser, world::World};
use crate::{
    block_on,
    cases::viewing::Page,
    control_plane::{Purpose, take},
};

type Run<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

struct Case {
    name: &'static str,
    run: for<'a> fn(&'a Visit) -> Run<'a>,
}

macro_rules! cases {
    ($($module:ident :: $case:ident),* $(,)?) => {
        [$(Case {
            name: concat!("page::", stringify!($module), "::", stringify!($case)),
            run: |visit| Box::pin($module::$case(visit)),
        }),*]
    };
}

const DURATION_MAX: Duration = Duration::from_mins(1);

/// A fleet in an API server, and a browser.
struct Visit {
    world: World,
    browser: Browser,
}

impl Visit {
    /// Starts the page of the world, and opens it once it is complete.
    async fn open(&self, history: &str) -> Page {
        let page = Page::start_with_history(&self.world.kubeconfig, history, &self.world.arguments()).await;
        self.browser.open(&format!("http://{}/", page.address)).await;
        self.wait_until_live().await;
        page
    }

    async fn wait_until_live(&self) {
        let is_live = "return document.querySelector('.live:not(.stale) .state')?.textContent.startsWith('live')";
        self.browser.wait_for(is_live, &[]).await;
    }
}

pub(super) fn trials() -> impl Iterator<Item = Trial> {
    let cases = cases![
        values::panels_show_what_the_api_server_has,
        values::page_of_a_cron_job_shows_its_slots,
        moving::list_is_filtered_by_text_and_by_clicks,
        moving::drawer_opens_and_closes_by_click_key_and_back,
        moving::strip_zooms_by_link_and_by_drag,
        living::change_appears_without_a_reload,
        living::runs_outlive_their_jobs_and_a_kill,
        living::outage_is_named_and_leaves_no_gap,
        living::namespace_without_permission_is_named,
        safety::markup_is_text,
        safety::nothing_is_written_and_nothing_comes_from_elsewhere,
    ];
    let cases = cases.into_iter().map(|Case { name, run }| {
        Trial::test(name, move || {
            visit(name, run);
            Ok(())
        })
    });
    cases.chain(size::trials()).chain(pictures::trials())
}

pub(super) fn trials_beside() -> impl Iterator<Item = Trial> {
    built_in::trials()
}

/// Runs a case with a world and a browser of its own.
fn visit(name: &'static str, run: for<'a> fn(&'a Visit) -> Run<'a>) {
    take(Purpose::Outages, |_, access| {
        block_on(DURATION_MAX, async {
            let (world, browser) = tokio::join!(World::create(name, access), Browser::start());
            world.fill().await;
            let visit = Visit { world, browser };
            run(&visit).await;
            visit.browser.close().await;
        });
    });
}
