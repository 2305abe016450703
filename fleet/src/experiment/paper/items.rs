//! The registry of the paper's tables and figures.

use super::published_cells::published;

/// A table or a figure of the paper.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PaperItem {
    /// Its label in the paper.
    pub label: &'static str,
    /// What it is.
    pub kind: ItemKind,
    /// Its subject, for lists.
    pub about: &'static str,
    /// Trials behind each number in the paper.
    pub trials: u64,
    /// The reason why it cannot be repeated here.
    pub unavailable: Option<Unavailable>,
}

/// The kind of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ItemKind {
    /// A table of numbers that trials answer.
    Table,
    /// A table of formulas.
    Formulas,
    /// A figure.
    Figure,
}

/// The reason why something of the paper cannot be repeated here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    /// Games.
    #[error("reinforcement learning on games is no data set of this command")]
    Games,
    /// Another utility.
    #[error("utilities see updates only: the negative loss needs test data at the coordinator")]
    NegativeLoss,
    /// An illustration.
    #[error("an illustration without data")]
    Illustration,
    /// A list of symbols.
    #[error("a list of symbols; docs/glossary.md is ours")]
    Symbols,
}

impl PaperItem {
    /// Its name on the command line: its label without what stands before the last colon.
    pub fn name(&self) -> &'static str {
        self.label.rsplit(':').next().unwrap_or(self.label)
    }

    /// Numbers in it, where it is a table.
    pub fn cells(&self) -> usize {
        published().of(self.label).count()
    }
}

const fn table(label: &'static str, about: &'static str) -> PaperItem {
    PaperItem { label, kind: ItemKind::Table, about, trials: 5, unavailable: None }
}

const fn figure(label: &'static str, about: &'static str, trials: u64) -> PaperItem {
    PaperItem { label, kind: ItemKind::Figure, about, trials, unavailable: None }
}

const fn without(item: PaperItem, why: Unavailable) -> PaperItem {
    PaperItem { unavailable: Some(why), ..item }
}

const fn formulas(item: PaperItem) -> PaperItem {
    PaperItem { kind: ItemKind::Formulas, ..item }
}

const fn thrice(item: PaperItem) -> PaperItem {
    PaperItem { trials: 3, ..item }
}

const fn ten(item: PaperItem) -> PaperItem {
    PaperItem { trials: 10, ..item }
}

/// All tables in the order of the paper, then all figures.
pub const ITEMS: [PaperItem; 43] = [
    table("tab:by-class-vs-not-by-class-pearson", "ρ(online loss), feature noise"),
    table("table:average-online-acc-feature-noise", "online accuracy, mean over nodes, feature noise"),
    table("table:minimum-online-acc-feature-noise", "online accuracy, lowest of a node, feature noise"),
    table("table:fairness-varying-beta-feature-noise", "ρ(online loss) for several β, feature noise"),
    without(
        thrice(table("table:fedrl-noise-scores-benchmark", "ρ(online score) on games")),
        Unavailable::Games,
    ),
    without(formulas(table("table:specific_notations", "notation")), Unavailable::Symbols),
    thrice(table("table:subsample-nodes-stopping-iteration", "T_α where some nodes are away")),
    formulas(table("table:communication-costs", "models and updates sent")),
    formulas(table("table:time-complexity-factor", "time of the fairness mechanism, formulas")),
    table("table:table:running-time-label-noise", "seconds of the fairness mechanism, label noise"),
    table("table:running-time-quantity", "seconds of the fairness mechanism, quantity"),
    table("table:heterogeneity-final-acc", "final accuracy, best node, few classes"),
    table("table:heterogeneity-online-acc", "online accuracy, best node, few classes"),
    table("table:heterogeneity-baselines", "online accuracy, best node, two classes, all algorithms"),
    table("table:pearson-online-loss", "ρ(online loss), three kinds of bad data"),
    table("table:average-online-acc", "online accuracy, mean over nodes, three kinds"),
    table("table:minimum-online-acc", "online accuracy, lowest of a node, three kinds"),
    table("table:pearson-staleness", "ρ(staleness), four kinds"),
    table("table:pearson-online-accuracy", "ρ(online accuracy), four kinds"),
    table("table:maximum-online-acc", "online accuracy, highest of a node, four kinds"),
    table("table:standard-dev-online-loss", "deviation of online loss over nodes, four kinds"),
    table("table:standard-dev-online-accu", "deviation of online accuracy over nodes, four kinds"),
    table("tab:fairness-online-constraint", "ρ(online loss) with Cons, feature noise"),
    table("tab:online-acc-constraint", "online accuracy with Cons, feature noise"),
    table("tab:std-online-loss-constraint", "deviation of online loss with Cons, feature noise"),
    table("table:fairness-varying-beta-final-acc", "ρ(online loss) for several β, label noise, final std"),
    table("table:fairness-varying-beta", "ρ(online loss) for several β, label noise, online std"),
    ten(table("table:normality_test_appendix", "normality of contributions")),
    without(
        table("table:pred-stopping-iteration-neg-loss", "a node that stops contributing, negative loss"),
        Unavailable::NegativeLoss,
    ),
    table("table:pred-stopping-iteration-inner-prod", "a node that stops contributing, inner product"),
    without(figure("fig:spectrum", "exploring and exploiting", 0), Unavailable::Illustration),
    figure("fig:motivation-accurate-sv", "recall and change of standings over rounds", 5),
    figure("fig:p-value-and-convergence-complexity", "p-values; loss of the best, 25 % and last node", 10),
    figure("fig:effects-of-beta-Gamma", "β and the expected staleness Γ", 5),
    figure("fig:cml_vs_ours_convergence_path", "loss of each of five nodes, ours and FGFL", 5),
    figure("fig:equality-comparison", "final accuracy over nodes", 5),
    without(figure("fig:RL-additional", "standings on games", 3), Unavailable::Games),
    figure("fig:motivation-accurate-sv-appendix", "recall over rounds, four kinds of bad data", 5),
    figure("fig:empirical-model-sv-convergence", "p-values with and without sub-sampling", 10),
    figure("fig:sv_plot_appendix", "standings against ζ", 5),
    without(figure("fig:RL-additional-appendix", "standings on games", 3), Unavailable::Games),
    figure("fig:error-propagation", "measuring and drawing at once, ten equal nodes", 5),
    figure("fig:sv_acf_plot_appendix", "autocorrelation of contributions", 5),
];

/// The item of a name or label.
pub fn item(name: &str) -> Option<&'static PaperItem> {
    ITEMS.iter().find(|item| item.name() == name || item.label == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_registry_has_every_table_once_and_in_order() {
        let ours: Vec<&str> =
            ITEMS.iter().filter(|item| item.kind != ItemKind::Figure).map(|item| item.label).collect();
        let theirs: Vec<&str> = published().tables.iter().map(|table| table.label.as_str()).collect();
        assert_eq!(ours, theirs);
        assert_eq!(ITEMS.len() - ours.len(), 13, "figures");
    }

    #[test]
    fn names_are_unique() {
        for (at, one) in ITEMS.iter().enumerate() {
            assert!(ITEMS[at + 1..].iter().all(|other| other.name() != one.name()), "{}", one.name());
            assert_eq!(item(one.name()), Some(one));
        }
    }
}
