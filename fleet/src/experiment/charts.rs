//! Plots of many trials: one row, line or dot a strategy, each with the same colour everywhere.

use super::estimate::Estimate;
use super::measure::{Measure, score_name};
use super::published_figures;
use super::record::TrialRecord;
use super::setup::Setup;
use super::table::{ResultTable, TableRow};
use super::variant::Variant;
use evenhand_report::plot::{Anchor, Frame, HEIGHT, Scale, Svg, WIDTH, extent, signed};

const ROW: f64 = 26.0;
const NAMES: f64 = 196.0;
/// Names stand beside the rows, so nothing is needed above them.
const TOP: f64 = 6.0;
const VALUES: f64 = 104.0;
/// Room for the names at the ends of lines.
const TAGS: f64 = 240.0;
const TAG_HEIGHT: f64 = 15.0;
/// More dots than these are drawn smaller.
const DOTS_MAX: usize = 100;

/// One variant and its trials.
pub(crate) struct VariantTrials<'a> {
    pub(crate) setup: &'a Setup,
    pub(crate) records: Vec<&'a TrialRecord>,
}

impl VariantTrials<'_> {
    fn variant(&self) -> Variant {
        self.setup.variant
    }

    fn class(&self) -> String {
        format!("c{}", self.variant().position())
    }

    fn estimate(&self, measure: Measure) -> Option<Estimate> {
        Estimate::of(self.records.iter().map(|record| measure.of(record)))
    }
}

