//! The report's plots.
//!
//! Up to [`LINES_MAX`] nodes each node is a line; beyond, nodes of like quality share a band, so that two thousand
//! read as easily as twelve.

use super::outcome::{Figures, NodeFigures, Outcome, Stage};
use super::words::Words;
use crate::plot::{Anchor, Frame, HEIGHT, Scale, Svg, WIDTH, extent, signed};

/// Above this number of nodes, lines become bands.
pub(crate) const LINES_MAX: usize = 24;
/// Classes of data quality, each with its colour.
pub(crate) const QUALITIES: usize = 5;
const HEAT_ROWS_MAX: usize = 40;
const HEAT_COLUMNS_MAX: usize = 120;
const HEAT_LEVELS: usize = 5;

/// The quality class of each node: equal widths from the least to the greatest ζ.
pub(crate) fn qualities(zetas: &[f64]) -> Vec<usize> {
    let (low, high) = extent(zetas.iter().copied());
    let width = (high - low).max(f64::MIN_POSITIVE) / QUALITIES as f64;
    zetas.iter().map(|zeta| (((zeta - low) / width) as usize).min(QUALITIES - 1)).collect()
}

/// What a plot over rounds is about.
pub(crate) struct Over<'a> {
    pub(crate) id: &'a str,
    pub(crate) title: &'a str,
    pub(crate) y_name: &'a str,
    pub(crate) width: f64,
    /// Position of the first round that is shown.
    pub(crate) from: usize,
}

/// One value of every node over the rounds; `value` is given the positions of round and node.
pub(crate) fn over_rounds(
    about: &Over<'_>,
    outcome: &Outcome,
    figures: &Figures,
    value: impl Fn(usize, usize) -> f64,
) -> String {
    let nodes = figures.nodes.len();
    let classes = qualities(&figures.nodes.iter().map(|node| node.zeta).collect::<Vec<_>>());
    let rounds: Vec<usize> = (about.from.min(outcome.rounds.len() - 1)..outcome.rounds.len()).collect();
    let few = nodes <= LINES_MAX;
    let words = outcome.teller.words();
    let description = if few {
        format!("One line a node over {} rounds; colour is {}.", rounds.len(), words.order)
    } else {
        format!(
            "{nodes} nodes in {QUALITIES} classes of {} over {} rounds: the median of each class, and the band \
             that holds the middle 80 %.",
            words.order,
            rounds.len()
        )
    };
    let mut svg = Svg::new(about.id, (about.width, HEIGHT), about.title, &description);
    let bands: Vec<Vec<[f64; 3]>> = if few {
        Vec::new()
    } else {
        let of_class = |class: usize| (0..nodes).filter(|&node| classes[node] == class).collect::<Vec<_>>();
        let band = |members: Vec<usize>| {
            rounds.iter().map(|&round| deciles(members.iter().map(|&node| value(round, node)))).collect()
        };
        (0..QUALITIES).map(|class| band(of_class(class))).collect()
    };
    let y = if few {
        extent(rounds.iter().flat_map(|&round| (0..nodes).map(|node| value(round, node)).collect::<Vec<_>>()))
    } else {
        extent(bands.iter().flatten().flatten().copied())
    };
    let number = |round: usize| f64::from(outcome.rounds[round].round);
    let frame = Frame::new(about.width, extent(rounds.iter().map(|&round| number(round))), y);
    phases(&mut svg, &frame, outcome, figures, rounds[0]);
    frame.draw(&mut svg, "round", about.y_name);
    if few {
        for (node, class) in classes.iter().enumerate() {
            let finite = rounds.iter().filter(|&&round| value(round, node).is_finite());
            let points = finite.map(|&round| frame.at(number(round), value(round, node)));
            svg.polyline(&format!("curve z{class}"), points, Some(&named(&figures.nodes[node], words)));
        }
    } else {
        for (class, band) in
            bands.iter().enumerate().filter(|(_, band)| band.iter().all(|d| d[1].is_finite()))
        {
            let at = |index: usize, decile: usize| frame.at(number(rounds[index]), band[index][decile]);
            let outline = (0..band.len()).map(|i| at(i, 2)).chain((0..band.len()).rev().map(|i| at(i, 0)));
            svg.polygon(&format!("band z{class}"), outline);
            let label = format!("{} class {} of {QUALITIES}", words.symbol, class + 1);
            svg.polyline(&format!("curve bold z{class}"), (0..band.len()).map(|i| at(i, 1)), Some(&label));
        }
    }
    svg.finish()
}

