//! The HTML report of a recorded run, with shares of bad data and online losses as its annotations.

use evenhand_fairness::measures::Summary;
use evenhand_report::{LossSeries, NodeAnnotation, NodeColumn, ReportSource, ReportTile, bytes_text, html};

use super::{RecordedRun, RunEnd};

impl RecordedRun {
    /// The page.
    pub fn report_html(&self) -> String {
        html(&self.description.rules, &self.log, &self.report_source())
    }

    fn report_source(&self) -> ReportSource {
        let description = &self.description;
        ReportSource {
            node_noun: "meters".into(),
            annotation: NodeAnnotation {
                symbol: "bad data".into(),
                name: "share of bad data".into(),
                axis: "share of bad data (0: none)".into(),
                low: "good".into(),
                high: "bad".into(),
                low_on_top: "the best data on top".into(),
                values: self.nodes.iter().map(|node| node.zeta).collect(),
            },
            losses: LossSeries {
                name: "online loss".into(),
                meaning: "Each node forecasts with the model it last received. Its online loss is that model's error on \
                          the next, clean readings of all nodes."
                    .into(),
                comparable: true,
                values: (self.online.iter())
                    .map(|scores| scores.iter().map(|score| score.loss).collect())
                    .collect(),
            },
            columns: self.skill_column().into_iter().collect(),
            tiles: self.skill_tile().into_iter().chain(self.cost_tiles()).collect(),
            settings: vec![
                ("strategy".into(), description.strategy.clone()),
                ("transport".into(), description.transport.clone()),
            ],
            unfinished: (self.ended == RunEnd::Interrupted).then(|| "Interrupted".into()),
            command: ("To repeat this run".into(), description.command.clone()),
        }
    }

    fn skill_column(&self) -> Option<NodeColumn> {
        let known = self.skills.iter().any(Option::is_some);
        let cells = self.skills.iter().map(|skill| skill_text(*skill)).collect();
        known.then(|| NodeColumn { name: "skill".into(), cells })
    }

    fn skill_tile(&self) -> Option<ReportTile> {
        let skills: Vec<f64> = self.skills.iter().flatten().copied().collect();
        let skill = Summary::of(&skills)?;
        Some(ReportTile {
            name: "Skill of the forecasts".into(),
            value: skill_text(Some(skill.mean)),
            note: format!(
                "1 − MAE / MAE of the best naive one; from {} to {}",
                skill_text(Some(skill.min)),
                skill_text(Some(skill.max))
            ),
        })
    }

    fn cost_tiles(&self) -> Vec<ReportTile> {
        let cost = &self.cost;
        let (up, down) = (bytes_text(cost.bytes_up), bytes_text(cost.bytes_down));
        vec![
            ReportTile {
                name: "On the wire".into(),
                value: bytes_text(cost.bytes_up + cost.bytes_down),
                note: format!("{up} up, {down} down"),
            },
            ReportTile {
                name: "Training, all nodes".into(),
                value: format!("{:.1} s", cost.seconds_training),
                note: format!("{:.2} s closing rounds", cost.seconds_fairness),
            },
        ]
    }
}

/// A skill in percent, as tables show it.
pub(crate) fn skill_text(skill: Option<f64>) -> String {
    skill.map_or("–".to_owned(), |skill| format!("{:+.1} %", 100.0 * skill))
}
