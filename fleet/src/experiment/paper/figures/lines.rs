//! Lines over rounds, with a band where they are means of several trials.

use evenhand_report::plot::{Anchor, Frame, HEIGHT, Svg, WIDTH, extent, signed};

use crate::experiment::charts::apart;

/// Room for the names at the ends of lines.
const TAGS: f64 = 150.0;
/// Quantile of the normal law for a band of 95 %.
const Z95: f64 = 1.96;

/// One line.
#[derive(Debug, Clone, Default)]
pub(super) struct PlottedLine {
    pub(super) name: String,
    /// One of the colours.
    pub(super) colour: usize,
    pub(super) points: Vec<LinePoint>,
}

/// A point of a line: a mean with the half width of its band.
#[derive(Debug, Clone, Copy)]
pub(super) struct LinePoint {
    pub(super) x: f64,
    pub(super) y: f64,
    pub(super) half: f64,
}

/// The mean of several series, place by place, over those that have a value there; the first place is round 1.
pub(super) fn mean_line<'a>(
    name: &str,
    colour: usize,
    series: impl IntoIterator<Item = &'a Vec<Option<f64>>>,
) -> PlottedLine {
    let series: Vec<&Vec<Option<f64>>> = series.into_iter().collect();
    let length = series.iter().map(|values| values.len()).max().unwrap_or(0);
    let point = |at: usize| {
        let values: Vec<f64> = series.iter().filter_map(|values| values.get(at).copied().flatten()).collect();
        let count = values.len() as f64;
        let y = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - y).powi(2)).sum();
        let half = if values.len() > 1 { Z95 * (squares / (count - 1.0) / count).sqrt() } else { 0.0 };
        (!values.is_empty()).then_some(LinePoint { x: (at + 1) as f64, y, half })
    };
    PlottedLine { name: name.to_owned(), colour, points: (0..length).filter_map(point).collect() }
}

/// A drawing of lines; values above `top` are cut off, where there is one.
pub(super) fn drawn(
    id: &str,
    title: &str,
    (x_name, y_name): (&str, &str),
    lines: &[PlottedLine],
    marks: &[f64],
) -> String {
    let width = 1.5 * WIDTH;
    let ends: Vec<String> = (lines.iter())
        .filter_map(|line| Some(format!("{} {}", line.name, signed(line.points.last()?.y, 3))))
        .collect();
    let mut svg = Svg::new(id, (width, HEIGHT), title, &format!("At the end: {}.", ends.join("; ")));
    let points = || lines.iter().flat_map(|line| &line.points);
    let y = extent(points().flat_map(|point| [point.y - point.half, point.y + point.half]));
    let frame = Frame::new(width - TAGS, extent(points().map(|point| point.x)), y);
    frame.draw(&mut svg, x_name, y_name);
    for mark in marks {
        let at = frame.x.at(*mark);
        svg.line("zero", (at, Frame::TOP), (at, Frame::BOTTOM));
    }
    let mut tags = Vec::new();
    for line in lines {
        let Some(last) = line.points.last() else { continue };
        let class = format!("c{}", line.colour);
        if line.points.iter().any(|point| point.half > 0.0) {
            let upper = line.points.iter().map(|point| frame.at(point.x, point.y + point.half));
            let lower = line.points.iter().rev().map(|point| frame.at(point.x, point.y - point.half));
            svg.polygon(&format!("band {class}"), upper.chain(lower));
        }
        let places = line.points.iter().map(|point| frame.at(point.x, point.y));
        svg.polyline(&format!("curve {class}"), places, Some(&line.name));
        tags.push((frame.at(last.x, last.y), class, line.name.clone()));
    }
    tags.sort_by(|a, b| a.0.1.total_cmp(&b.0.1));
    let heights = apart(&tags.iter().map(|tag| tag.0.1).collect::<Vec<_>>());
    for ((end, class, label), y) in tags.iter().zip(heights) {
        svg.line(&format!("leader {class}"), *end, (frame.right + 14.0, y));
        svg.text(&format!("tag {class}"), (frame.right + 18.0, y + 4.0), Anchor::Start, label);
    }
    svg.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_are_over_the_trials_that_have_a_value() {
        let (one, other) = (vec![None, Some(1.0), Some(4.0)], vec![None, Some(3.0)]);
        let line = mean_line("ψ", 0, [&one, &other]);
        let points: Vec<(f64, f64)> = line.points.iter().map(|point| (point.x, point.y)).collect();
        assert_eq!(points, [(2.0, 2.0), (3.0, 4.0)]);
        assert!((line.points[0].half - 1.96).abs() < 1e-12, "s = √2, n = 2");
        let svg = drawn("a", "standings", ("round", "ψ"), &[line], &[2.5]);
        assert!(roxmltree::Document::parse(&svg).is_ok() && !svg.contains("NaN"), "{svg}");
        assert!(!drawn("a", "nothing", ("round", "ψ"), &[], &[]).contains("NaN"));
    }
}
