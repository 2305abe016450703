//! What each table of the paper asks.

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

    /// A sentence for each kind of bad data that was asked for and that a data set cannot have.
    pub(super) fn left_out(&self, dataset: Dataset) -> impl Iterator<Item = String> {
        let cannot = self.corruptions.iter().filter(move |&&corruption| !goes_with(dataset, corruption));
        cannot.map(move |corruption| {
            let (dataset, corruption) = (value_name(&dataset), value_name(corruption));
            format!("{dataset} with {corruption}, since it has no classes")
        })
    }
}

fn goes_with(dataset: Dataset, corruption: Corruption) -> bool {
    corruption != Corruption::Heterogeneity || has_classes(dataset)
}

/// The plans of one table for one data set; none where the data set cannot answer.
pub fn plans(name: TableName, dataset: Dataset, scope: &Scope) -> Vec<Plan> {
    let asked = Asked { dataset, scope };
    match name {
        TableName::Fairness => asked.by_corruption(&[Measure::RhoLoss, Measure::RhoStaleness], |_| true),
        TableName::Performance => {
            let online = [Measure::OnlineMean, Measure::OnlineMin, Measure::OnlineMax, Measure::OnlineStd];
            asked.by_corruption(&online, |_| true)
        }
        TableName::Recall => {
            asked.by_corruption(&[Measure::Recall, Measure::RhoStanding], Contender::is_ours)
        }
        TableName::Beta => vec![asked.beta()],
        TableName::Unstable => vec![asked.unstable()],
        TableName::Strategic => vec![asked.strategic()],
        TableName::Heterogeneity if !goes_with(dataset, Corruption::Heterogeneity) => Vec::new(),
        TableName::Heterogeneity => vec![asked.heterogeneity()],
        TableName::Time => vec![asked.time()],
        TableName::All => name.each().into_iter().flat_map(|name| plans(name, dataset, scope)).collect(),
    }
}

struct Asked<'a> {
    dataset: Dataset,
    scope: &'a Scope,
}

impl Asked<'_> {
    fn setup(&self, corruption: Corruption, contender: Contender) -> Setup {
        let Scope { as_published, seed, questions, .. } = *self.scope;
        let published = Setup::published(self.dataset, corruption, contender, as_published, seed);
        Setup { questions, ..published }
    }

    fn contenders(&self, wanted: impl Fn(Contender) -> bool) -> impl Iterator<Item = Contender> {
        self.scope.contenders.iter().copied().filter(move |&contender| wanted(contender))
    }

    /// One table a measure: a row a strategy, a column a corruption.
    fn by_corruption(&self, measures: &[Measure], wanted: impl Fn(Contender) -> bool + Copy) -> Vec<Plan> {
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
                rows: self.contenders(wanted).map(row).collect(),
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
        for contender in
            self.contenders(|one| matches!(one, Contender::Evenhand | Contender::EvenhandCalibrated))
        {
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
        let judged = |one| matches!(one, Contender::Evenhand | Contender::EvenhandCredit | Contender::Fedavg);
        let mut rows = Vec::new();
        for contender in self.contenders(judged) {
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
        self.contenders(|_| true).map(row).collect()
    }
}
