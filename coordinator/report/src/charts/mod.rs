//! The report's plots.
//!
//! Up to [`LINES_MAX`] nodes each node is a line; beyond, nodes of similar annotation share a band, so that two thousand
//! read as easily as twelve.

mod over_rounds;
mod scatter;
mod staleness;
mod stop_rule;

pub(crate) use over_rounds::{RoundsPlot, over_rounds};
pub(crate) use scatter::{ScatterPlot, scatter};
pub(crate) use staleness::staleness;
pub(crate) use stop_rule::stop_rule;

use crate::RunReport;
use crate::plot::{Anchor, Frame, Svg, extent};

/// Above this number of nodes, lines become bands.
pub(crate) const LINES_MAX: usize = 24;
/// Classes of the annotation, each with its colour.
pub(crate) const CLASSES: usize = 5;

/// The class of each node: equal widths from the least to the greatest value.
pub(crate) fn classes(values: &[f64]) -> Vec<usize> {
    let (low, high) = extent(values.iter().copied());
    let width = (high - low).max(f64::MIN_POSITIVE) / CLASSES as f64;
    values.iter().map(|value| (((value - low) / width) as usize).min(CLASSES - 1)).collect()
}

/// Shades the exploring rounds of a plot whose first round stands at position `from`, where a run has phases.
fn shade_exploring(svg: &mut Svg, frame: &Frame, report: &RunReport<'_>, from: usize) {
    if report.is_continuous() {
        return;
    }
    let Some(first) = report.log.rounds.get(from).map(|round| f64::from(round.round)) else { return };
    let Some(turn) = report.explored_until.map(|last| frame.x.at(f64::from(last) + 0.5)) else { return };
    let (start, height) = (frame.x.at(first), Frame::BOTTOM - Frame::TOP);
    svg.rect("phase", (start, Frame::TOP), ((turn - start).max(0.0), height), None);
    let y = Frame::TOP - 5.0;
    if turn - start > 60.0 {
        svg.text("note", (turn - 5.0, y), Anchor::End, "exploring");
    }
    if frame.right - turn > 60.0 {
        svg.text("note", (turn + 5.0, y), Anchor::Start, "exploiting");
    }
}

fn rounds_extent(report: &RunReport<'_>) -> (f64, f64) {
    extent(report.log.rounds.iter().map(|round| f64::from(round.round)))
}

/// A node's name with its annotation.
fn hover_text(report: &RunReport<'_>, node: usize) -> String {
    let annotation = &report.source.annotation;
    format!("{} ({} = {:.2})", report.nodes[node].id, annotation.symbol, annotation.values[node])
}
