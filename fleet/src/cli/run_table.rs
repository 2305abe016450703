//! The table of a run, and the figures under it.

use std::fmt::Write;

use evenhand_report::{bytes_text, probability_decimals};

use crate::sim::{RecordedRun, RunEnd, RunFigures, skill_text};

const COLUMNS: usize = 9;
const HEAD: [&str; COLUMNS] = [
    "node",
    "ζ",
    "standing ψ",
    "probability ϱ",
    "drawn",
    "mean staleness",
    "longest",
    "online loss",
    "skill",
];

/// One row a node, then fairness, equality and cost.
pub fn text(run: &RecordedRun, figures: &RunFigures) -> String {
    let decimals = probability_decimals(figures.nodes.len());
    let mut rows = vec![HEAD.map(str::to_owned)];
    rows.extend(figures.nodes.iter().map(|node| {
        [
            node.id.clone(),
            format!("{:.2}", node.zeta),
            format!("{:.*}", decimals + 1, node.standing),
            format!("{:.decimals$}", node.sampling_probability),
            node.drawn.to_string(),
            format!("{:.2}", node.mean_staleness),
            node.longest_staleness.to_string(),
            format!("{:.4}", node.online_loss),
            skill_text(node.skill),
        ]
    }));
    let mut text = aligned(&rows);
    text.push('\n');
    for (name, sentence) in summary(run, figures) {
        writeln!(text, "{name:<9} {sentence}").expect("a String takes any text");
    }
    text
}

fn aligned(rows: &[[String; COLUMNS]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: [usize; COLUMNS] = std::array::from_fn(width);
    let mut text = String::new();
    for row in rows {
        let first = format!("{:<1$}", row[0], widths[0]);
        let rest = row.iter().zip(widths).skip(1).map(|(cell, width)| format!("  {cell:>width$}"));
        text.push_str(&std::iter::once(first).chain(rest).collect::<String>());
        text.push('\n');
    }
    text
}

fn summary(run: &RecordedRun, figures: &RunFigures) -> Vec<(&'static str, String)> {
    let rules = &run.description.rules;
    let mut lines = Vec::new();
    if run.ended == RunEnd::Interrupted {
        lines.push((
            "ended",
            format!("interrupted after {} of {} rounds", figures.rounds, rules.federation.rounds),
        ));
    }
    let rho = |rho: Option<f64>| rho.map_or("–".to_owned(), |rho| format!("{rho:.3}"));
    lines.push((
        "fairness",
        format!(
            "Pearson of ζ with mean staleness {}, with online loss {}",
            rho(figures.rho_staleness),
            rho(figures.rho_loss)
        ),
    ));
    if let Some(loss) = figures.online_loss {
        lines.push((
            "equality",
            format!(
                "online loss std {:.4}, min {:.4}, max {:.4}, mean {:.4}",
                loss.std, loss.min, loss.max, loss.mean
            ),
        ));
    }
    if let Some(skill) = figures.skill {
        let sentence = format!(
            "1 − MAE / MAE of the best naive forecast: mean {}, min {}, max {}",
            skill_text(Some(skill.mean)),
            skill_text(Some(skill.min)),
            skill_text(Some(skill.max))
        );
        lines.push(("skill", sentence));
    }
    lines.push((
        "phases",
        match figures.t_alpha {
            Some(0) => format!("{} rounds with {} draws each", figures.rounds, rules.exploiting.k),
            Some(t) => {
                format!(
                    "explored {t} rounds, then {} with {} draws each",
                    figures.rounds - t,
                    rules.exploiting.k
                )
            }
            None => format!("explored {} rounds; the stop rule had not spoken yet", figures.rounds),
        },
    ));
    lines.push((
        "wire",
        format!("{} up, {} down", bytes_text(figures.bytes_up), bytes_text(figures.bytes_down)),
    ));
    lines.push((
        "time",
        format!(
            "{:.1} s of training, {:.2} s of closing rounds",
            figures.seconds_training, figures.seconds_fairness
        ),
    ));
    lines
}
