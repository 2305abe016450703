//! The owner's page of a real node in a real browser: wide, on a phone, by night. Pictures are kept in `artefacts/` of the target
//! folder.
#![allow(clippy::unwrap_used)]

use std::fs::{self, File};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use evenhand_link::testing::free_port;
use evenhand_tests::artefacts;
use evenhand_tests::browser::Browser;
use serde_json::json;

/// Programs that are killed at the end.
struct Programs(Vec<Child>);

impl Drop for Programs {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ended = child.kill().and_then(|()| child.wait());
        }
    }
}

impl Programs {
    fn start(&mut self, program: &str, folder: &Path, name: &str, config: &str) {
        let file = folder.join(format!("{name}.toml"));
        fs::write(&file, config).unwrap();
        let log = File::create(folder.join(format!("{name}.log"))).unwrap();
        let mut command = Command::new(program);
        command.current_dir(folder).args(["run", "--config"]).arg(file).stdout(Stdio::null()).stderr(log);
        self.0.push(command.spawn().unwrap());
    }
}

/// Both charts are drawn, the forecast with its band, and the skill is known.
const DRAWN: &str = "document.body.dataset.drawn && document.querySelectorAll('svg[role=img]').length === 2 && \
    document.querySelector('#forecast polygon.band') && document.querySelector('#tiles dd')?.firstChild.textContent.includes('%')";

/// Nothing wider than the window, no text of a chart outside of it or on top of another.
const SLIPS: &str = r#"(() => {
    const slips = [];
    if (document.documentElement.scrollWidth > innerWidth) slips.push(`page is ${document.documentElement.scrollWidth} wide`);
    for (const drawing of document.querySelectorAll('svg[role=img]')) {
        const area = drawing.getBoundingClientRect();
        const texts = [...drawing.querySelectorAll('text')].map((text) => [text.textContent, text.getBoundingClientRect()]);
        for (const [text, box] of texts) if (box.left < area.left - 1 || box.right > area.right + 1) slips.push(`${text} leaves its chart`);
        texts.forEach(([a, p], i) => texts.slice(i + 1).forEach(([b, q]) => {
            if (Math.min(p.right, q.right) - Math.max(p.left, q.left) > 1 && Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top) > 3)
                slips.push(`${a} is on top of ${b}`);
        }));
    }
    return slips;
})()"#;

#[test]
fn the_owner_sees_the_forecast_what_came_true_and_the_share() {
    let folder = tempfile::tempdir().unwrap();
    let (broker, page) = (free_port(), free_port());
    let mut programs = Programs(Vec::new());
    let ours = format!(
        "[federation]\nnodes_min = 1\n[exploiting]\nk = 1\n[broker]\nlisten = \"127.0.0.1:{broker}\"\n[dashboard]\nenabled = false\n"
    );
    programs.start(env!("CARGO_BIN_EXE_coordinator"), folder.path(), "coordinator", &ours);
    let theirs = format!(
        "[node]\nid = \"home-7\"\nfederation = \"home\"\nstate_folder = \"state\"\n[broker]\nurl = \"mqtt://127.0.0.1:{broker}\"\n\
         [source]\nkind = \"household\"\n[pace]\nby = \"rounds\"\nreadings_per_round = 96\n[page]\nlisten = \"127.0.0.1:{page}\"\n"
    );
    programs.start(env!("CARGO_BIN_EXE_node"), folder.path(), "node", &theirs);
    while TcpStream::connect(("127.0.0.1", page)).is_err() {
        thread::sleep(Duration::from_millis(50));
    }
    let mut browser = Browser::start(1000, 1400);
    browser.open(&format!("http://127.0.0.1:{page}/"));
    // A node that has just started has nothing to show yet; the page asks anew every half minute.
    browser.until(DRAWN);
    for (width, height, scheme) in [(1000, 1400, "light"), (390, 1700, "light"), (390, 1700, "dark")] {
        browser.resize(width, height);
        browser.prefer(scheme, false);
        browser.until(&format!("document.querySelector('svg[role=img]').clientWidth < {width} && matchMedia('(prefers-color-scheme: {scheme})').matches"));
        assert_eq!(browser.evaluate(SLIPS), json!([]), "{width} {scheme}");
        browser.photograph(&artefacts().join(format!("owner-page-{width}-{scheme}.png")));
    }
    assert_eq!(browser.evaluate("document.querySelector('h1').textContent"), "home-7");
}
