//! Debian's chromium, headless, steered through its debugging pipe.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

/// A browser with one page.
#[derive(Debug)]
pub struct Browser {
    process: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    calls: u64,
    page: String,
    size: (u32, u32),
    /// What the page complained of: exceptions, errors, blocked resources.
    pub problems: Vec<String>,
    /// Every address the page asked for.
    pub requests: Vec<String>,
    _profile: TempDir,
}

impl Browser {
    /// Starts one with a window of this size.
    pub fn start(width: u32, height: u32) -> Self {
        let profile = TempDir::new().unwrap();
        // The debugging pipe is file 3 to the browser and 4 from it.
        let script = r#"exec chromium --headless=new --no-sandbox --remote-debugging-pipe --disable-gpu \
            --no-first-run --hide-scrollbars --disable-dev-shm-usage --user-data-dir="$0" about:blank \
            3<&0 4>&1 0</dev/null 1>/dev/null 2>/dev/null"#;
        let mut process = Command::new("sh")
            .arg("-c")
            .arg(script)
            .arg(profile.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("chromium can be run; install it (Debian: apt-get install chromium)");
        let (to, from) = (process.stdin.take().unwrap(), BufReader::new(process.stdout.take().unwrap()));
        let mut browser = Self {
            process,
            to,
            from,
            calls: 0,
            page: String::new(),
            size: (width, height),
            problems: Vec::new(),
            requests: Vec::new(),
            _profile: profile,
        };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }))["targetId"].clone();
        let attached = browser.call("Target.attachToTarget", json!({ "targetId": target, "flatten": true }));
        browser.page = attached["sessionId"].as_str().unwrap().to_owned();
        for domain in ["Page", "Runtime", "Log", "Network", "Accessibility"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser.resize(width, height);
        browser
    }

    /// Gives the window another size.
    pub fn resize(&mut self, width: u32, height: u32) {
        self.size = (width, height);
        let metrics = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", metrics);
    }

    /// What the user prefers: `light` or `dark`, and whether things may move.
    pub fn prefer(&mut self, scheme: &str, reduced_motion: bool) {
        let motion = if reduced_motion { "reduce" } else { "no-preference" };
        let features = json!([
            { "name": "prefers-color-scheme", "value": scheme },
            { "name": "prefers-reduced-motion", "value": motion },
        ]);
        self.call("Emulation.setEmulatedMedia", json!({ "features": features }));
    }

    /// Opens an address.
    pub fn open(&mut self, url: &str) {
        let answer = self.call("Page.navigate", json!({ "url": url }));
        assert!(answer.get("errorText").is_none(), "{url}: {answer}");
    }

    /// The value of an expression in the page; a promise is waited for.
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let parameters = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let answer = self.call("Runtime.evaluate", parameters);
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// Waits until an expression is true in the page.
    pub fn until(&mut self, condition: &str) {
        let look = format!(
            "new Promise((done) => {{ const look = () => ({condition}) ? done(true) : setTimeout(look, 20); look(); }})"
        );
        loop {
            let parameters = json!({ "expression": look, "awaitPromise": true, "returnByValue": true });
            let answer = self.call("Runtime.evaluate", parameters);
            // A page that is still being loaded takes its promises with it.
            if answer["result"]["value"] == json!(true) {
                return;
            }
        }
    }

    /// Presses a key, by its name in `KeyboardEvent.key`.
    pub fn press(&mut self, key: &str) {
        let code = match key {
            "Enter" => 13,
            "Tab" => 9,
            "ArrowLeft" => 37,
            "ArrowRight" => 39,
            "ArrowDown" => 40,
            _ => 0,
        };
        let text = if key == "Enter" { "\r" } else { "" };
        for kind in ["keyDown", "keyUp"] {
            let parameters =
                json!({ "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code, "text": text });
            self.call("Input.dispatchKeyEvent", parameters);
        }
    }

    /// Types a text into what has the focus.
    pub fn write(&mut self, text: &str) {
        self.call("Input.insertText", json!({ "text": text }));
    }

    /// What assistive technology sees: role and name of every node that is not ignored.
    pub fn accessible(&mut self) -> Vec<(String, String)> {
        let tree = self.call("Accessibility.getFullAXTree", json!({}));
        let nodes = tree["nodes"].as_array().unwrap().iter().filter(|node| node["ignored"] == json!(false));
        let text = |value: &Value| value["value"].as_str().unwrap_or_default().to_owned();
        nodes.map(|node| (text(&node["role"]), text(&node["name"]))).collect()
    }

    /// Saves a picture of the whole page.
    pub fn photograph(&mut self, path: &Path) {
        let (width, height) = self.size;
        let page =
            self.call("Page.getLayoutMetrics", json!({}))["cssContentSize"]["height"].as_f64().unwrap();
        // So tall a window that nothing scrolls: what sticks to the top then stays there.
        let metrics =
            json!({ "width": width, "height": page.ceil(), "deviceScaleFactor": 1, "mobile": false });
        self.call("Emulation.setDeviceMetricsOverride", metrics);
        self.evaluate(
            "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))",
        );
        let picture = self.call("Page.captureScreenshot", json!({ "format": "png" }));
        std::fs::write(path, from_base64(picture["data"].as_str().unwrap())).unwrap();
        self.resize(width, height);
    }

    fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.calls += 1;
        let mut message = json!({ "id": self.calls, "method": method, "params": parameters });
        if !self.page.is_empty() {
            message["sessionId"] = json!(self.page);
        }
        self.to.write_all(format!("{message}\0").as_bytes()).expect("chromium listens");
        loop {
            let mut bytes = Vec::new();
            self.from.read_until(0, &mut bytes).unwrap();
            assert_eq!(bytes.pop(), Some(0), "chromium ended");
            let mut answer: Value = serde_json::from_slice(&bytes).unwrap();
            if answer["id"] == json!(self.calls) {
                assert!(answer.get("error").is_none(), "{method}: {answer}");
                return answer["result"].take();
            }
            self.note(&answer);
        }
    }

    fn note(&mut self, event: &Value) {
        let parameters = &event["params"];
        match event["method"].as_str().unwrap_or_default() {
            "Runtime.exceptionThrown" => self.problems.push(parameters["exceptionDetails"].to_string()),
            "Runtime.consoleAPICalled" => self.problems.push(parameters["args"].to_string()),
            "Log.entryAdded" => self.problems.push(parameters["entry"].to_string()),
            "Network.requestWillBeSent" => {
                self.requests.push(parameters["request"]["url"].as_str().unwrap_or_default().to_owned());
            }
            _ => {}
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        self.page.clear();
        let bye = json!({ "id": 0, "method": "Browser.close" });
        // Whatever happens, it must be gone afterwards.
        if self.to.write_all(format!("{bye}\0").as_bytes()).is_err() {
            let _gone = self.process.kill();
        }
        let _gone = self.process.wait();
    }
}

fn from_base64(text: &str) -> Vec<u8> {
    let value = |c: u8| match c {
        b'A'..=b'Z' => c - b'A',
        b'a'..=b'z' => c - b'a' + 26,
        b'0'..=b'9' => c - b'0' + 52,
        b'+' => 62,
        _ => 63,
    };
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for four in text.trim_end_matches('=').as_bytes().chunks(4) {
        let bits =
            four.iter().fold(0u32, |bits, c| bits << 6 | u32::from(value(*c))) << (6 * (4 - four.len()));
        bytes.extend(&bits.to_be_bytes()[1..four.len()]);
    }
    bytes
}
