//! The dashboard in a real browser: light, dark, small, with twelve nodes and with a thousand. Pictures are kept
//! in `artefacts/` of the target folder.
#![allow(clippy::unwrap_used)]

use std::future::ready;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use evenhand_coordinator::dashboard::{CommandResult, Dashboard, DashboardOptions, LiveView, OperatorToken};
use evenhand_coordinator::view::FederationView;
use evenhand_federation::{Command, CommandRejection};
use evenhand_tests::browser::Browser;
use evenhand_tests::{artefacts, synthetic};
use serde_json::json;
use tokio::task::spawn_blocking;

const TOKEN: &str = "correct horse battery staple";

async fn served(view: FederationView) -> (Dashboard, Arc<Mutex<Vec<Command>>>) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, TOKEN).unwrap();
    let mut options = DashboardOptions::new(SocketAddr::from(([127, 0, 0, 1], 0)));
    options.token = Some(OperatorToken::read(&file).unwrap());
    let commands = Arc::new(Mutex::new(Vec::new()));
    let received = Arc::clone(&commands);
    let command_sink = move |command| -> CommandResult {
        let result = match command {
            Command::Explore => Err(CommandRejection::Unsettled.into()),
            _ => {
                received.lock().unwrap().push(command);
                Ok(())
            }
        };
        Box::pin(ready(result))
    };
    (Dashboard::start(options, LiveView::new(view), Box::new(command_sink)).await.unwrap(), commands)
}

/// Everything drawn: the table has rows, no figure is empty.
const DRAWN: &str = "document.readyState === 'complete' && document.body.dataset.version && \
    document.querySelectorAll('.nodes tbody tr').length > 0 && \
    [...document.querySelectorAll('#overview figure')].every((figure) => figure.querySelector('svg[role=img], canvas'))";

/// Nothing wider than the window, no text of a drawing outside of it, and no two texts on top of each other.
const SLIPS: &str = r#"(() => {
    const slips = [];
    if (document.documentElement.scrollWidth > innerWidth) slips.push(`page is ${document.documentElement.scrollWidth} wide`);
    for (const drawing of document.querySelectorAll('svg[role=img]')) {
        const area = drawing.getBoundingClientRect();
        if (area.width === 0) continue;
        const texts = [...drawing.querySelectorAll('text')].map((text) => [text.textContent, text.getBoundingClientRect()]);
        for (const [text, box] of texts) {
            if (box.left < area.left - 1 || box.right > area.right + 1 || box.top < area.top - 1 || box.bottom > area.bottom + 1)
                slips.push(`${text} leaves ${drawing.ariaLabel}`);
        }
        texts.forEach(([a, p], i) => texts.slice(i + 1).forEach(([b, q]) => {
            if (Math.min(p.right, q.right) - Math.max(p.left, q.left) > 1 && Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top) > 3)
                slips.push(`${a} is on top of ${b} in ${drawing.ariaLabel}`);
        }));
    }
    return slips;
})()"#;