/// The stop rule's p-value against its strictness.
pub(crate) fn p_value(outcome: &Outcome, figures: &Figures) -> String {
    let strictness = outcome.settings.strictness;
    let seen: Vec<(f64, f64)> =
        outcome.rounds.iter().filter_map(|round| Some((f64::from(round.round), round.p_value?))).collect();
    let description = match figures.t_alpha {
        Some(round) if outcome.p_ended_exploring() => {
            format!("The p-value reached the strictness {strictness} in round {round}.")
        }
        _ => format!("The p-value did not reach the strictness {strictness}."),
    };
    let mut svg = Svg::new("p", (WIDTH, HEIGHT), "The stop rule's p-value over rounds", &description);
    let frame = Frame::new(WIDTH, rounds_extent(outcome), (0.0, 1.0));
    phases(&mut svg, &frame, outcome, figures, 0);
    frame.draw(&mut svg, "round", "p-value");
    let (left, line) = (Frame::LEFT, frame.y.at(strictness));
    svg.line("rule", (left, line), (frame.right, line));
    svg.text("note", (frame.right - 4.0, line - 6.0), Anchor::End, &format!("strictness α = {strictness}"));
    svg.polyline("curve bold accent", seen.iter().map(|&(round, p)| frame.at(round, p)), None);
    for &(round, p) in &seen {
        svg.circle("dot accent", frame.at(round, p), 2.2, Some(&format!("round {round}: p = {p:.3}")));
    }
    if let Some((round, p)) =
        figures.t_alpha.and_then(|t| seen.iter().find(|(round, _)| *round == f64::from(t)))
    {
        svg.circle(
            "stop",
            frame.at(*round, *p),
            6.0,
            Some(&format!("exploring ended after round {round}: p = {p:.3}")),
        );
    }
    if seen.is_empty() {
        let middle = ((Frame::LEFT + frame.right) / 2.0, (Frame::TOP + Frame::BOTTOM) / 2.0);
        svg.text("note", middle, Anchor::Middle, "too few rounds for the rule to speak");
    }
    svg.finish()
}

/// What a plot against ζ is about.
pub(crate) struct Against<'a> {
    pub(crate) id: &'a str,
    pub(crate) title: &'a str,
    pub(crate) y_name: &'a str,
    /// Pearson with ζ, where it is a measure of fairness: drawn with the line of least squares.
    pub(crate) rho: Option<f64>,
    /// A value to compare with, and its name.
    pub(crate) reference: Option<(f64, String)>,
    pub(crate) words: &'static Words,
}