/// A correlation of every strategy with its standard error; −1 to 1, or less where all are positive.
pub(crate) fn correlations(id: &str, entries: &[VariantTrials<'_>], measure: Measure, title: &str) -> String {
    let estimates: Vec<Option<Estimate>> = entries.iter().map(|entry| entry.estimate(measure)).collect();
    let shown: Vec<String> = (entries.iter().zip(&estimates))
        .map(|(entry, estimate)| format!("{} {}", entry.variant().label(), estimate_text(estimate.as_ref())))
        .collect();
    let height = TOP + ROW * entries.len() as f64 + 42.0;
    let mut svg = Svg::new(id, (WIDTH, height), title, &format!("{}.", shown.join("; ")));
    let (low, _) = extent(estimates.iter().flatten().map(|e| e.mean - e.standard_error.unwrap_or(0.0)));
    let (left, right, bottom) = (NAMES, WIDTH - VALUES, height - 42.0);
    let axis = Scale::nice((low.min(0.0), 1.0), (left, right));
    for tick in axis.ticks() {
        let x = axis.at(tick);
        svg.line(if tick.abs() < 1e-9 { "zero" } else { "grid" }, (x, TOP), (x, bottom));
        svg.text("tick", (x, bottom + 18.0), Anchor::Middle, &axis.label(tick));
    }
    svg.text("name", (right, bottom + 36.0), Anchor::End, "ρ; 1 is perfectly fair");
    for (row, (entry, estimate)) in entries.iter().zip(&estimates).enumerate() {
        let y = TOP + ROW * (row as f64 + 0.5);
        let (label, class) = (entry.variant().label(), entry.class());
        svg.text("name", (left - 12.0, y + 4.0), Anchor::End, label);
        if let Some(published) = published_figures::value(entry.setup, measure) {
            let x = axis.at(published);
            svg.line("mark-published", (x, y - 9.0), (x, y + 9.0));
        }
        if let Some(estimate) = estimate {
            let error = estimate.standard_error.unwrap_or(0.0);
            let at = |value: f64| (axis.at(value), y);
            svg.line(&format!("bar {class}"), at(estimate.mean - error), at(estimate.mean + error));
            let hover = format!("{label}: {}", estimate_text(Some(estimate)));
            svg.circle(&format!("dot {class}"), at(estimate.mean), 5.0, Some(&hover));
        }
        svg.text("tick", (WIDTH - 2.0, y + 4.0), Anchor::End, &estimate_text(estimate.as_ref()));
    }
    svg.finish()
}

fn estimate_text(estimate: Option<&Estimate>) -> String {
    estimate.map_or("–".to_owned(), |estimate| {
        let error = estimate.standard_error.map_or(String::new(), |error| format!(" ± {error:.2}"));
        format!("{}{error}", signed(estimate.mean, 2))
    })
}

/// The online score over the rounds, mean over nodes and trials, one line a strategy.
pub(crate) fn curves(id: &str, entries: &[VariantTrials<'_>]) -> String {
    let width = 2.0 * WIDTH;
    let score = entries.first().map_or("score", |entry| score_name(entry.setup.dataset));
    let lines: Vec<Vec<(f64, f64)>> = entries.iter().map(|entry| mean_curve(&entry.records)).collect();
    let points = || lines.iter().flatten();
    let mut svg = Svg::new(
        id,
        (width, HEIGHT),
        &format!("Online {score} over rounds"),
        "One line a strategy, mean over nodes and trials; ours are solid, baselines dashed.",
    );
    // Errors may start far above where all the interest is: the highest twentieth is cut off.
    let y = extent(points().map(|point| point.1));
    let top =
        if score == "MAPE" { quantile(points().map(|point| point.1), 0.95).unwrap_or(y.1) } else { y.1 };
    let frame = Frame::new(width - TAGS, extent(points().map(|point| point.0)), (y.0, top));
    frame.draw(&mut svg, "round", &format!("online {score}"));
    let mut tags = Vec::new();
    for (entry, line) in entries.iter().zip(&lines).filter(|(_, line)| !line.is_empty()) {
        let (class, label) = (entry.class(), entry.variant().label());
        let style = if entry.variant().is_ours() { "" } else { " theirs" };
        let places = line.iter().map(|&(round, value)| frame.at(round, value));
        svg.polyline(&format!("curve{style} {class}"), places, Some(label));
        let last = line[line.len() - 1];
        tags.push((frame.at(last.0, last.1), class, format!("{label} {}", signed(last.1, 3))));
    }
    tags.sort_by(|a, b| a.0.1.total_cmp(&b.0.1));
    let heights = apart(&tags.iter().map(|tag| tag.0.1).collect::<Vec<_>>());
    for ((end, class, label), y) in tags.iter().zip(heights) {
        svg.line(&format!("leader {class}"), *end, (frame.right + 14.0, y));
        svg.text(&format!("tag {class}"), (frame.right + 18.0, y + 4.0), Anchor::Start, label);
    }
    svg.finish()
}

/// The mean over trials of each round; rounds that no trial has are left out.
fn mean_curve(records: &[&TrialRecord]) -> Vec<(f64, f64)> {
    let rounds = records.iter().map(|record| record.curve.scores.len()).max().unwrap_or(0);
    let of_round = |round: usize| {
        let values = records.iter().map(|record| record.curve.scores.get(round).copied().flatten());
        Some(((round + 1) as f64, Estimate::of(values)?.mean))
    };
    (0..rounds).filter_map(of_round).collect()
}

/// Ascending heights, moved so far that texts beside them do not touch, within the plot.
pub(super) fn apart(heights: &[f64]) -> Vec<f64> {
    let mut moved = heights.to_vec();
    for index in 1..moved.len() {
        moved[index] = moved[index].max(moved[index - 1] + TAG_HEIGHT);
    }
    let mut floor = Frame::BOTTOM;
    for height in moved.iter_mut().rev() {
        *height = height.min(floor);
        floor = *height - TAG_HEIGHT;
    }
    moved
}

fn quantile(values: impl Iterator<Item = f64>, share: f64) -> Option<f64> {
    let mut sorted: Vec<f64> = values.filter(|value| value.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    sorted.get((share * sorted.len().saturating_sub(1) as f64) as usize).copied()
}

/// The rows of a table, fairness against equality; a line joins them in their order.
pub(crate) fn trade_off(id: &str, table: &ResultTable, (fairness, equality): (usize, usize)) -> String {
    let point = |row: &TableRow| {
        let (y, x) = (row.cells[fairness].estimate.clone()?, row.cells[equality].estimate.clone()?);
        Some((row.name.clone(), x, y))
    };
    let points: Vec<(String, Estimate, Estimate)> = table.rows.iter().filter_map(point).collect();
    let shown: Vec<String> = points
        .iter()
        .map(|(name, x, y)| format!("{name}: {}, {:.4}", estimate_text(Some(y)), x.mean))
        .collect();
    let description =
        format!("{} and {}. {}.", table.columns[fairness + 1], table.columns[equality + 1], shown.join("; "));
    let mut svg = Svg::new(id, (WIDTH, HEIGHT), "Fairness against equality", &description);
    let ends = |estimate: &Estimate| {
        let error = estimate.standard_error.unwrap_or(0.0);
        [estimate.mean - error, estimate.mean + error]
    };
    let (low, high) = extent(points.iter().flat_map(|(_, x, _)| ends(x)).chain([0.0]));
    let frame = Frame::new(WIDTH, (low, high * 1.08), extent(points.iter().flat_map(|(_, _, y)| ends(y))));
    frame.draw(&mut svg, "deviation over nodes (0 is equal)", "ρ(loss); 1 is perfectly fair");
    svg.polyline("curve c0", points.iter().map(|(_, x, y)| frame.at(x.mean, y.mean)), None);
    for (name, x, y) in &points {
        let ([left, right], [bottom, top]) = (ends(x), ends(y));
        svg.line("bar c0", frame.at(left, y.mean), frame.at(right, y.mean));
        svg.line("bar c0", frame.at(x.mean, bottom), frame.at(x.mean, top));
        let place = frame.at(x.mean, y.mean);
        svg.circle("dot c0", place, 5.0, Some(name));
        svg.text("name", (place.0 + 9.0, place.1 - 9.0), Anchor::Start, name);
    }
    svg.finish()
}

/// The value that is plotted against ζ.
#[derive(Debug, Clone, Copy)]
pub(crate) enum NodeMeasure {
    Loss,
    Staleness,
}

/// Every node of every trial of a strategy against ζ.
pub(crate) fn against_zeta(id: &str, entry: &VariantTrials<'_>, plotted: NodeMeasure) -> String {
    let (title, y_name, measure) = match plotted {
        NodeMeasure::Loss => (
            "Online loss against data quality",
            "mean online loss, less that of all nodes of the trial",
            Measure::RhoLoss,
        ),
        NodeMeasure::Staleness => {
            ("Staleness against data quality", "mean staleness, rounds", Measure::RhoStaleness)
        }
    };
    let dots: Vec<(f64, f64, String)> =
        entry.records.iter().flat_map(|record| dots(record, plotted)).collect();
    let rho = estimate_text(entry.estimate(measure).as_ref());
    let description = format!("{} dots, one a node and trial; ρ = {rho}.", dots.len());
    let mut svg = Svg::new(id, (WIDTH, HEIGHT), title, &description);
    let (low, high) = extent(dots.iter().map(|dot| dot.0));
    let margin = 0.04 * (high - low).max(0.01);
    let frame = Frame::new(WIDTH, (low - margin, high + margin), extent(dots.iter().map(|dot| dot.1)));
    frame.draw(&mut svg, "data quality ζ (higher is worse)", y_name);
    let (radius, kind) = if dots.len() <= DOTS_MAX { (4.5, "dot") } else { (3.2, "dot faint") };
    for (zeta, value, hover) in &dots {
        svg.circle(&format!("{kind} {}", entry.class()), frame.at(*zeta, *value), radius, Some(hover));
    }
    svg.text("strong", (frame.right, 18.0), Anchor::End, &format!("ρ = {rho}"));
    svg.finish()
}

/// ζ, the plotted value, and the name of every node of a trial. Losses of different trials are on different data, so only
/// their differences can be put into one plot.
fn dots(record: &TrialRecord, measure: NodeMeasure) -> impl Iterator<Item = (f64, f64, String)> {
    let nodes = &record.figures.nodes;
    let mean = nodes.iter().map(|node| node.online_loss).sum::<f64>() / nodes.len().max(1) as f64;
    nodes.iter().map(move |node| {
        let value = match measure {
            NodeMeasure::Loss => node.online_loss - mean,
            NodeMeasure::Staleness => node.mean_staleness,
        };
        (node.zeta, value, format!("{} (ζ = {:.2}), seed {}", node.id, node.zeta, record.setup.seed))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_at_the_ends_of_lines_do_not_touch() {
        let heights = apart(&[40.0, 41.0, 42.0, 290.0, 297.0, 298.0]);
        assert!(heights.windows(2).all(|pair| pair[1] - pair[0] >= TAG_HEIGHT - 1e-9), "{heights:?}");
        assert!(heights.iter().all(|&height| height <= Frame::BOTTOM));
        assert_eq!(heights[0], 40.0);
    }
}
