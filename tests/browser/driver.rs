//! A browser without a window, led by the WebDriver protocol: a few requests of JSON.

use std::{
    io::{BufRead as _, BufReader},
    net::SocketAddr,
    path::Path,
    process::{Child, Command, Stdio},
    time::Duration,
};

use boatswain::Clock;
use boatswain_tests::request;
use hyper::Method;
use k8s_openapi::ByteString;
use serde_json::{Value, json};

/// A browser of its own for one test; it ends with it.
pub(crate) struct Browser {
    driver: Child,
    port: u16,
    session: String,
}

impl Browser {
    /// Starts Chromium by its driver.
    ///
    /// # Panics
    ///
    /// Where they are not installed: on Debian `apt-get install chromium chromium-driver`.
    pub(crate) async fn start() -> Self {
        let mut driver = Command::new("chromedriver")
            .arg("--port=0")
            .stdout(Stdio::piped())
            .spawn()
            .expect("chromedriver: apt-get install chromium chromium-driver");
        let mut told = BufReader::new(driver.stdout.take().expect("its output")).lines();
        // "ChromeDriver was started successfully on port 12345."
        let port = told.find_map(|line| {
            let line = line.expect("text");
            let (_, port) = line.split_once("successfully on port ")?;
            port.trim_end_matches('.').parse().ok()
        });
        std::thread::spawn(move || told.for_each(drop));
        let mut browser = Self {
            driver,
            port: port.expect("a port"),
            session: String::new(),
        };
        let args = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
            "--lang=en",
        ];
        let options = json!({ "binary": "/usr/bin/chromium", "args": args });
        let wanted =
            json!({ "capabilities": { "alwaysMatch": { "goog:chromeOptions": options } } });
        let session = browser.call(Method::POST, "", wanted).await;
        browser.session = session["sessionId"].as_str().expect("a session").to_owned();
        browser.size(1280, 900, false).await;
        browser
    }

    fn address(&self) -> SocketAddr {
        SocketAddr::from(([127, 0, 0, 1], self.port))
    }

    async fn call(&self, method: Method, path: &str, body: Value) -> Value {
        let base = match self.session.as_str() {
            "" => "/session".to_owned(),
            session => format!("/session/{session}/{path}"),
        };
        let (code, text) = request(self.address(), method, &base, &[], body.to_string()).await;
        let answer: Value = serde_json::from_str(&text).expect("JSON");
        assert!(code.is_success(), "{path} {body}: {answer}");
        answer["value"].clone()
    }

    pub(crate) async fn open(&self, address: &str) {
        self.call(Method::POST, "url", json!({ "url": address }))
            .await;
    }

    /// Opens an address in a tab of its own, in front of the others.
    pub(crate) async fn open_tab(&self, address: &str) {
        let tab = self
            .call(Method::POST, "window/new", json!({ "type": "tab" }))
            .await;
        let tab = json!({ "handle": tab["handle"] });
        self.call(Method::POST, "window", tab).await;
        self.devtools("Page.bringToFront", json!({})).await;
        self.open(address).await;
    }

    /// Goes to another view of the page.
    pub(crate) async fn go(&self, hash: &str) {
        self.run("location.hash = arguments[0]", json!([hash]))
            .await;
    }

    /// What a function body returns; `args` are its `arguments`.
    pub(crate) async fn run(&self, script: &str, args: Value) -> Value {
        let body = json!({ "script": script, "args": args });
        self.call(Method::POST, "execute/sync", body).await
    }

    /// The text of the first element that a selector finds.
    pub(crate) async fn text(&self, selector: &str) -> Option<String> {
        let script = "return document.querySelector(arguments[0])?.innerText ?? null";
        let text = self.run(script, json!([selector])).await;
        text.as_str().map(str::to_owned)
    }

    /// Waits until the text of an element holds `words`.
    pub(crate) async fn sees(&self, selector: &str, words: &str) -> String {
        boatswain_tests::eventually(&format!("{selector} holds {words:?}"), async || match self
            .text(selector)
            .await
        {
            Some(text) if text.contains(words) => Ok(text),
            other => Err(other),
        })
        .await
    }

    /// Clicks what a selector finds, which must be there.
    pub(crate) async fn click(&self, selector: &str) {
        let script =
            "const e = document.querySelector(arguments[0]); e?.click(); return Boolean(e)";
        boatswain_tests::eventually(&format!("{selector} is clicked"), async || {
            let found = self.run(script, json!([selector])).await;
            found.as_bool().filter(|found| *found).ok_or(selector)
        })
        .await;
    }

    /// Types into a field as people do, as far as listeners can tell.
    pub(crate) async fn fill(&self, selector: &str, words: &str) {
        let script = "const e = document.querySelector(arguments[0]); e.focus(); e.value = arguments[1]; e.dispatchEvent(new Event('input', { bubbles: true }))";
        self.run(script, json!([selector, words])).await;
    }

    /// Presses a key where the focus is: a real one, not an event.
    pub(crate) async fn press(&self, key: &str) {
        let keys = json!([{ "type": "keyDown", "value": key }, { "type": "keyUp", "value": key }]);
        let actions = json!({ "actions": [{ "type": "key", "id": "keys", "actions": keys }] });
        self.call(Method::POST, "actions", actions).await;
    }

    /// A command of the browser's own protocol.
    async fn devtools(&self, command: &str, params: Value) -> Value {
        let body = json!({ "cmd": command, "params": params });
        self.call(Method::POST, "goog/cdp/execute", body).await
    }

    pub(crate) async fn size(&self, width: u32, height: u32, phone: bool) {
        let params =
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone });
        self.devtools("Emulation.setDeviceMetricsOverride", params)
            .await;
    }

    /// `light` or `dark`.
    pub(crate) async fn prefer(&self, scheme: &str) {
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.devtools(
            "Emulation.setEmulatedMedia",
            json!({ "features": features }),
        )
        .await;
    }

    /// Writes what is to be seen into a file.
    pub(crate) async fn shoot(&self, to: &Path) {
        // two frames, so that what was asked for is drawn
        Clock::system().sleep(Duration::from_millis(300)).await;
        let shot = self
            .devtools("Page.captureScreenshot", json!({ "format": "png" }))
            .await;
        let ByteString(png) = serde_json::from_value(shot["data"].clone()).expect("base64");
        std::fs::write(to, png).expect("written");
    }

    /// What the page complained of since it was last asked.
    pub(crate) async fn complaints(&self) -> Vec<String> {
        let log = self
            .call(Method::POST, "se/log", json!({ "type": "browser" }))
            .await;
        let entries = log.as_array().into_iter().flatten();
        let told = entries.filter_map(|entry| entry["message"].as_str());
        told.map(str::to_owned).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // the browser ends with its driver's session; a driver that is killed leaves it alone
        let session = format!("/session/{}", self.session);
        let ended = std::net::TcpStream::connect(self.address()).and_then(|mut stream| {
            use std::io::{Read as _, Write as _};
            write!(
                stream,
                "DELETE {session} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
            )?;
            // it keeps the connection
            stream.read(&mut [0; 64])
        });
        drop(ended);
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}
