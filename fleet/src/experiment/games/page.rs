//! The report of trials with agents: one HTML file that needs nothing but itself.

use evenhand_agents::GridGame;
use evenhand_report::STYLE;
use evenhand_report::plot::{Anchor, Frame, HEIGHT, Svg, WIDTH, escaped, extent, put};

use super::engine::GameEngine;
use super::picture::GamePicture;
use super::record::GameRecord;
use super::table::GameTable;
use crate::experiment::variant::Variant;
use crate::names::value_name;
use crate::scenario::AgentCorruption;

const TAGS: f64 = 170.0;
/// Rounds of a moving mean, by which curves are smoothed.
const SMOOTHED_ROUNDS: usize = 15;
/// Pictures of a filmstrip, and frames between them.
const PICTURES: usize = 16;
const PICTURE_SIDE: f64 = 64.0;

/// The page; `command` repeats the run.
pub fn page(records: &[GameRecord], command: &str) -> String {
    let own = include_str!("../style.css");
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
         <title>Evenhand: agents</title>\n<style>\n{STYLE}{own}{FILM_STYLE}</style>\n</head>\n<body>\n<main>\n\
         <p class=\"mark\">Evenhand</p>\n<h1>Agents that learn a game together</h1>\n\
         <p class=\"lead\">Online score: mean of some episodes at ε = 0.02 with the model that an agent holds. ζ: how bad \
         its observations are. A negative ρ is fair: better observations, better models.</p>\n"
    );
    put(&mut page, format_args!("<pre class=\"scroll\">{}</pre>\n", escaped(&GameTable::of(records).text())));
    let mut chapters: Vec<(GridGame, GameEngine, AgentCorruption)> = records
        .iter()
        .map(|record| (record.setup.task, record.setup.engine, record.setup.corruption))
        .collect();
    chapters.sort();
    chapters.dedup();
    for (number, chapter) in chapters.into_iter().enumerate() {
        let (task, engine, corruption) = chapter;
        let of = |record: &&GameRecord| {
            (record.setup.task, record.setup.engine, record.setup.corruption) == chapter
                && record.setup.level > 0.0
        };
        let records: Vec<&GameRecord> = records.iter().filter(of).collect();
        let (engine, differ) = (value_name(&engine), value_name(&corruption));
        put(&mut page, format_args!("<h2>{} ({engine}), {differ}</h2>\n", task.name()));
        let curves = learning_curves(&format!("curves-{number}"), &records);
        put(&mut page, format_args!("<figure><figcaption>Learning curves</figcaption>{curves}</figure>\n"));
        page += &nodes(&records);
        if let Some(record) = records.iter().find(|record| !record.film.is_empty()) {
            put(
                &mut page,
                format_args!(
                    "<figure><figcaption>An episode with the last model of {}, seed {}: score {} up to the last \
                     frame</figcaption>{}</figure>\n",
                    record.setup.variant.label(),
                    record.setup.seed,
                    record.film_score,
                    film(&format!("film-{number}"), &record.film)
                ),
            );
        }
    }
    put(
        &mut page,
        format_args!("<p class=\"repeat\">To repeat this: <code>{}</code></p>\n", escaped(command)),
    );
    page.push_str("</main>\n</body>\n</html>\n");
    page
}

const FILM_STYLE: &str = "\
.sky { fill: #10161d; } \
.k1 { fill: #58acf4; } .k2 { fill: #f0c04f; } .k3 { fill: #86d672; } .k4 { fill: #ff8548; } .k5 { fill: #e8edf3; } \
.k6 { fill: #ff5d5d; } .grey { fill: #e8edf3; } pre.scroll { font-size: 12px; }\n";

/// Mean over trials and nodes, smoothed, one line a strategy.
fn learning_curves(id: &str, records: &[&GameRecord]) -> String {
    let mut variants: Vec<Variant> = records.iter().map(|record| record.setup.variant).collect();
    variants.sort();
    variants.dedup();
    let curves: Vec<(Variant, Vec<f64>)> = variants
        .into_iter()
        .map(|variant| {
            let own: Vec<&[f64]> = (records.iter().filter(|record| record.setup.variant == variant))
                .map(|record| record.curve.as_slice())
                .collect();
            let rounds = own.iter().map(|curve| curve.len()).min().unwrap_or(0);
            let mean = |round: usize| own.iter().map(|curve| curve[round]).sum::<f64>() / own.len() as f64;
            (variant, smoothed(&(0..rounds).map(mean).collect::<Vec<_>>()))
        })
        .collect();
    let width = 2.0 * WIDTH;
    let mut svg =
        Svg::new(id, (width, HEIGHT), "Learning curves", "Mean score by round, one line a strategy.");
    let rounds = curves.iter().map(|(_, curve)| curve.len()).max().unwrap_or(0) as f64;
    let values = extent(curves.iter().flat_map(|(_, curve)| curve.iter().copied()).chain([0.0]));
    let frame = Frame::new(width - TAGS, (1.0, rounds.max(2.0)), values);
    frame.draw(&mut svg, "round", "mean score of held models");
    for (number, (variant, curve)) in curves.iter().enumerate() {
        let colour = variant.position();
        let points = curve.iter().enumerate().map(|(round, score)| frame.at(round as f64 + 1.0, *score));
        svg.polyline(&format!("curve c{colour}"), points, Some(variant.label()));
        let y = Frame::TOP + 16.0 * (number as f64 + 1.0);
        svg.text(&format!("tag c{colour}"), (frame.right + 14.0, y), Anchor::Start, variant.label());
    }
    svg.finish()
}

