//! The figures at the top of the page.

use crate::RunReport;
use crate::plot::{escaped, put, signed};
use crate::source::ReportTile;

pub(super) fn tiles(page: &mut String, report: &RunReport<'_>) {
    page.push_str("<dl class=\"tiles\">\n");
    for ReportTile { name, value, note } in own_tiles(report).iter().chain(&report.source.tiles) {
        let (name, value, note) = (escaped(name), escaped(value), escaped(note));
        put(
            page,
            format_args!("<div class=\"tile\"><dt>{name}</dt><dd>{value}<small>{note}</small></dd></div>\n"),
        );
    }
    page.push_str("</dl>\n");
}

fn own_tiles(report: &RunReport<'_>) -> [ReportTile; 4] {
    let (symbol, loss) = (&report.source.annotation.symbol, &report.source.losses.name);
    let rho = |rho: Option<f64>| rho.map_or("–".to_owned(), |rho| signed(rho, 2));
    let fair = "Pearson; 1 is perfectly fair";
    let (spread, spread_note) = report.loss.map_or(("–".to_owned(), String::new()), |loss| {
        (
            format!("{:.4}", loss.std),
            format!("from {:.4} to {:.4}, mean {:.4}", loss.min, loss.max, loss.mean),
        )
    });
    let tile = |name: String, value: String, note: &str| ReportTile { name, value, note: note.to_owned() };
    [
        tile(format!("Fairness: {symbol} with waiting"), rho(report.rho_staleness), fair),
        tile(format!("Fairness: {symbol} with {loss}"), rho(report.rho_loss), fair),
        tile(format!("Equality: spread of {loss}"), spread, &spread_note),
        if report.is_continuous() { longest_wait(report) } else { exploring_end(report) },
    ]
}

/// What the policy `continuous` promises, and what came of it.
fn longest_wait(report: &RunReport<'_>) -> ReportTile {
    let longest = report.nodes.iter().map(|node| node.longest_staleness).max();
    let rounds = |longest: u32| if longest == 1 { "1 round".to_owned() } else { format!("{longest} rounds") };
    ReportTile {
        name: "Longest wait of a node".into(),
        value: longest.filter(|_| !report.log.rounds.is_empty()).map_or("–".into(), rounds),
        note: format!("promised to all: at most {} rounds on average", report.promised_wait()),
    }
}

fn exploring_end(report: &RunReport<'_>) -> ReportTile {
    let criterion = report.criterion();
    let (value, note) = match report.explored_until {
        Some(0) => ("–".into(), "no round explored".into()),
        Some(round) => (format!("round {round}"), criterion.end_text(report.verdict_at(round))),
        None => match report.last_verdict() {
            Some(verdict) if verdict.stop => {
                ("with the last round".into(), criterion.end_text(Some(verdict)))
            }
            verdict => ("not yet".into(), criterion.unmet_text(verdict)),
        },
    };
    ReportTile { name: "Exploring ended".into(), value, note }
}