/// One value of every node against ζ.
pub(crate) fn against_zeta(
    about: &Against<'_>,
    figures: &Figures,
    value: impl Fn(&NodeFigures) -> f64,
) -> String {
    let points: Vec<(f64, f64)> = figures.nodes.iter().map(|node| (node.zeta, value(node))).collect();
    let classes = qualities(&points.iter().map(|(zeta, _)| *zeta).collect::<Vec<_>>());
    let description = match about.rho {
        Some(rho) => {
            format!("One dot a node; Pearson's correlation with {} is {rho:.2}.", about.words.symbol)
        }
        None => "One dot a node.".to_owned(),
    };
    let mut svg = Svg::new(about.id, (WIDTH, HEIGHT), about.title, &description);
    let (low, high) = extent(points.iter().map(|(zeta, _)| *zeta));
    let margin = 0.04 * (high - low).max(0.01);
    let values = points.iter().map(|(_, y)| *y).chain(about.reference.iter().map(|(value, _)| *value));
    let frame = Frame::new(WIDTH, (low - margin, high + margin), extent(values));
    frame.draw(&mut svg, about.words.axis, about.y_name);
    if let Some((value, name)) = &about.reference {
        let y = frame.y.at(*value);
        svg.line("rule", (Frame::LEFT, y), (frame.right, y));
        svg.text("note", (frame.right - 4.0, y - 6.0), Anchor::End, name);
        if points.len() <= 2 * LINES_MAX {
            for (&(zeta, height), class) in points.iter().zip(&classes) {
                svg.line(&format!("stem z{class}"), frame.at(zeta, *value), frame.at(zeta, height));
            }
        }
    }
    if let Some(rho) = about.rho {
        svg.text("strong", (frame.right, 18.0), Anchor::End, &format!("ρ = {}", signed(rho, 2)));
    }
    let (radius, class_name) = if points.len() <= 100 { (5.0, "dot") } else { (2.4, "dot faint") };
    for ((&(zeta, height), class), node) in points.iter().zip(&classes).zip(&figures.nodes) {
        svg.circle(
            &format!("{class_name} z{class}"),
            frame.at(zeta, height),
            radius,
            Some(&named(node, about.words)),
        );
    }
    if let Some((slope, intercept)) = about.rho.and_then(|_| least_squares(&points)) {
        let end = |zeta: f64| frame.at(zeta, intercept + slope * zeta);
        svg.line("trend", end(low), end(high));
    }
    svg.finish()
}

/// Staleness of every node in every round; rows and columns are averaged where there are too many to see.
pub(crate) fn staleness(outcome: &Outcome, figures: &Figures, staleness: &[Vec<u32>]) -> String {
    let width = 2.0 * WIDTH;
    let words = outcome.teller.words();
    let mut order: Vec<usize> = (0..figures.nodes.len()).collect();
    order.sort_by(|&a, &b| figures.nodes[a].zeta.total_cmp(&figures.nodes[b].zeta).then(a.cmp(&b)));
    let rows: Vec<&[usize]> = order.chunks(order.len().div_ceil(HEAT_ROWS_MAX).max(1)).collect();
    let rounds: Vec<usize> = (0..outcome.rounds.len()).collect();
    let columns: Vec<&[usize]> = rounds.chunks(rounds.len().div_ceil(HEAT_COLUMNS_MAX).max(1)).collect();
    let cells: Vec<Vec<f64>> = rows
        .iter()
        .map(|row| columns.iter().map(|column| mean_wait(staleness, row, column)).collect())
        .collect();
    let darkest = cells.iter().flatten().copied().fold(1.0, f64::max);
    let longest = staleness.iter().flatten().copied().max().unwrap_or(0);
    let mut svg = Svg::new(
        "wait",
        (width, HEIGHT),
        "Rounds since each node last received the model",
        &format!(
            "Rows are nodes by {}, {}; the longest wait was {longest} rounds.",
            words.order, words.least_on_top
        ),
    );
    let (left, right, top, bottom) = (Frame::LEFT, width - Frame::MARGIN, Frame::TOP, Frame::BOTTOM);
    let (cell_width, cell_height) =
        ((right - left) / columns.len() as f64, (bottom - top) / rows.len() as f64);
    let few = figures.nodes.len() <= LINES_MAX;
    let gap = if few { 1.0 } else { 0.3 };
    for (r, (row, waits)) in rows.iter().zip(&cells).enumerate() {
        let y = top + r as f64 * cell_height;
        for (c, (column, wait)) in columns.iter().zip(waits).enumerate() {
            let level = (wait / darkest * HEAT_LEVELS as f64).ceil() as usize;
            let hover = few.then(|| {
                format!(
                    "{}, round {}: {wait:.0}",
                    named(&figures.nodes[row[0]], words),
                    outcome.rounds[column[0]].round
                )
            });
            let place = (left + c as f64 * cell_width, y);
            svg.rect(&format!("w{level}"), place, (cell_width - gap, cell_height - gap), hover.as_deref());
        }
        if few || r % 8 == 0 || r + 1 == rows.len() {
            let place = (left - 8.0, y + cell_height / 2.0 + 4.0);
            svg.text("tick", place, Anchor::End, &format!("{:.2}", figures.nodes[row[0]].zeta));
        }
    }
    let (first, last) = rounds_extent(outcome);
    let axis = Scale::exact((first - 0.5, last + 0.5), (left, right));
    for tick in axis.ticks().into_iter().filter(|tick| tick.fract() == 0.0) {
        svg.text("tick", (axis.at(tick), bottom + 18.0), Anchor::Middle, &axis.label(tick));
    }
    svg.text("name", (right, bottom + 36.0), Anchor::End, "round");
    svg.text(
        "name",
        (4.0, 16.0),
        Anchor::Start,
        &format!("nodes by {}, {}", words.symbol, words.least_on_top),
    );
    legend(&mut svg, right, darkest);
    svg.finish()
}

