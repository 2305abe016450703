//! One value of every node against its annotation.

use super::{LINES_MAX, classes, hover_text};
use crate::RunReport;
use crate::plot::{Anchor, Frame, HEIGHT, Svg, WIDTH, extent, signed};

/// A plot against the annotation.
pub(crate) struct ScatterPlot<'a> {
    pub(crate) id: &'a str,
    pub(crate) title: &'a str,
    pub(crate) y_name: &'a str,
    /// Pearson with the annotation, where it is a measure of fairness: drawn with the line of least squares.
    pub(crate) rho: Option<f64>,
    /// A value to compare with, and its name.
    pub(crate) reference: Option<(f64, &'a str)>,
}

pub(crate) fn scatter(plot: &ScatterPlot<'_>, report: &RunReport<'_>, values: &[f64]) -> String {
    let annotation = &report.source.annotation;
    let points: Vec<(f64, f64)> = annotation.values.iter().copied().zip(values.iter().copied()).collect();
    let classes = classes(&annotation.values);
    let description = match plot.rho {
        Some(rho) => format!("One dot a node; Pearson's correlation with {} is {rho:.2}.", annotation.symbol),
        None => "One dot a node.".to_owned(),
    };
    let mut svg = Svg::new(plot.id, (WIDTH, HEIGHT), plot.title, &description);
    let (low, high) = extent(points.iter().map(|(x, _)| *x));
    let margin = 0.04 * (high - low).max(0.01);
    let heights = points.iter().map(|(_, y)| *y).chain(plot.reference.iter().map(|(value, _)| *value));
    let frame = Frame::new(WIDTH, (low - margin, high + margin), extent(heights));
    frame.draw(&mut svg, &annotation.axis, plot.y_name);
    if let Some((value, name)) = plot.reference {
        let y = frame.y.at(value);
        svg.line("rule", (Frame::LEFT, y), (frame.right, y));
        svg.text("note", (frame.right - 4.0, y - 6.0), Anchor::End, name);
        if points.len() <= 2 * LINES_MAX {
            for (&(x, height), class) in points.iter().zip(&classes) {
                svg.line(&format!("stem z{class}"), frame.at(x, value), frame.at(x, height));
            }
        }
    }
    if let Some(rho) = plot.rho {
        svg.text("strong", (frame.right, 18.0), Anchor::End, &format!("ρ = {}", signed(rho, 2)));
    }
    let (radius, class_name) = if points.len() <= 100 { (5.0, "dot") } else { (2.4, "dot faint") };
    for (node, (&(x, height), class)) in points.iter().zip(&classes).enumerate() {
        let style = format!("{class_name} z{class}");
        svg.circle(&style, frame.at(x, height), radius, Some(&hover_text(report, node)));
    }
    if let Some((slope, intercept)) = plot.rho.and_then(|_| least_squares(&points)) {
        let end = |x: f64| frame.at(x, intercept + slope * x);
        svg.line("trend", end(low), end(high));
    }
    svg.finish()
}

fn least_squares(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    let n = points.len() as f64;
    let (mx, my) = (points.iter().map(|p| p.0).sum::<f64>() / n, points.iter().map(|p| p.1).sum::<f64>() / n);
    let sxx = points.iter().map(|p| (p.0 - mx).powi(2)).sum::<f64>();
    let sxy = points.iter().map(|p| (p.0 - mx) * (p.1 - my)).sum::<f64>();
    (sxx > 0.0).then(|| (sxy / sxx, my - sxy / sxx * mx))
}
