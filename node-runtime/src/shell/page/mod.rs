//! The owner's page: the forecast with its band, what came true, skill, standing and draws.

use serde::Serialize;
use tokio::sync::watch;

use super::StatusSnapshot;
use super::http_server::{ServedAnswer, ServedDocument, ServedSite};
use crate::config::PageConfig;
use crate::core::{ForecastOutcome, Node};
use crate::forecast::ForecastVector;

const HTML: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Outcomes on the page: two days of quarter hours.
const OUTCOMES_MAX: usize = 192;

/// What the page shows.
#[derive(Debug, Clone, Serialize)]
pub(super) struct PageSnapshot {
    unit: String,
    status: StatusSnapshot,
    /// Forecasts of single steps and what was measured, oldest first.
    outcomes: Vec<ForecastOutcome>,
    /// The ends of the newest forecast's steps, in milliseconds since 1970.
    ends_ms: Vec<i64>,
}

impl PageSnapshot {
    pub(super) fn of(node: &Node, status: StatusSnapshot, unit: &str) -> Self {
        let outcomes = node.forecasts().outcomes();
        let surplus = outcomes.len().saturating_sub(OUTCOMES_MAX);
        let ends =
            |vector: &ForecastVector| (0..vector.values.len()).map(|index| vector.for_ms(index)).collect();
        Self {
            unit: unit.to_owned(),
            outcomes: outcomes.skip(surplus).copied().collect(),
            ends_ms: node.forecast_vector().map(ends).unwrap_or_default(),
            status,
        }
    }
}

/// The page and what it shows.
pub(super) fn site(section: &PageConfig, newest: watch::Receiver<Option<PageSnapshot>>) -> ServedSite {
    let fixed = |content_type, text: &str| {
        ServedAnswer::Document(ServedDocument { content_type, body: text.as_bytes().to_vec() })
    };
    let answer = move |path: &str| match path {
        "/" => fixed("text/html; charset=utf-8", HTML),
        "/page.css" => fixed("text/css; charset=utf-8", STYLE),
        "/page.js" => fixed("text/javascript; charset=utf-8", SCRIPT),
        "/page.json" => match newest.borrow().as_ref().map(serde_json::to_vec) {
            Some(Ok(body)) => {
                ServedAnswer::Document(ServedDocument { content_type: "application/json", body })
            }
            _ => ServedAnswer::Starting,
        },
        _ => ServedAnswer::Unknown("/"),
    };
    ServedSite { answer: Box::new(answer), hosts: section.hosts.clone() }
}
