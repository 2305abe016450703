//! The page: files of our own, compiled in, so that it works without a network.

/// A file of the page.
pub(super) struct Asset {
    pub(super) path: &'static str,
    pub(super) kind: &'static str,
    pub(super) text: &'static str,
}

const SCRIPT: &str = "text/javascript; charset=utf-8";

pub(super) const ASSETS: &[Asset] = &[
    Asset { path: "/", kind: "text/html; charset=utf-8", text: include_str!("page/index.html") },
    Asset { path: "/style.css", kind: "text/css; charset=utf-8", text: include_str!("page/style.css") },
    Asset { path: "/icon.svg", kind: "image/svg+xml", text: include_str!("page/icon.svg") },
    Asset { path: "/app.js", kind: SCRIPT, text: include_str!("page/app.js") },
    Asset { path: "/dom.js", kind: SCRIPT, text: include_str!("page/dom.js") },
    Asset { path: "/plot.js", kind: SCRIPT, text: include_str!("page/plot.js") },
    Asset { path: "/charts.js", kind: SCRIPT, text: include_str!("page/charts.js") },
    Asset { path: "/panels.js", kind: SCRIPT, text: include_str!("page/panels.js") },
    Asset { path: "/heat.js", kind: SCRIPT, text: include_str!("page/heat.js") },
    Asset { path: "/table.js", kind: SCRIPT, text: include_str!("page/table.js") },
    Asset { path: "/node.js", kind: SCRIPT, text: include_str!("page/node.js") },
    Asset { path: "/operator.js", kind: SCRIPT, text: include_str!("page/operator.js") },
    Asset { path: "/api/v1/openapi.json", kind: "application/json", text: include_str!("openapi.json") },
];
