//! The plan of each comparison.

use clap::ValueEnum;

use super::ComparisonTable;
use crate::data::{AsPublished, Dataset};
use crate::experiment::labels::{corruption_label, dataset_label};
use crate::experiment::measure::Measure;
use crate::experiment::setup::Setup;
use crate::experiment::table::{CellQuery, TablePlan};
use crate::experiment::variant::Variant;
use crate::names::value_name;
use crate::scenario::Corruption;

/// Four kinds of bad data, those of the paper's main tables.
pub const CORRUPTIONS: [Corruption; 4] =
    [Corruption::FeatureNoise, Corruption::LabelNoise, Corruption::Quantity, Corruption::MissingValues];
/// 1/β.
const SHARPNESSES: [f64; 5] = [30.0, 75.0, 150.0, 300.0, 1500.0];
/// The largest share of rounds in which a node is away.
const AWAY: [f64; 5] = [0.0, 0.1, 0.2, 0.3, 0.5];

/// The scope of all tables.
#[derive(Debug, Clone)]
pub struct TableScope {
    /// The variants under comparison.
    pub variants: Vec<Variant>,
    /// The corruptions, in the tables that compare them.
    pub corruptions: Vec<Corruption>,
    /// The authority where the published code differs from the paper.
    pub as_published: AsPublished,
    /// Samples on which models are scored in a round, at most; 0 for all.
    pub evaluation_samples: usize,
    /// Seed of the first trial.
    pub seed: u64,
}

impl TableScope {
    /// The kinds of bad data that a data set can have.
    fn corruptions_of(&self, dataset: Dataset) -> Vec<Corruption> {
        self.corruptions.iter().copied().filter(|&corruption| goes_with(dataset, corruption)).collect()
    }

    /// A sentence for everything that was asked for and that a table of a data set cannot show.
    pub fn left_out(&self, name: ComparisonTable, dataset: Dataset) -> Vec<String> {
        let cannot = |corruption| {
            let (dataset, corruption) = (value_name(&dataset), value_name(&corruption));
            format!("{dataset} with {corruption}, since it has no classes")
        };
        let (table, corruptions) = (value_name(&name), self.corruptions.as_slice());
        let corrupted = match name {
            _ if name.compares_corruptions() => corruptions,
            ComparisonTable::ClassLadder => &[Corruption::Heterogeneity],
            _ => &[],
        };
        let impossible = corrupted.iter().filter(|&&corruption| !goes_with(dataset, corruption));
        let unasked =
            corruptions.iter().filter(|_| !name.compares_corruptions() && corruptions != CORRUPTIONS);
        let uncovered =
            self.variants.iter().filter(|&&one| !name.covers(one) && self.variants != Variant::all());
        let about = || {
            let covered = Variant::value_variants().iter().copied().filter(|&one| name.covers(one));
            covered.map(Variant::name).collect::<Vec<_>>().join(", ")
        };
        impossible
            .map(|&corruption| cannot(corruption))
            .chain(unasked.map(|corruption| {
                format!("{} in the table {table}, which has bad data of its own", value_name(corruption))
            }))
            .chain(
                uncovered
                    .map(|one| format!("{} in the table {table}, which is about {}", one.name(), about())),
            )
            .collect()
    }
}

fn goes_with(dataset: Dataset, corruption: Corruption) -> bool {
    corruption != Corruption::Heterogeneity || dataset.has_classes()
}

impl ComparisonTable {
    /// True if its columns are kinds of bad data.
    fn compares_corruptions(self) -> bool {
        matches!(self, Self::Fairness | Self::Performance | Self::Standings)
    }

    /// True if it has rows for a strategy.
    fn covers(self, variant: Variant) -> bool {
        match self {
            Self::Standings => variant.is_ours(),
            Self::Sharpness => variant == Variant::Paper,
            Self::Away => matches!(variant, Variant::Paper | Variant::PaperCalibrated),
            Self::Withholding => {
                matches!(variant, Variant::Paper | Variant::PaperCredit | Variant::Fedavg)
            }
            _ => true,
        }
    }
}

/// The plans of one table for one data set; none where the data set cannot answer.
pub fn plans(name: ComparisonTable, dataset: Dataset, scope: &TableScope) -> Vec<TablePlan> {
    let variants = scope.variants.iter().copied().filter(|&one| name.covers(one)).collect();
    let builder = TableBuilder { dataset, scope, variants };
    let mut plans = match name {
        ComparisonTable::Fairness => builder.by_corruption(&[Measure::RhoLoss, Measure::RhoStaleness]),
        ComparisonTable::Performance => {
            let online = [Measure::OnlineMean, Measure::OnlineMin, Measure::OnlineMax, Measure::OnlineStd];
            builder.by_corruption(&online)
        }
        ComparisonTable::Standings => builder.by_corruption(&[Measure::Recall, Measure::RhoStanding]),
        ComparisonTable::Sharpness => vec![builder.beta()],
        ComparisonTable::Away => vec![builder.unstable()],
        ComparisonTable::Withholding => vec![builder.strategic()],
        ComparisonTable::ClassLadder if !goes_with(dataset, Corruption::Heterogeneity) => Vec::new(),
        ComparisonTable::ClassLadder => vec![builder.heterogeneity()],
        ComparisonTable::Cost => vec![builder.time()],
        ComparisonTable::All => {
            name.each().into_iter().flat_map(|name| plans(name, dataset, scope)).collect()
        }
    };
    plans.retain(|plan| !plan.rows.is_empty());
    plans
}

