//! Aggregation of a collected round into the next model.

use evenhand_protocol::identity::Digest;

use crate::collected::CollectedRound;
use crate::config::TrainingConfig;
use crate::evaluation::Evaluation;
use crate::failed::FailureCause;
use crate::guard::{Intervention, ModelGuard};
use crate::index::NodeIndex;
use crate::member::Member;
use crate::model::ModelState;
use crate::roster::Roster;
use crate::strategy::{AggregatedModel, AggregationInput, Strategy};
use crate::weights::Weights;

/// Digests of the models after a round.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct ModelStep {
    pub(crate) before: Digest,
    pub(crate) after: Digest,
    pub(crate) node_models_after: Option<Digest>,
    pub(crate) intervention: Option<Intervention>,
}

/// Moves the models on to those after the round, past the guard if there is one, if these are finite; leaves them alone
/// without arrivals.
pub(crate) fn aggregate(
    round: &CollectedRound,
    evaluation: &Evaluation,
    model: &mut ModelState,
    strategy: &mut dyn Strategy,
    roster: &Roster,
    training: &TrainingConfig,
    guard: Option<&mut ModelGuard>,
) -> Result<ModelStep, FailureCause> {
    let before = model.latest.digest();
    let mut intervention = None;
    if !round.arrivals.is_empty() {
        let mut next = next_model(round, evaluation, model, strategy, roster, training);
        if let Some(guard) = guard {
            let (arrived, wanted) = (round.arrivals.len(), round.draw.asked().len());
            let guarded = guard
                .review(&model.latest, next.latest, round.loss(), arrived, wanted)
                .ok_or(FailureCause::Diverged { round: round.draw.round() })?;
            (next.latest, intervention) = (guarded.model, guarded.intervention);
        }
        if !(next.latest.is_finite() && next.node_models.iter().all(Weights::is_finite)) {
            return Err(FailureCause::Diverged { round: round.draw.round() });
        }
        model.advance(next);
    }
    let (after, node_models_after) = (model.latest.digest(), model.node_models_digest());
    Ok(ModelStep { before, after, node_models_after, intervention })
}

fn next_model(
    round: &CollectedRound,
    evaluation: &Evaluation,
    model: &ModelState,
    strategy: &mut dyn Strategy,
    roster: &Roster,
    training: &TrainingConfig,
) -> AggregatedModel {
    let nodes = round.nodes();
    let asked: Vec<NodeIndex> = round.draw.asked().iter().map(|asked| asked.node).collect();
    let losses: Vec<f64> = round.arrivals.iter().map(|arrival| arrival.update.loss().into()).collect();
    let removed: Vec<NodeIndex> = roster.indices_where(Member::is_removed).collect();
    // A node that was removed after its update was in still counts for this round.
    let gone = removed.iter().filter(|node| nodes.binary_search(node).is_err()).count();
    let enrolled = roster.members().len() - gone;
    let missing_as_zero = training.count_missing_as_zero;
    let arrived_share = if missing_as_zero { nodes.len() as f64 / enrolled as f64 } else { 1.0 };
    strategy.aggregate(&AggregationInput {
        latest: &model.latest,
        node_models: &model.node_models,
        members: roster.members().len(),
        removed: &removed,
        asked: &asked,
        nodes: &nodes,
        updates: &round.updates(),
        weights: &round.weights(),
        losses: &losses,
        contributions: evaluation.contributions.as_ref().map(|found| found.values.as_slice()),
        learning_rate: training.learning_rate,
        arrived_share,
    })
}
