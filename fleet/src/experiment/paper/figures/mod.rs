//! The paper's figures: their trials, drawings and numbers.

mod autocorrelation;
mod concurrent;
mod equality;
mod lines;
mod losses;
mod p_values;
mod paths;
mod recall;
mod standings;
mod temperature;

use super::document::WordTable;
use super::grid::PaperScope;
use crate::data::Dataset;
use crate::experiment::record::TrialRecord;
use crate::experiment::runner::TrialRecords;
use crate::experiment::setup::Setup;
use crate::experiment::table::seeds;

/// What figures are made from.
#[derive(Clone, Copy)]
pub struct FigureSource<'a> {
    /// What all trials have in common.
    pub scope: &'a PaperScope,
    /// The data sets that there are, or were asked for.
    pub datasets: &'a [Dataset],
    /// Trials behind each number.
    pub trials: u64,
}

/// A figure, drawn.
#[derive(Debug, Clone, Default)]
pub struct DrawnFigure {
    /// Captions and drawings.
    pub drawings: Vec<(String, String)>,
    /// The numbers in it.
    pub tables: Vec<WordTable>,
}

/// A figure of the paper that can be drawn.
struct PaperFigure {
    label: &'static str,
    setups: fn(&FigureSource<'_>) -> Vec<Setup>,
    draw: fn(&FigureSource<'_>, &TrialRecords) -> DrawnFigure,
}

const FIGURES: [PaperFigure; 10] = [
    PaperFigure { label: "fig:motivation-accurate-sv", setups: recall::example, draw: recall::draw_example },
    PaperFigure {
        label: "fig:p-value-and-convergence-complexity",
        setups: losses::setups,
        draw: losses::draw,
    },
    PaperFigure { label: "fig:effects-of-beta-Gamma", setups: |_| Vec::new(), draw: temperature::draw },
    PaperFigure { label: "fig:cml_vs_ours_convergence_path", setups: paths::setups, draw: paths::draw },
    PaperFigure { label: "fig:equality-comparison", setups: equality::setups, draw: equality::draw },
    PaperFigure {
        label: "fig:motivation-accurate-sv-appendix",
        setups: recall::kinds,
        draw: recall::draw_kinds,
    },
    PaperFigure {
        label: "fig:empirical-model-sv-convergence",
        setups: p_values::setups,
        draw: p_values::draw,
    },
    PaperFigure { label: "fig:sv_plot_appendix", setups: standings::setups, draw: standings::draw },
    PaperFigure { label: "fig:error-propagation", setups: concurrent::setups, draw: concurrent::draw },
    PaperFigure {
        label: "fig:sv_acf_plot_appendix",
        setups: autocorrelation::setups,
        draw: autocorrelation::draw,
    },
];

impl FigureSource<'_> {
    /// Those of some data sets that there are.
    fn present(&self, wanted: &[Dataset]) -> Vec<Dataset> {
        wanted.iter().copied().filter(|dataset| self.datasets.contains(dataset)).collect()
    }

    /// The records of a setup.
    fn records<'r>(&self, setup: &Setup, records: &'r TrialRecords) -> Vec<&'r TrialRecord> {
        seeds(setup, self.trials).filter_map(|setup| records.get(&setup)).collect()
    }
}

/// The setups of all trials behind a figure.
pub fn setups(label: &str, source: &FigureSource<'_>) -> Vec<Setup> {
    let found = FIGURES.iter().find(|figure| figure.label == label);
    let setups = found.map_or(Vec::new(), |figure| (figure.setups)(source));
    setups.iter().flat_map(|setup| seeds(setup, source.trials)).collect()
}

/// The figure, from the trials that there are.
pub fn draw(label: &str, source: &FigureSource<'_>, records: &TrialRecords) -> DrawnFigure {
    FIGURES
        .iter()
        .find(|figure| figure.label == label)
        .map_or_else(DrawnFigure::default, |figure| (figure.draw)(source, records))
}

#[cfg(test)]
mod tests {
    use super::super::{ITEMS, ItemKind};
    use super::*;

    #[test]
    fn every_available_figure_can_be_drawn() {
        for item in ITEMS.iter().filter(|item| item.kind == ItemKind::Figure) {
            let is_drawn = FIGURES.iter().any(|figure| figure.label == item.label);
            assert_eq!(is_drawn, item.unavailable.is_none(), "{}", item.label);
        }
    }
}
