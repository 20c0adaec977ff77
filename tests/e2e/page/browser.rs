//! Chromium, driven by `ChromeDriver`.

use std::{
    fs, io,
    os::unix::process::CommandExt as _,
    path::PathBuf,
    process::{Child, Command, Stdio},
};

use fantoccini::{Client, ClientBuilder, Locator, wd::WebDriverCompatibleCommand};
use rustix::process::{Pid, Signal, kill_process_group};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use url::{ParseError, Url};

use crate::{controller::free_port, kubernetes::wait};

/// Keys as `WebDriver` names them.
pub(super) const ENTER: &str = "\u{e007}";
pub(super) const ESCAPE: &str = "\u{e00c}";

/// Without a screen and as root, as in a container. Nothing else than the page is requested.
const ARGUMENTS: [&str; 11] = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--window-size=1280,900",
];

/// Selects the text of all elements, with single spaces.
const TEXTS: &str =
    "return [...document.querySelectorAll(arguments[0])].map((one) => one.textContent.replace(/\\s+/g, ' ').trim())";

/// A browser with one window. Dropping it kills it with its driver.
pub(super) struct Browser {
    client: Client,
    driver: Driver,
}

/// `ChromeDriver`, the leader of a process group in which its browser is too.
struct Driver {
    process: Child,
    profile: PathBuf,
}

impl Browser {
    pub(super) async fn start() -> Browser {
        let port = free_port();
        let driver = Driver::start(port);
        let mut arguments: Vec<String> = ARGUMENTS.map(str::to_owned).into();
        arguments.push(format!("--user-data-dir={}", driver.profile.display()));
        let capabilities = json!({
            "browserName": "chrome",
            "goog:chromeOptions": {"binary": "/usr/bin/chromium", "args": arguments},
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        });
        let capabilities: Map<String, Value> = serde_json::from_value(capabilities).expect("a map");
        let mut client = None;
        let is_there = wait(async || {
            let mut builder = ClientBuilder::new(hyper_util::client::legacy::connect::HttpConnector::new());
            builder.capabilities(capabilities.clone());
            client = builder.connect(&format!("http://127.0.0.1:{port}")).await.ok();
            client.is_some()
        });
        assert!(
            is_there.await,
            "ChromeDriver starts no browser; `make browser` installs both"
        );
        Browser {
            client: client.expect("it is there"),
            driver,
        }
    }

    pub(super) async fn open(&self, url: &str) {
        self.client.goto(url).await.expect("a page");
    }

    /// The address in the address bar, without the host.
    pub(super) async fn address(&self) -> String {
        self.value("return location.pathname + location.search", &[]).await
    }

    pub(super) async fn back(&self) {
        self.client.back().await.expect("a step back");
    }

    /// What a script returns.
    pub(super) async fn value<T: DeserializeOwned>(&self, script: &str, arguments: &[&str]) -> T {
        let arguments = arguments.iter().map(|argument| json!(argument)).collect();
        let value = self.client.execute(script, arguments).await;
        let value = value.unwrap_or_else(|error| panic!("{script}: {error}"));
        serde_json::from_value(value).unwrap_or_else(|error| panic!("{script}: {error}"))
    }

    /// The texts of all elements that match a selector.
    pub(super) async fn texts(&self, selector: &str) -> Vec<String> {
        self.value(TEXTS, &[selector]).await
    }

    /// The text of the first element that matches a selector.
    pub(super) async fn text(&self, selector: &str) -> String {
        let texts = self.texts(selector).await;
        texts.into_iter().next().unwrap_or_else(|| panic!("no {selector}"))
    }

    /// Waits until a script returns true.
    pub(super) async fn wait_for(&self, script: &str, arguments: &[&str]) {
        let is_there = wait(async || self.value::<Option<bool>>(script, arguments).await == Some(true)).await;
        if !is_there {
            let body: String = self.value("return document.body.innerText", &[]).await;
            panic!("{}: not {script} {arguments:?}:\n{body}", self.address().await);
        }
    }

    /// Waits until the texts of a selector are these.
    pub(super) async fn wait_for_texts(&self, selector: &str, expected: &[&str]) {
        let mut seen = Vec::new();
        let are_there = wait(async || {
            seen = self.texts(selector).await;
            seen == expected
        });
        assert!(are_there.await, "{selector}: {seen:?}, not {expected:?}");
    }

    /// Clicks the first element that matches a selector, as a user does: it must be visible.
    pub(super) async fn click(&self, selector: &str) {
        let element = self.client.find(Locator::Css(selector)).await;
        let element = element.unwrap_or_else(|error| panic!("{selector}: {error}"));
        let clicked = element.click().await;
        clicked.unwrap_or_else(|error| panic!("{selector}: {error}"));
    }

    /// Presses keys where the focus is.
    pub(super) async fn press(&self, keys: &str) {
        let element = self.client.active_element().await.expect("an element with the focus");
        element.send_keys(keys).await.expect("pressed keys");
    }

    /// The entries of a log since the last call: `browser`, or `performance` with the requests.
    pub(super) async fn log(&self, kind: &str) -> Vec<Value> {
        let entries = self.command("se/log", json!({"type": kind})).await;
        entries.as_array().expect("entries").clone()
    }

    /// Sends a command of the `DevTools` protocol.
    pub(super) async fn devtools(&self, name: &str, parameters: Value) -> Value {
        let body = json!({"cmd": name, "params": parameters});
        self.command("goog/cdp/execute", body).await
    }

    /// Presses the mouse at a place of the window, moves it, and releases it at another place.
    pub(super) async fn drag(&self, from: (f64, f64), to: (f64, f64)) {
        for (kind, (x, y), buttons) in [
            ("mouseMoved", from, 0),
            ("mousePressed", from, 1),
            ("mouseMoved", to, 1),
            ("mouseReleased", to, 0),
        ] {
            let event = json!({"type": kind, "x": x, "y": y, "button": "left", "buttons": buttons, "clickCount": 1});
            self.devtools("Input.dispatchMouseEvent", event).await;
        }
    }

    async fn command(&self, path: &'static str, body: Value) -> Value {
        let answer = self.client.issue_cmd(Extension { path, body }).await;
        answer.unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    /// Ends the browser and its driver.
    pub(super) async fn close(self) {
        self.client.close().await.expect("an end");
        drop(self.driver);
    }
}

impl Driver {
    fn start(port: u16) -> Driver {
        let profile = std::env::temp_dir().join(format!("cronwheel-browser-{}-{port}", std::process::id()));
        fs::create_dir_all(&profile).expect("a folder");
        let process = Command::new("chromedriver")
            .arg(format!("--port={port}"))
            .arg("--log-level=SEVERE")
            // The browser leaves files there.
            .env("TMPDIR", &profile)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .process_group(0)
            .spawn();
        let process = process.unwrap_or_else(|error: io::Error| panic!("chromedriver: {error}; see `make browser`"));
        Driver { process, profile }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // Both may have ended already.
        let group = Pid::from_child(&self.process);
        let _ = kill_process_group(group, Signal::KILL);
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.profile);
    }
}

/// A command that only `ChromeDriver` has.
#[derive(Debug)]
struct Extension {
    path: &'static str,
    body: Value,
}

impl WebDriverCompatibleCommand for Extension {
    fn endpoint(&self, base_url: &Url, session_id: Option<&str>) -> Result<Url, ParseError> {
        let session_id = session_id.unwrap_or_default();
        base_url.join(&format!("session/{session_id}/{}", self.path))
    }

    fn method_and_body(&self, _: &Url) -> (http::Method, Option<String>) {
        (http::Method::POST, Some(self.body.to_string()))
    }
}