fn smoothed(values: &[f64]) -> Vec<f64> {
    (1..=values.len())
        .map(|end| {
            let window = &values[end.saturating_sub(SMOOTHED_ROUNDS)..end];
            window.iter().sum::<f64>() / window.len() as f64
        })
        .collect()
}

/// Scores, standings and draws by node, as means over the trials of each strategy.
fn nodes(records: &[&GameRecord]) -> String {
    let Some(first) = records.first() else { return String::new() };
    let values = first.setup.values();
    let mut text =
        String::from("<div class=\"scroll\"><table><thead><tr><th>score, times drawn, standing</th>");
    for value in &values {
        put(&mut text, format_args!("<th>{value}</th>"));
    }
    text.push_str("</tr></thead><tbody>\n");
    let mut variants: Vec<Variant> = records.iter().map(|record| record.setup.variant).collect();
    variants.sort();
    variants.dedup();
    for variant in variants {
        let own: Vec<&&GameRecord> = records
            .iter()
            .filter(|record| record.setup.variant == variant && record.scores.len() == values.len())
            .collect();
        put(&mut text, format_args!("<tr><th>{}</th>", variant.label()));
        for node in 0..values.len() {
            let mean = |of: &dyn Fn(&GameRecord) -> f64| {
                own.iter().map(|record| of(record)).sum::<f64>() / own.len().max(1) as f64
            };
            let standing = mean(&|record| record.standings.get(node).copied().unwrap_or(0.0));
            let (score, drawn) =
                (mean(&|record| record.scores[node]), mean(&|record| record.drawn[node].into()));
            put(&mut text, format_args!("<td>{score:.2} <small>{drawn:.0}× {standing:.3}</small></td>"));
        }
        text.push_str("</tr>\n");
    }
    text + "</tbody></table></div>\n"
}

/// Frames of an episode, evenly chosen.
fn film(id: &str, frames: &[GamePicture]) -> String {
    let step = frames.len().div_ceil(PICTURES).max(1);
    let shown: Vec<&GamePicture> = frames.iter().step_by(step).collect();
    let columns = PICTURES / 2;
    let rows = shown.len().div_ceil(columns);
    let (pitch, gap) = (PICTURE_SIDE + 6.0, 3.0);
    let size = (pitch * columns as f64, pitch * rows as f64);
    let mut svg =
        Svg::new(id, size, "Filmstrip", &format!("Every frame {step} after the one before, row by row."));
    for (number, picture) in shown.into_iter().enumerate() {
        let corner = ((number % columns) as f64 * pitch + gap, (number / columns) as f64 * pitch + gap);
        draw(&mut svg, corner, picture);
    }
    svg.finish()
}

/// One frame: neighbouring cells of one kind in a row are one rectangle.
fn draw(svg: &mut Svg, (left, top): (f64, f64), picture: &GamePicture) {
    svg.rect("sky", (left, top), (PICTURE_SIDE, PICTURE_SIDE), None);
    let rows = picture.rows();
    let is_grey = picture.columns > 20;
    let (width, height) =
        (PICTURE_SIDE / picture.columns.max(1) as f64, PICTURE_SIDE / rows.len().max(1) as f64);
    for (row, cells) in rows.iter().enumerate() {
        let mut column = 0;
        while column < cells.len() {
            let kind = cells[column];
            let run = cells[column..].iter().take_while(|other| **other == kind).count();
            let class = if is_grey { "grey".to_owned() } else { format!("k{kind}") };
            // Grey pictures are drawn as black and white: what matters in them is bright.
            if kind > if is_grey { 5 } else { 0 } {
                let corner = (left + column as f64 * width, top + row as f64 * height);
                svg.rect(&class, corner, (width * run as f64, height), None);
            }
            column += run;
        }
    }
}