struct TableBuilder<'a> {
    dataset: Dataset,
    scope: &'a TableScope,
    /// Those of the scope that the table has rows for.
    variants: Vec<Variant>,
}

impl TableBuilder<'_> {
    fn setup(&self, corruption: Corruption, variant: Variant) -> Setup {
        let TableScope { as_published, seed, evaluation_samples, .. } = *self.scope;
        let published = Setup::published(self.dataset, corruption, variant, as_published, seed);
        Setup { evaluation_samples, ..published }
    }

    /// One table a measure: a row a strategy, a column a corruption.
    fn by_corruption(&self, measures: &[Measure]) -> Vec<TablePlan> {
        let corruptions = self.scope.corruptions_of(self.dataset);
        if corruptions.is_empty() {
            return Vec::new();
        }
        let plan = |&measure: &Measure| {
            let heads = corruptions.iter().map(|&corruption| corruption_label(corruption));
            let row = |variant: Variant| {
                let ask = |&corruption| CellQuery { setup: self.setup(corruption, variant), measure };
                (variant.label().to_owned(), corruptions.iter().map(ask).collect())
            };
            TablePlan {
                title: self.title(&measure.description(self.dataset)),
                heads: std::iter::once("strategy".to_owned()).chain(heads).collect(),
                rows: self.variants.iter().copied().map(row).collect(),
                trade_off: None,
            }
        };
        measures.iter().map(plan).collect()
    }

    /// One row a setup, one column a measure.
    fn list(&self, title: &str, first: &str, rows: Vec<(String, Setup)>, measures: &[Measure]) -> TablePlan {
        let heads = measures.iter().map(|measure| measure.head(self.dataset));
        let ask = |setup: &Setup| {
            measures.iter().map(|&measure| CellQuery { setup: setup.clone(), measure }).collect()
        };
        TablePlan {
            title: self.title(title),
            heads: std::iter::once(first.to_owned()).chain(heads).collect(),
            rows: rows.into_iter().map(|(name, setup)| (name, ask(&setup))).collect(),
            trade_off: None,
        }
    }

    fn title(&self, about: &str) -> String {
        format!("{}, {about}", dataset_label(self.dataset))
    }

    fn beta(&self) -> TablePlan {
        let published = self.setup(Corruption::FeatureNoise, Variant::Paper);
        // β of other data sets than the paper's may be another: the steps are the same.
        let unit = published.temperature * 150.0;
        let row = |sharpness: f64| {
            let own = sharpness == 150.0;
            let temperature = if own { published.temperature } else { unit / sharpness };
            let name = format!("1/{:.0}", 1.0 / temperature);
            (name, Setup { temperature, ..published.clone() })
        };
        let measures = [
            Measure::RhoLoss,
            Measure::RhoStaleness,
            Measure::OnlineMean,
            Measure::OnlineMin,
            Measure::OnlineStd,
        ];
        let plan = self.list(
            "fairness against equality for several β, feature noise, Evenhand",
            "β",
            SHARPNESSES.map(row).to_vec(),
            &measures,
        );
        TablePlan { trade_off: Some((0, measures.len() - 1)), ..plan }
    }

    fn unstable(&self) -> TablePlan {
        let mut rows = Vec::new();
        for &variant in &self.variants {
            for level in AWAY {
                let setup = Setup { level, ..self.setup(Corruption::Unstable, variant) };
                rows.push((format!("{}, away up to {level}", variant.label()), setup));
            }
        }
        let measures = [Measure::TAlpha, Measure::RhoStaleness, Measure::OnlineMean, Measure::OnlineStd];
        self.list(
            "stopping iteration when nodes are away in a share ζ of the rounds",
            "strategy",
            rows,
            &measures,
        )
    }

    fn strategic(&self) -> TablePlan {
        let conducts = [
            ("steady", Corruption::FeatureNoise),
            ("RANDOM", Corruption::StrategicRandom),
            ("POISSON", Corruption::StrategicPoisson),
        ];
        let mut rows = Vec::new();
        for &variant in &self.variants {
            for (name, corruption) in conducts {
                rows.push((format!("{}, {name}", variant.label()), self.setup(corruption, variant)));
            }
        }
        let measures = [Measure::RhoLoss, Measure::RhoStaleness, Measure::OnlineMean, Measure::OnlineStd];
        self.list("nodes that stop contributing", "strategy, nodes", rows, &measures)
    }

    fn heterogeneity(&self) -> TablePlan {
        let measures = [
            Measure::RhoLoss,
            Measure::RhoStaleness,
            Measure::OnlineMean,
            Measure::OnlineMin,
            Measure::OnlineMax,
            Measure::OnlineStd,
        ];
        let rows = self.each(Corruption::Heterogeneity);
        self.list("nodes that see few of the classes", "strategy", rows, &measures)
    }

    fn time(&self) -> TablePlan {
        let measures = [Measure::SecondsTraining, Measure::SecondsFairness, Measure::Seconds];
        let rows = self.each(Corruption::FeatureNoise);
        self.list("running time, feature noise", "strategy", rows, &measures)
    }

    fn each(&self, corruption: Corruption) -> Vec<(String, Setup)> {
        let row = |one: Variant| (one.label().to_owned(), self.setup(corruption, one));
        self.variants.iter().copied().map(row).collect()
    }
}
