//! What each table of the paper asks.

use clap::ValueEnum;

use super::args::TableName;
use crate::corruption::Corruption;
use crate::data::Dataset;
use crate::experiment::measure::{Measure, has_classes};
use crate::experiment::names::{corruption_label, dataset_label, value_name};
use crate::experiment::setup::{AsPublished, Contender, Setup};
use crate::experiment::table::{Plan, Question};

/// Four kinds of bad data, as in the paper's main tables.
pub const CORRUPTIONS: [Corruption; 4] =
    [Corruption::FeatureNoise, Corruption::LabelNoise, Corruption::Quantity, Corruption::MissingValues];
/// 1/β.
const SHARPNESSES: [f64; 5] = [30.0, 75.0, 150.0, 300.0, 1500.0];
/// The largest share of rounds in which a node is away.
const AWAY: [f64; 5] = [0.0, 0.1, 0.2, 0.3, 0.5];

/// What all tables are asked for.
#[derive(Debug, Clone)]
pub struct Scope {
    /// Who is compared.
    pub contenders: Vec<Contender>,
    /// On which kinds of bad data, in the tables that compare them.
    pub corruptions: Vec<Corruption>,
    /// Whom to follow.
    pub as_published: AsPublished,
    /// Samples on which models are scored in a round, at most; 0 for all.
    pub questions: usize,
    /// Of the first trial.
    pub seed: u64,
}

impl Scope {
    /// The kinds of bad data that a data set can have.
    fn corruptions_of(&self, dataset: Dataset) -> Vec<Corruption> {
        self.corruptions.iter().copied().filter(|&corruption| goes_with(dataset, corruption)).collect()
    }

    /// A sentence for everything that was asked for and that a table of a data set cannot show.
    pub(super) fn left_out(&self, name: TableName, dataset: Dataset) -> Vec<String> {
        let cannot = |corruption| {
            let (dataset, corruption) = (value_name(&dataset), value_name(&corruption));
            format!("{dataset} with {corruption}, since it has no classes")
        };
        let (table, corruptions) = (value_name(&name), self.corruptions.as_slice());
        let bad_data = match name {
            _ if name.compares_corruptions() => corruptions,
            TableName::Heterogeneity => &[Corruption::Heterogeneity],
            _ => &[],
        };
        let impossible = bad_data.iter().filter(|&&corruption| !goes_with(dataset, corruption));
        let unasked =
            corruptions.iter().filter(|_| !name.compares_corruptions() && corruptions != CORRUPTIONS);
        let strangers =
            self.contenders.iter().filter(|&&one| !name.judges(one) && self.contenders != Contender::all());
        let about = || {
            let judged = Contender::value_variants().iter().copied().filter(|&one| name.judges(one));
            judged.map(Contender::name).collect::<Vec<_>>().join(", ")
        };
        impossible
            .map(|&corruption| cannot(corruption))
            .chain(unasked.map(|corruption| {
                format!("{} in the table {table}, which has bad data of its own", value_name(corruption))
            }))
            .chain(
                strangers
                    .map(|one| format!("{} in the table {table}, which is about {}", one.name(), about())),
            )
            .collect()
    }
}

fn goes_with(dataset: Dataset, corruption: Corruption) -> bool {
    corruption != Corruption::Heterogeneity || has_classes(dataset)
}

impl TableName {
    /// Whether its columns are kinds of bad data.
    fn compares_corruptions(self) -> bool {
        matches!(self, Self::Fairness | Self::Performance | Self::Recall)
    }

    /// Whether it has rows for a strategy.
    fn judges(self, contender: Contender) -> bool {
        match self {
            Self::Recall => contender.is_ours(),
            Self::Beta => contender == Contender::Evenhand,
            Self::Unstable => matches!(contender, Contender::Evenhand | Contender::EvenhandCalibrated),
            Self::Strategic => {
                matches!(contender, Contender::Evenhand | Contender::EvenhandCredit | Contender::Fedavg)
            }
            _ => true,
        }
    }
}

