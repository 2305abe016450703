//! The stop rule's p-value against its threshold.

use super::{rounds_extent, shade_exploring};
use crate::RunReport;
use crate::plot::{Anchor, Frame, HEIGHT, Svg, WIDTH};

pub(crate) fn stop_rule(report: &RunReport<'_>) -> String {
    let criterion = report.criterion();
    let p_of = |round: &crate::RoundSummary| Some((f64::from(round.round), round.stop.as_ref()?.p_value?));
    let tested: Vec<(f64, f64)> = report.log.rounds.iter().filter_map(p_of).collect();
    let description = match report.explored_until {
        _ if report.is_continuous() => criterion.settled_text(report.last_verdict()),
        Some(last) if last > 0 => {
            format!("Exploring ended after round {last}: {}.", criterion.end_text(report.verdict_at(last)))
        }
        Some(_) => "Contributions were not measured, so the stop rule was not asked.".to_owned(),
        None => format!("The stop rule is not met: {}.", criterion.unmet_text(report.last_verdict())),
    };
    let title = if report.is_continuous() {
        "p-value of the test of settled standings over rounds"
    } else {
        "The stop rule's p-value over rounds"
    };
    let mut svg = Svg::new("p", (WIDTH, HEIGHT), title, &description);
    let frame = Frame::new(WIDTH, rounds_extent(report), (0.0, 1.0));
    shade_exploring(&mut svg, &frame, report, 0);
    frame.draw(&mut svg, "round", "p-value");
    let (left, line) = (Frame::LEFT, frame.y.at(criterion.threshold()));
    svg.line("rule", (left, line), (frame.right, line));
    svg.text("note", (frame.right - 4.0, line - 6.0), Anchor::End, &criterion.threshold_text());
    svg.polyline("curve bold accent", tested.iter().map(|&(round, p)| frame.at(round, p)), None);
    for &(round, p) in &tested {
        svg.circle("dot accent", frame.at(round, p), 2.2, Some(&format!("round {round}: p = {p:.3}")));
    }
    let last = report.explored_until.filter(|_| !report.is_continuous()).map(f64::from);
    if let Some((round, p)) = tested.iter().find(|(round, _)| Some(*round) == last) {
        let hover = format!("exploring ended after round {round}: p = {p:.3}");
        svg.circle("stop", frame.at(*round, *p), 6.0, Some(&hover));
    }
    if tested.is_empty() {
        let middle = ((Frame::LEFT + frame.right) / 2.0, (Frame::TOP + Frame::BOTTOM) / 2.0);
        svg.text("note", middle, Anchor::Middle, "no test was made");
    }
    svg.finish()
}
