//! Staleness of every node in every round; rows and columns are averaged where there are too many to see.

use super::{LINES_MAX, hover_text, rounds_extent};
use crate::RunReport;
use crate::plot::{Anchor, Frame, HEIGHT, Scale, Svg, WIDTH};

const ROWS_MAX: usize = 40;
const COLUMNS_MAX: usize = 120;
const LEVELS: usize = 5;

pub(crate) fn staleness(report: &RunReport<'_>) -> String {
    let width = 2.0 * WIDTH;
    let (annotation, all) = (&report.source.annotation, &report.log.rounds);
    let mut order: Vec<usize> = (0..report.nodes.len()).collect();
    order.sort_by(|&a, &b| annotation.values[a].total_cmp(&annotation.values[b]).then(a.cmp(&b)));
    let rows: Vec<&[usize]> = order.chunks(order.len().div_ceil(ROWS_MAX).max(1)).collect();
    let rounds: Vec<usize> = (0..all.len()).collect();
    let columns: Vec<&[usize]> = rounds.chunks(rounds.len().div_ceil(COLUMNS_MAX).max(1)).collect();
    let waits: Vec<Vec<f64>> = rows
        .iter()
        .map(|row| columns.iter().map(|column| mean_wait(&report.staleness, row, column)).collect())
        .collect();
    let darkest = waits.iter().flatten().copied().fold(1.0, f64::max);
    let longest = report.staleness.iter().flatten().copied().max().unwrap_or(0);
    let description = format!(
        "Rows are nodes by {}, {}; the longest wait was {longest} rounds.",
        annotation.name, annotation.low_on_top
    );
    let title = "Rounds since each node last received the model";
    let mut svg = Svg::new("wait", (width, HEIGHT), title, &description);
    let (left, right, top, bottom) = (Frame::LEFT, width - Frame::MARGIN, Frame::TOP, Frame::BOTTOM);
    let (cell_width, cell_height) =
        ((right - left) / columns.len() as f64, (bottom - top) / rows.len() as f64);
    let few = report.nodes.len() <= LINES_MAX;
    let gap = if few { 1.0 } else { 0.3 };
    for (r, (row, waits)) in rows.iter().zip(&waits).enumerate() {
        let y = top + r as f64 * cell_height;
        for (c, (column, wait)) in columns.iter().zip(waits).enumerate() {
            let level = (wait / darkest * LEVELS as f64).ceil() as usize;
            let hover = few.then(|| {
                format!("{}, round {}: {wait:.0}", hover_text(report, row[0]), all[column[0]].round)
            });
            let place = (left + c as f64 * cell_width, y);
            svg.rect(&format!("w{level}"), place, (cell_width - gap, cell_height - gap), hover.as_deref());
        }
        if few || r % 8 == 0 || r + 1 == rows.len() {
            let place = (left - 8.0, y + cell_height / 2.0 + 4.0);
            svg.text("tick", place, Anchor::End, &format!("{:.2}", annotation.values[row[0]]));
        }
    }
    let (first, last) = rounds_extent(report);
    let axis = Scale::exact((first - 0.5, last + 0.5), (left, right));
    for tick in axis.ticks().into_iter().filter(|tick| tick.fract() == 0.0) {
        svg.text("tick", (axis.at(tick), bottom + 18.0), Anchor::Middle, &axis.label(tick));
    }
    svg.text("name", (right, bottom + 36.0), Anchor::End, "round");
    let rows_name = format!("nodes by {}, {}", annotation.symbol, annotation.low_on_top);
    svg.text("name", (4.0, 16.0), Anchor::Start, &rows_name);
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
    let start = right - (LEVELS + 1) as f64 * swatch - 86.0;
    svg.text("tick", (start - 8.0, y + 11.0), Anchor::End, "just received");
    for level in 0..=LEVELS {
        svg.rect(&format!("w{level}"), (start + level as f64 * swatch, y), (swatch - 1.0, 13.0), None);
    }
    let end = start + (LEVELS + 1) as f64 * swatch + 6.0;
    let decimals = usize::from(darkest.fract() != 0.0);
    let rounds = if darkest == 1.0 { "round" } else { "rounds" };
    svg.text("tick", (end, y + 11.0), Anchor::Start, &format!("{darkest:.decimals$} {rounds}"));
}