#[tokio::test(flavor = "multi_thread")]
async fn twelve_nodes_by_day_by_night_and_on_a_phone() {
    let (dashboard, commands) = served(synthetic::view(12, 90, 40)).await;
    let origin = format!("http://{}", dashboard.address());
    let live_view = dashboard.live_view().clone();
    spawn_blocking(move || {
        let mut browser = Browser::start(1440, 900);
        for scheme in ["light", "dark"] {
            browser.prefer(scheme, scheme == "dark");
            browser.open(&format!("{origin}/"));
            browser.until(DRAWN);
            assert_eq!(browser.evaluate(SLIPS), json!([]));
            browser.photograph(&artefacts().join(format!("dashboard-{scheme}.png")));
        }
        assert_eq!(browser.evaluate("getComputedStyle(document.querySelector('.live i')).animationName"), "none");
        assert_eq!(browser.evaluate("document.querySelector('h1').textContent"), "Exploiting, round 90 of 112");
        assert_eq!(browser.evaluate("document.querySelectorAll('.nodes tbody tr').length"), 12);
        browser.resize(390, 844);
        browser.until("document.querySelector('#p-value svg').clientWidth < 390");
        assert_eq!(browser.evaluate(SLIPS), json!([]));
        browser.photograph(&artefacts().join("dashboard-phone.png"));
        browser.resize(1440, 900);
        browser.prefer("light", false);

        // Seen by assistive technology.
        let tree = browser.accessible();
        let has = |role: &str, name: &str| tree.iter().any(|(r, n)| r == role && n.contains(name));
        for (role, name) in [
            ("banner", ""),
            ("main", ""),
            ("contentinfo", ""),
            ("heading", "Exploiting, round 90 of 112"),
            ("heading", "Every node"),
            ("figure", "Stop rule"),
            ("image", "p-value of the stop rule over rounds"),
            ("image", "Heat map of draws: 12 nodes over 90 rounds"),
            ("image", "Nodes present over rounds"),
            ("progressbar", "Rounds done"),
            ("searchbox", "Search nodes"),
            ("columnheader", "standing ψ"),
            ("status", ""),
        ] {
            assert!(has(role, name), "no {role} {name:?} among {tree:?}");
        }
        let unnamed = ["button", "link", "textbox", "searchbox", "image", "figure", "table", "region"];
        let mute: Vec<_> = tree.iter().filter(|(r, n)| unnamed.contains(&r.as_str()) && n.is_empty()).collect();
        assert!(mute.is_empty(), "{mute:?}");

        // By keyboard alone: read a chart, sort, search, open a node, come back.
        browser.evaluate("document.querySelector('#p-value .plot[tabindex]').focus()");
        browser.press("ArrowLeft");
        browser.until("document.querySelector('#p-value .tip').textContent.startsWith('Round')");
        let outline = "getComputedStyle(document.activeElement).outlineStyle";
        assert_eq!(browser.evaluate(outline), "solid");
        browser.evaluate("[...document.querySelectorAll('thead button')].find((b) => b.textContent === 'node').focus()");
        browser.press("Enter");
        let first = "document.querySelector('.nodes tbody th').textContent";
        assert_eq!(browser.evaluate(first), "meter-0001");
        assert_eq!(browser.evaluate("document.querySelector('th[aria-sort]').ariaSort"), "ascending");
        browser.press("Enter");
        assert_eq!(browser.evaluate(first), "meter-0012");
        browser.evaluate("document.querySelector('input[type=search]').focus()");
        browser.write("0007");
        browser.until("document.querySelectorAll('.nodes tbody tr').length === 1");
        browser.evaluate("document.querySelector('.nodes tbody a').focus()");
        browser.press("Enter");
        browser.until("location.hash === '#/node/meter-0007' && document.querySelectorAll('#node svg[role=img]').length === 5");
        assert_eq!(browser.evaluate("document.activeElement.textContent"), "meter-0007");
        assert_eq!(browser.evaluate(SLIPS), json!([]));
        browser.photograph(&artefacts().join("dashboard-node.png"));

        // Nothing can be commanded before the token is given, and only the right one is of use.
        let shown = "!document.querySelector('#commands').hidden";
        browser.evaluate("document.querySelector('#operate').click()");
        assert_eq!(browser.evaluate(shown), false);
        for (token, outcome) in [("wrong token", "That is not the operator’s token."), (TOKEN, "pause: accepted")] {
            browser.evaluate("document.querySelector('#token').focus()");
            browser.write(token);
            browser.press("Enter");
            browser.until(shown);
            browser.evaluate("document.querySelector('[data-command=pause]').click()");
            browser.until(&format!("document.querySelector('#operator-note').textContent === '{outcome}'"));
        }
        browser.evaluate("document.querySelector('[data-command=re-explore]').click()");
        browser.until("document.querySelector('#operator-note').textContent.startsWith('contributions are not settled yet')");
        browser.until("!document.querySelector('.head .danger').hidden");
        browser.evaluate("document.querySelector('.head .danger').click()");
        browser.until("document.querySelector('dialog').open");
        browser.evaluate("document.querySelector('#confirm-yes').click()");
        browser.until("document.querySelector('#operator-note').textContent === 'remove: accepted'");
        browser.evaluate("history.back()");
        browser.until("!document.querySelector('#overview').hidden");

        // Live: what happens is shown without a reload.
        let federation = synthetic::federation(12, 77);
        live_view.write(|view| {
            view.refresh(&federation, Default::default(), false);
        });
        browser.until("document.querySelector('h1').textContent.startsWith('Enrolling')");
        browser.until("document.querySelector('#live-text').textContent === 'broker disconnected'");

        // The wrong token and the hasty command were tried on purpose; nothing else may be complained of, and nobody else asked.
        browser.problems.retain(|problem| !problem.contains("401") && !problem.contains("409"));
        assert!(browser.problems.is_empty(), "{:?}", browser.problems);
        let foreign: Vec<_> = browser.requests.iter().filter(|url| !url.starts_with(&origin)).collect();
        assert!(foreign.iter().all(|url| url.starts_with("about:")), "{foreign:?}");
    })
    .await
    .unwrap();
    let removed = Command::Remove("meter-0007".parse().unwrap());
    assert_eq!(*commands.lock().unwrap(), [Command::Pause, removed]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_nodes_stay_readable_and_quick() {
    let (dashboard, _) = served(synthetic::view(1000, 1200, 120)).await;
    let origin = format!("http://{}", dashboard.address());
    spawn_blocking(move || {
        let mut browser = Browser::start(1440, 900);
        for scheme in ["light", "dark"] {
            browser.prefer(scheme, false);
            browser.open(&format!("{origin}/"));
            browser.until(DRAWN);
            assert_eq!(browser.evaluate(SLIPS), json!([]));
            browser.photograph(&artefacts().join(format!("dashboard-1000-{scheme}.png")));
        }
        // Few elements, however many nodes: that is what keeps it quick.
        let elements = browser.evaluate("document.querySelectorAll('*').length").as_u64().unwrap();
        assert!(elements < 3000, "{elements}");
        assert_eq!(browser.evaluate("document.querySelector('.count').textContent"), "1–25 of 1,000");
        browser.evaluate("document.querySelector('input[type=search]').focus()");
        browser.write("meter-0777");
        browser.until("document.querySelector('.count').textContent === '1–1 of 1'");
        let spent = browser.evaluate(
            "performance.getEntriesByType('measure').map((m) => `${m.name} ${Math.round(m.duration)} ms`).join(', ')",
        );
        println!("{elements} elements; {spent}");
        assert!(browser.problems.is_empty(), "{:?}", browser.problems);
    })
    .await
    .unwrap();
}