fn mean_wait(staleness: &[Vec<u32>], nodes: &[usize], rounds: &[usize]) -> f64 {
    let waits =
        rounds.iter().flat_map(|&round| nodes.iter().map(move |&node| f64::from(staleness[round][node])));
    waits.sum::<f64>() / (nodes.len() * rounds.len()) as f64
}

fn legend(svg: &mut Svg, right: f64, darkest: f64) {
    let (swatch, y) = (26.0, 6.0);
    let start = right - (HEAT_LEVELS + 1) as f64 * swatch - 86.0;
    svg.text("tick", (start - 8.0, y + 11.0), Anchor::End, "just received");
    for level in 0..=HEAT_LEVELS {
        svg.rect(&format!("w{level}"), (start + level as f64 * swatch, y), (swatch - 1.0, 13.0), None);
    }
    let end = start + (HEAT_LEVELS + 1) as f64 * swatch + 6.0;
    let decimals = usize::from(darkest.fract() != 0.0);
    let rounds = if darkest == 1.0 { "round" } else { "rounds" };
    svg.text("tick", (end, y + 11.0), Anchor::Start, &format!("{darkest:.decimals$} {rounds}"));
}

/// Shades the exploring rounds of a plot whose first round stands at position `from`.
fn phases(svg: &mut Svg, frame: &Frame, outcome: &Outcome, figures: &Figures, from: usize) {
    let Some(first) = outcome.rounds.get(from).map(|round| f64::from(round.round)) else { return };
    let turn =
        figures.t_alpha.filter(|_| outcome.rounds.iter().any(|round| round.stage == Stage::Exploiting));
    let Some(turn) = turn.map(|turn| frame.x.at(f64::from(turn) + 0.5)) else { return };
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

fn rounds_extent(outcome: &Outcome) -> (f64, f64) {
    extent(outcome.rounds.iter().map(|round| f64::from(round.round)))
}

fn named(node: &NodeFigures, words: &Words) -> String {
    format!("{} ({} = {:.2})", node.id, words.symbol, node.zeta)
}

/// The first, fifth and ninth decile.
fn deciles(values: impl Iterator<Item = f64>) -> [f64; 3] {
    let mut sorted: Vec<f64> = values.filter(|value| value.is_finite()).collect();
    sorted.sort_by(f64::total_cmp);
    [0.1, 0.5, 0.9].map(|share| match sorted.len() {
        0 => f64::NAN,
        n => sorted[(share * (n - 1) as f64).round() as usize],
    })
}

fn least_squares(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    let n = points.len() as f64;
    let (mx, my) = (points.iter().map(|p| p.0).sum::<f64>() / n, points.iter().map(|p| p.1).sum::<f64>() / n);
    let sxx = points.iter().map(|p| (p.0 - mx).powi(2)).sum::<f64>();
    let sxy = points.iter().map(|p| (p.0 - mx) * (p.1 - my)).sum::<f64>();
    (sxx > 0.0).then(|| (sxy / sxx, my - sxy / sxx * mx))
}
