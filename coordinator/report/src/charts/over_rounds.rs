//! One value of every node over the rounds.

use super::{CLASSES, LINES_MAX, classes, hover_text, shade_exploring};
use crate::RunReport;
use crate::plot::{Frame, HEIGHT, Svg, extent};

/// A plot over rounds.
pub(crate) struct RoundsPlot<'a> {
    pub(crate) id: &'a str,
    pub(crate) title: &'a str,
    pub(crate) y_name: &'a str,
    pub(crate) width: f64,
    /// Position of the first round that is shown.
    pub(crate) from: usize,
}

/// The plot; `value` is given the positions of round and node.
pub(crate) fn over_rounds(
    plot: &RoundsPlot<'_>,
    report: &RunReport<'_>,
    value: impl Fn(usize, usize) -> f64,
) -> String {
    let (nodes, all) = (report.nodes.len(), &report.log.rounds);
    let annotation = &report.source.annotation;
    let classes = classes(&annotation.values);
    let rounds: Vec<usize> = (plot.from.min(all.len() - 1)..all.len()).collect();
    let few = nodes <= LINES_MAX;
    let description = if few {
        format!("One line a node over {} rounds; colour is {}.", rounds.len(), annotation.name)
    } else {
        format!(
            "{nodes} nodes in {CLASSES} classes of {} over {} rounds: the median of each class, and the band \
             that holds the middle 80 %.",
            annotation.name,
            rounds.len()
        )
    };
    let mut svg = Svg::new(plot.id, (plot.width, HEIGHT), plot.title, &description);
    let bands: Vec<Vec<[f64; 3]>> = if few {
        Vec::new()
    } else {
        let of_class = |class: usize| (0..nodes).filter(|&node| classes[node] == class).collect::<Vec<_>>();
        let band = |members: Vec<usize>| {
            rounds.iter().map(|&round| deciles(members.iter().map(|&node| value(round, node)))).collect()
        };
        (0..CLASSES).map(|class| band(of_class(class))).collect()
    };
    let y = if few {
        extent(rounds.iter().flat_map(|&round| (0..nodes).map(|node| value(round, node)).collect::<Vec<_>>()))
    } else {
        extent(bands.iter().flatten().flatten().copied())
    };
    let number = |round: usize| f64::from(all[round].round);
    let frame = Frame::new(plot.width, extent(rounds.iter().map(|&round| number(round))), y);
    shade_exploring(&mut svg, &frame, report, rounds[0]);
    frame.draw(&mut svg, "round", plot.y_name);
    if few {
        for (node, class) in classes.iter().enumerate() {
            let finite = rounds.iter().filter(|&&round| value(round, node).is_finite());
            let points = finite.map(|&round| frame.at(number(round), value(round, node)));
            svg.polyline(&format!("curve z{class}"), points, Some(&hover_text(report, node)));
        }
    } else {
        for (class, band) in
            bands.iter().enumerate().filter(|(_, band)| band.iter().all(|d| d[1].is_finite()))
        {
            let at = |index: usize, decile: usize| frame.at(number(rounds[index]), band[index][decile]);
            let outline = (0..band.len()).map(|i| at(i, 2)).chain((0..band.len()).rev().map(|i| at(i, 0)));
            svg.polygon(&format!("band z{class}"), outline);
            let label = format!("{} class {} of {CLASSES}", annotation.symbol, class + 1);
            svg.polyline(&format!("curve bold z{class}"), (0..band.len()).map(|i| at(i, 1)), Some(&label));
        }
    }
    svg.finish()
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
