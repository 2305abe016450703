//! Measures of a trial, as tables and plots show them.

use evenhand_fairness::measures::{Summary, pearson};

use super::record::TrialRecord;
use crate::data::Dataset;
use crate::sim::{NodeFigures, RunFigures, rho_standing};

/// One measure of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Measure {
    /// Pearson of ζ with the online loss.
    RhoLoss,
    /// Pearson of ζ with the mean staleness.
    RhoStaleness,
    /// The online score of the mean node.
    OnlineMean,
    /// The lowest online score of a node.
    OnlineMin,
    /// The highest online score of a node.
    OnlineMax,
    /// The deviation of online scores over nodes: equality.
    OnlineStd,
    /// The round after which exploring ended.
    TAlpha,
    /// Share of the noisier half that is found in the lower half of the standings.
    Recall,
    /// Pearson of data quality, −ζ, with the standings: what rewards that follow them can reach.
    RhoStanding,
    /// Pearson of the standings with the worth of nodes by retraining.
    RhoWorth,
    /// Pearson of ζ with the online accuracy or MAPE.
    RhoScore,
    /// The deviation of online losses over nodes.
    LossStd,
    /// The highest score of a node over the last ten rounds.
    FinalMax,
    /// The deviation of scores over the last ten rounds.
    FinalStd,
    /// Share of windows of 50 rounds in which contributions may be normal.
    Normality,
    /// The mean p of that test.
    NormalityP,
    /// The online loss of the node that the experiment is about.
    WatchedLoss,
    /// Accuracy of always naming the most frequent class, or MAPE of repeating the last value.
    Naive,
    /// MAPE of always naming the mean.
    NaiveMean,
    /// Share of the coordinator's time in closing rounds.
    FairnessShare,
    /// Nodes that received the model, over all rounds.
    Communications,
    /// Time of all nodes in training.
    SecondsTraining,
    /// Time of the coordinator in contributions, stop rule and draws.
    SecondsFairness,
    /// Time of the whole trial, online evaluation included.
    Seconds,
}

impl Measure {
    /// The measures of an experiment's table.
    pub const SHOWN: [Self; 10] = [
        Self::RhoStanding,
        Self::RhoStaleness,
        Self::RhoLoss,
        Self::OnlineMean,
        Self::OnlineMin,
        Self::OnlineMax,
        Self::OnlineStd,
        Self::TAlpha,
        Self::Recall,
        Self::Seconds,
    ];

    /// The number in one trial, where it has one.
    pub fn of(self, record: &TrialRecord) -> Option<f64> {
        let figures = &record.figures;
        let online = |part: fn(Summary) -> f64| score(figures).map(part);
        match self {
            Self::RhoLoss => figures.rho_loss,
            Self::RhoStaleness => figures.rho_staleness,
            Self::OnlineMean => online(|score| score.mean),
            Self::OnlineMin => online(|score| score.min),
            Self::OnlineMax => online(|score| score.max),
            Self::OnlineStd => online(|score| score.std),
            // A strategy that never explores has no end of it.
            Self::TAlpha => figures.t_alpha.filter(|&round| round > 0).map(f64::from),
            Self::Recall => figures.recall,
            // None where contributions were never measured.
            Self::RhoStanding => figures.recall.and_then(|_| rho_standing(&figures.nodes)),
            Self::RhoWorth => record.rho_worth(),
            Self::RhoScore => rho_score(figures),
            Self::LossStd => figures.online_loss_std,
            Self::FinalMax => final_scores(record).map(|scores| scores.max),
            Self::FinalStd => final_scores(record).map(|scores| scores.std),
            Self::Normality => record.details.normality.map(|test| test.not_rejected),
            Self::NormalityP => record.details.normality.map(|test| test.p_mean),
            Self::WatchedLoss => {
                record.details.watched.and_then(|node| figures.nodes.get(node)).map(|node| node.online_loss)
            }
            Self::Naive => record.details.naive.majority.or(record.details.naive.persistence),
            Self::NaiveMean => record.details.naive.mean,
            Self::FairnessShare => {
                let all = figures.seconds_fairness + figures.seconds_training;
                (all > 0.0).then(|| figures.seconds_fairness / all)
            }
            Self::Communications => Some(figures.nodes.iter().map(|node| f64::from(node.drawn)).sum()),
            Self::SecondsTraining => Some(figures.seconds_training),
            Self::SecondsFairness => Some(figures.seconds_fairness),
            Self::Seconds => Some(record.seconds),
        }
    }

    /// True if it is a correlation with ζ, beside which the control at level 0 is shown.
    pub fn is_correlation(self) -> bool {
        matches!(self, Self::RhoStanding | Self::RhoStaleness | Self::RhoLoss | Self::RhoScore)
    }