/// The plans of one table for one data set; none where the data set cannot answer.
pub fn plans(name: TableName, dataset: Dataset, scope: &Scope) -> Vec<Plan> {
    let contenders = scope.contenders.iter().copied().filter(|&one| name.judges(one)).collect();
    let asked = Asked { dataset, scope, contenders };
    let mut plans = match name {
        TableName::Fairness => asked.by_corruption(&[Measure::RhoLoss, Measure::RhoStaleness]),
        TableName::Performance => {
            let online = [Measure::OnlineMean, Measure::OnlineMin, Measure::OnlineMax, Measure::OnlineStd];
            asked.by_corruption(&online)
        }
        TableName::Recall => asked.by_corruption(&[Measure::Recall, Measure::RhoStanding]),
        TableName::Beta => vec![asked.beta()],
        TableName::Unstable => vec![asked.unstable()],
        TableName::Strategic => vec![asked.strategic()],
        TableName::Heterogeneity if !goes_with(dataset, Corruption::Heterogeneity) => Vec::new(),
        TableName::Heterogeneity => vec![asked.heterogeneity()],
        TableName::Time => vec![asked.time()],
        TableName::All => name.each().into_iter().flat_map(|name| plans(name, dataset, scope)).collect(),
    };
    plans.retain(|plan| !plan.rows.is_empty());
    plans
}

struct Asked<'a> {
    dataset: Dataset,
    scope: &'a Scope,
    /// Those of the scope that the table has rows for.
    contenders: Vec<Contender>,
}

impl Asked<'_> {
    fn setup(&self, corruption: Corruption, contender: Contender) -> Setup {
        let Scope { as_published, seed, questions, .. } = *self.scope;
        let published = Setup::published(self.dataset, corruption, contender, as_published, seed);
        Setup { questions, ..published }
    }

    /// One table a measure: a row a strategy, a column a corruption.
    fn by_corruption(&self, measures: &[Measure]) -> Vec<Plan> {
        let corruptions = self.scope.corruptions_of(self.dataset);
        if corruptions.is_empty() {
            return Vec::new();
        }
        let plan = |&measure: &Measure| {
            let heads = corruptions.iter().map(|&corruption| corruption_label(corruption));
            let row = |contender: Contender| {
                let ask = |&corruption| Question { setup: self.setup(corruption, contender), measure };
                (contender.label().to_owned(), corruptions.iter().map(ask).collect())
            };
            Plan {
                title: self.title(&measure.words(self.dataset)),
                heads: std::iter::once("strategy".to_owned()).chain(heads).collect(),
                rows: self.contenders.iter().copied().map(row).collect(),
                trade_off: None,
            }
        };
        measures.iter().map(plan).collect()
    }

    /// One row a setup, one column a measure.
    fn list(&self, title: &str, first: &str, rows: Vec<(String, Setup)>, measures: &[Measure]) -> Plan {
        let heads = measures.iter().map(|measure| measure.head(self.dataset));
        let ask = |setup: &Setup| {
            measures.iter().map(|&measure| Question { setup: setup.clone(), measure }).collect()
        };
        Plan {
            title: self.title(title),
            heads: std::iter::once(first.to_owned()).chain(heads).collect(),
            rows: rows.into_iter().map(|(name, setup)| (name, ask(&setup))).collect(),
            trade_off: None,
        }
    }

    fn title(&self, about: &str) -> String {
        format!("{}, {about}", dataset_label(self.dataset))
    }

    fn beta(&self) -> Plan {
        let published = self.setup(Corruption::FeatureNoise, Contender::Evenhand);
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
        Plan { trade_off: Some((0, measures.len() - 1)), ..plan }
    }

    fn unstable(&self) -> Plan {
        let mut rows = Vec::new();
        for &contender in &self.contenders {
            for level in AWAY {
                let setup = Setup { level, ..self.setup(Corruption::Unstable, contender) };
                rows.push((format!("{}, away up to {level}", contender.label()), setup));
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

    fn strategic(&self) -> Plan {
        let conducts = [
            ("steady", Corruption::FeatureNoise),
            ("RANDOM", Corruption::StrategicRandom),
            ("POISSON", Corruption::StrategicPoisson),
        ];
        let mut rows = Vec::new();
        for &contender in &self.contenders {
            for (name, corruption) in conducts {
                rows.push((format!("{}, {name}", contender.label()), self.setup(corruption, contender)));
            }
        }
        let measures = [Measure::RhoLoss, Measure::RhoStaleness, Measure::OnlineMean, Measure::OnlineStd];
        self.list("nodes that stop contributing", "strategy, nodes", rows, &measures)
    }

    fn heterogeneity(&self) -> Plan {
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

    fn time(&self) -> Plan {
        let measures = [Measure::SecondsTraining, Measure::SecondsFairness, Measure::Seconds];
        let rows = self.each(Corruption::FeatureNoise);
        self.list("running time, feature noise", "strategy", rows, &measures)
    }

    fn each(&self, corruption: Corruption) -> Vec<(String, Setup)> {
        let row = |one: Contender| (one.label().to_owned(), self.setup(corruption, one));
        self.contenders.iter().copied().map(row).collect()
    }
}
