//! A browser of its own for each test.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use serde_json::{Value, json};
use tempfile::TempDir;
use thirtyfour::{
    By, ChromiumLikeCapabilities, DesiredCapabilities, LoggingPrefsLogLevel, WebDriver, WebElement,
    error::{WebDriverError, WebDriverErrorInner},
};

/// Long enough for anything here on a busy machine; reached only when a test fails.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// A size of the window's inside, in CSS pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Screen {
    pub(crate) width: u32,
    pub(crate) height: u32,
}

pub(crate) const DESK: Screen = Screen {
    width: 1280,
    height: 720,
};
pub(crate) const HAND: Screen = Screen {
    width: 390,
    height: 844,
};

/// Chromium with an empty profile, and the driver that steers it. Dropped, both end.
pub(crate) struct Browser {
    pub(crate) driver: WebDriver,
    _chrome_driver: ChromeDriver,
    _profile: TempDir,
}

impl Browser {
    pub(crate) async fn open() -> Self {
        let chrome_driver = ChromeDriver::start();
        let profile = tempfile::tempdir().unwrap();
        let mut wanted = DesiredCapabilities::chrome();
        let own_profile = format!("--user-data-dir={}", profile.path().display());
        for argument in [
            "--headless=new",
            "--no-sandbox",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-dev-shm-usage",
            "--disable-sync",
            &own_profile,
        ] {
            wanted.add_arg(argument).unwrap();
        }
        for log in ["browser", "performance"] {
            wanted
                .set_logging_prefs(log, LoggingPrefsLogLevel::All)
                .unwrap();
        }
        let driver = WebDriver::new(chrome_driver.url(), wanted)
            .await
            .expect("Chromium starts");
        let browser = Self {
            driver,
            _chrome_driver: chrome_driver,
            _profile: profile,
        };
        // What the browser's own first page asks for is not counted.
        browser.go("about:blank").await;
        browser.requests().await;
        browser
    }

    /// A command of the DevTools protocol.
    pub(crate) async fn command(&self, name: &str, parameters: Value) -> Value {
        let sent = self.driver.cdp().send_raw(name, parameters).await;
        sent.unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub(crate) async fn resize(&self, screen: Screen) {
        let Screen { width, height } = screen;
        let metrics = json!({
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": screen == HAND,
        });
        self.command("Emulation.setDeviceMetricsOverride", metrics)
            .await;
    }

    /// Has pages see these media features, such as `("prefers-color-scheme", "dark")`, on `medium`.
    pub(crate) async fn media(&self, medium: &str, features: &[(&str, &str)]) {
        let features: Vec<Value> = features
            .iter()
            .map(|(name, value)| json!({"name": name, "value": value}))
            .collect();
        let media = json!({"media": medium, "features": features});
        self.command("Emulation.setEmulatedMedia", media).await;
    }

    pub(crate) async fn go(&self, url: &str) {
        self.driver.goto(url).await.unwrap();
    }

    /// What the body of a function returns on the page.
    pub(crate) async fn ask(&self, script: &str) -> Value {
        let said = self.driver.execute(script, Vec::new()).await;
        said.unwrap_or_else(|error| panic!("{script}: {error}"))
            .json()
            .clone()
    }

    pub(crate) async fn click(&self, selector: &str) {
        let deadline = Instant::now() + PATIENCE;
        while let Err(error) = self.found(selector).await.click().await {
            replaced_meanwhile(selector, &error, deadline);
        }
    }

    pub(crate) async fn write(&self, selector: &str, text: &str) {
        let deadline = Instant::now() + PATIENCE;
        while let Err(error) = self.found(selector).await.send_keys(text).await {
            replaced_meanwhile(selector, &error, deadline);
        }
    }

    async fn found(&self, selector: &str) -> WebElement {
        let found = self.driver.find(By::Css(selector)).await;
        found.unwrap_or_else(|error| panic!("{selector}: {error}"))
    }

    /// The visible text of the first element that `selector` finds, or nothing.
    pub(crate) async fn text(&self, selector: &str) -> String {
        let script = format!(
            "const one = document.querySelector({}); return one ? one.innerText : '';",
            Value::from(selector)
        );
        self.ask(&script).await.as_str().unwrap().to_owned()
    }

    /// Asks again and again until the answer is `true`.
    pub(crate) async fn until(&self, what: &str, script: &str) {
        let deadline = Instant::now() + PATIENCE;
        while self.ask(script).await != Value::Bool(true) {
            if Instant::now() > deadline {
                let page = self.text("body").await;
                panic!("waited in vain until {what}; the page says\n{page}");
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Messages of the console, of any level, since the last call.
    pub(crate) async fn console(&self) -> Vec<String> {
        let entries = self.driver.get_log("browser").await.unwrap();
        let message = |entry: thirtyfour::BrowserLogEntry| entry.message;
        entries.into_iter().map(message).collect()
    }

    /// Addresses that were asked for since the last call, redirections and failures included.
    pub(crate) async fn requests(&self) -> Vec<String> {
        let entries = self.driver.get_log("performance").await.unwrap();
        let address = |entry: &thirtyfour::BrowserLogEntry| {
            let event: Value = serde_json::from_str(&entry.message).unwrap();
            let event = &event["message"];
            let asked = event["method"] == "Network.requestWillBeSent";
            let address = event["params"]["request"]["url"].as_str();
            asked.then(|| address.unwrap().to_owned())
        };
        entries.iter().filter_map(address).collect()
    }
}

/// A live page replaces its elements: one that has gone since it was found is looked for again.
fn replaced_meanwhile(selector: &str, error: &WebDriverError, deadline: Instant) {
    let gone = matches!(
        error.as_inner(),
        WebDriverErrorInner::StaleElementReference(_)
    );
    assert!(gone && Instant::now() < deadline, "{selector}: {error}");
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The whole group is killed: nothing is left to be quit politely.
        drop(self.driver.clone().leak());
    }
}

/// ChromeDriver on a free port, the leader of a group that its browser belongs to.
struct ChromeDriver {
    child: Child,
    port: u16,
}

impl ChromeDriver {
    fn start() -> Self {
        let mut child = Command::new("chromedriver")
            .arg("--port=0")
            .process_group(0)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromedriver starts (Debian has it in the package chromium-driver)");
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let port = lines
            .find_map(|line| {
                let line = line.ok()?;
                let (_, port) = line.split_once("started successfully on port ")?;
                port.trim_end_matches('.').parse().ok()
            })
            .expect("chromedriver says its port");
        // It must be able to go on writing.
        std::thread::spawn(move || lines.for_each(drop));
        Self { child, port }
    }

    fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

impl Drop for ChromeDriver {
    fn drop(&mut self) {
        let group = Pid::from_raw(i32::try_from(self.child.id()).unwrap());
        let deadline = Instant::now() + PATIENCE;
        // Its profile can be removed once nobody writes it.
        while killpg(group, Signal::SIGKILL).is_ok() && Instant::now() < deadline {
            self.child.wait().unwrap();
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}