    /// The head of its column.
    pub fn head(self, dataset: Dataset) -> String {
        let score = score_name(dataset);
        match self {
            Self::RhoLoss => "ρ(loss)".into(),
            Self::RhoStaleness => "ρ(staleness)".into(),
            Self::OnlineMean => format!("{score} mean"),
            Self::OnlineMin => "min".into(),
            Self::OnlineMax => "max".into(),
            Self::OnlineStd => "std".into(),
            Self::TAlpha => "T_α".into(),
            Self::Recall => "recall".into(),
            Self::RhoStanding => "ρ(standing)".into(),
            Self::RhoWorth => "ρ(worth)".into(),
            Self::RhoScore => format!("ρ({score})"),
            Self::LossStd => "std of loss".into(),
            Self::FinalMax => format!("final {score}, max"),
            Self::FinalStd => format!("final {score}, std"),
            Self::Normality => "normal".into(),
            Self::NormalityP => "p".into(),
            Self::WatchedLoss => "its loss".into(),
            Self::Naive => if dataset.has_classes() { "majority" } else { "last value" }.into(),
            Self::NaiveMean => "mean value".into(),
            Self::FairnessShare => "share".into(),
            Self::Communications => "communications".into(),
            Self::SecondsTraining => "training, s".into(),
            Self::SecondsFairness => "closing rounds, s".into(),
            Self::Seconds => "trial, s".into(),
        }
    }

    /// Its description, for the middle of a sentence.
    pub fn description(self, dataset: Dataset) -> String {
        let score = score_name(dataset);
        match self {
            Self::RhoLoss => "fairness: Pearson of ζ with the online loss".into(),
            Self::RhoStaleness => "fairness: Pearson of ζ with the mean staleness".into(),
            Self::OnlineMean => format!("online {score}, mean over nodes"),
            Self::OnlineMin => format!("online {score}, lowest of a node"),
            Self::OnlineMax => format!("online {score}, highest of a node"),
            Self::OnlineStd => format!("equality: deviation of online {score} over nodes"),
            Self::TAlpha => "stopping iteration T_α".into(),
            Self::Recall => "share of the noisier half found in the lower half of the standings".into(),
            Self::RhoStanding => "standings: Pearson of −ζ with them at the end".into(),
            Self::RhoWorth => "standings: Pearson of worth by retraining with them at the end".into(),
            Self::RhoScore => format!("fairness: Pearson of ζ with the online {score}"),
            Self::LossStd => "equality: deviation of the online loss over nodes".into(),
            Self::FinalMax => format!("{score} over the last ten rounds, highest of a node"),
            Self::FinalStd => format!("equality: deviation over nodes of {score} over the last ten rounds"),
            Self::Normality => "share of windows of 50 rounds in which normality is not rejected".into(),
            Self::NormalityP => "mean p of the test of normality".into(),
            Self::WatchedLoss => "online loss of the node that the experiment is about".into(),
            Self::Naive if dataset.has_classes() => "accuracy of naming the most frequent class".into(),
            Self::Naive => "MAPE of repeating the last value".into(),
            Self::NaiveMean => "MAPE of naming the mean".into(),
            Self::FairnessShare => "share of the time that closing rounds takes".into(),
            Self::Communications => "models that were sent to nodes".into(),
            Self::SecondsTraining => "seconds of training, all nodes".into(),
            Self::SecondsFairness => "seconds the coordinator spent closing rounds".into(),
            Self::Seconds => "seconds of a trial".into(),
        }
    }

    /// Decimals that are shown.
    pub fn decimals(self) -> usize {
        match self {
            Self::TAlpha | Self::SecondsTraining | Self::Seconds => 1,
            Self::SecondsFairness | Self::Recall => 2,
            Self::OnlineStd | Self::FinalStd | Self::LossStd | Self::WatchedLoss => 4,
            Self::Communications => 0,
            _ => 3,
        }
    }
}

/// Pearson of ζ with the online score; none where nothing was drawn.
fn rho_score(figures: &RunFigures) -> Option<f64> {
    figures.t_alpha?;
    let of = |node: &NodeFigures| Some((node.zeta, node.online_accuracy.or(node.online_mape)?));
    let (zetas, scores): (Vec<f64>, Vec<f64>) = figures.nodes.iter().filter_map(of).unzip();
    pearson(&zetas, &scores)
}

/// Over nodes: the score over the last ten rounds.
fn final_scores(record: &TrialRecord) -> Option<Summary> {
    let scores: Vec<f64> = record.details.final_scores.iter().flatten().copied().collect();
    Summary::of(&scores)
}

/// The online score over nodes: accuracy where the data have classes, otherwise the mean absolute percentage error.
pub fn score(figures: &RunFigures) -> Option<Summary> {
    figures.online_accuracy.or(figures.online_mape)
}

/// The name of [`score`] on a data set.
pub fn score_name(dataset: Dataset) -> &'static str {
    if dataset.has_classes() { "accuracy" } else { "MAPE" }
}
