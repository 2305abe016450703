//! Contributions measured at reference weights, where training changes nothing.
//!
//! Every node that is present is asked, in every round, for the gradient of its latest samples at weights θ_ref that do not
//! move. The gradient is measured and never applied. Its law depends on the node's data alone: not on the learning rate,
//! not on how good the model is by now, not on having been drawn. So contributions of stationary data are stationary, as
//! the paper's stop rule assumes and training violates.
//!
//! # Formula
//! With uᵢ,ₜ the gradient of node i in round t, whitened halfway in the directions in which all answers scatter most about their
//! node's mean, of length 1, and Aᵢ the sum of its own so far (decayed by λ a round):
//!
//! - the direction D = Σ wⱼAⱼ, robust by its weights ([`Direction`]), and D₋ᵢ the same without node i;
//! - the contribution φᵢ,ₜ = cos(uᵢ,ₜ, D₋ᵢ)/c, c the reliability of D: *precision*, how well one round's samples agree with
//!   everybody else's. U(S) = Σ_{i∈S} φᵢ,ₜ is additive, so φᵢ,ₜ is the Shapley value, exactly;
//! - the self-similarity sᵢ = mean of cos(uᵢ,ₜ, uᵢ,ₜ′) over rounds t ≠ t′. A gradient is μᵢ and noise, so pᵢ, the mean of φᵢ,ₜ by
//!   the present D, is √sᵢ·cos(μᵢ, D): the *bias* bᵢ = pᵢ/√sᵢ is what agreement would remain if the node sent all its data at once;
//! - the standing ψᵢ = pᵢ^¼·bᵢ^¾ = pᵢ/sᵢ^⅜, with the error that follows from what each round moved it by.
//!
//! Noise, missing values and few samples lower pᵢ; few classes and systematic faults lower bᵢ. Lengths count nowhere. An
//! answer that is missing, zero, or an earlier one again counts as 0; one answer repeated without end has sᵢ = 1, and so a bias
//! as low as its precision. Nodes that are alone have no others to agree with and earn nothing. Nodes that answer alike
//! beyond what their data have in common are [`Twins`].

mod decayed_mean;
mod direction;
mod evidence;
mod noise_subspace;
mod projection;
mod signature;
mod twins;

pub use direction::Direction;
pub use evidence::{NodeEvidence, ReferenceStanding};
pub use signature::Signature;
pub use twins::Twins;

use self::direction::DirectionPart;
use self::evidence::DirectedAnswer;
use self::noise_subspace::NoiseSubspace;
use super::FairnessError;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// The least reliability c of a direction by which nodes are measured: below it, more than three quarters of its square are noise.
const RELIABILITY_MIN: f64 = 0.5;

/// A node's answer to the request for a reference gradient.
#[derive(Debug, Clone, Copy)]
pub struct ReferenceAnswer<'a> {
    /// The node.
    pub node: usize,
    /// Its gradient, or its sketch; none if it was asked and did not answer.
    pub gradient: Option<&'a [f32]>,
}

/// The findings of one round of answers.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ReferenceRound {
    /// φᵢ,ₜ of each answer in the order given; empty in a round whose direction is not reliable yet.
    pub contributions: Vec<f64>,
    /// Nodes whose answer was an earlier one again, ascending.
    pub repeated: Vec<usize>,
}

/// Everything that reference gradients have shown so far; saved and restored by serde, it continues bit for bit.
///
/// # Example
/// ```
/// use evenhand_fairness::reference::{ReferenceAnswer, ReferenceMeasurement};
/// use rand::{RngExt, SeedableRng};
///
/// let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(1);
/// let mut measurement = ReferenceMeasurement::new(200.0);
/// for _ in 0..60 {
///     // One direction, and noise that grows with the node's number.
///     let gradients: Vec<Vec<f32>> = (0u8..4)
///         .map(|node| (0..600).map(|_| 1.0 + (1.0 + f32::from(node)) * rng.random_range(-4.0..4.0)).collect())
///         .collect();
///     let answers: Vec<ReferenceAnswer<'_>> =
///         gradients.iter().enumerate().map(|(node, g)| ReferenceAnswer { node, gradient: Some(g) }).collect();
///     measurement.measure(&answers)?;
/// }
/// let standings: Vec<f64> = (0..4).map(|node| measurement.standing(node).value).collect();
/// assert!(standings[0] > standings[3], "noise costs standing: {standings:?}");
/// # Ok::<(), evenhand_fairness::FairnessError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReferenceMeasurement {
    /// λ.
    decay: f64,
    nodes: Vec<NodeEvidence>,
    twins: Twins,
    noise: NoiseSubspace,
    /// The least self-similarity that is told from none: a sixteenth of the median.
    similarity_floor: f64,
}

impl ReferenceMeasurement {
    /// A measurement before its first round, with a memory of so many rounds: λ = 1 − 1/memory.
    pub fn new(memory_rounds: f64) -> Self {
        Self {
            decay: 1.0 - 1.0 / memory_rounds.max(1.0),
            nodes: Vec::new(),
            twins: Twins::default(),
            noise: NoiseSubspace::default(),
            similarity_floor: 0.0,
        }
    }

    /// Adds the answers of one round, nodes ascending.
    ///
    /// # Errors
    /// [`FairnessError`] names an answer of another length or with values that are not finite; nothing has changed then.
    pub fn measure(&mut self, answers: &[ReferenceAnswer<'_>]) -> Result<ReferenceRound, FairnessError> {
        self.check(answers)?;
        let nodes = answers.last().map_or(0, |answer| answer.node + 1).max(self.nodes.len());
        self.nodes.resize_with(nodes, NodeEvidence::default);
        let receive =
            |answer: &ReferenceAnswer<'_>| self.nodes[answer.node].receive(answer.gradient, &self.noise);
        let mut directed: Vec<DirectedAnswer> = answers.par_iter().map(receive).collect();
        let of = answers.iter().zip(&directed);
        let innovations =
            of.clone().filter_map(|(answer, directed)| Some((answer.node, directed.innovation.as_deref()?)));
        self.twins.observe(&innovations.collect::<Vec<_>>(), self.decay);
        let differences: Vec<Vec<f32>> =
            of.filter_map(|(answer, directed)| self.nodes[answer.node].difference(directed)).collect();
        self.noise.learn(&differences);
        for (answer, directed) in answers.iter().zip(&mut directed) {
            self.nodes[answer.node].accumulate(directed, self.decay);
        }
        let repeated = answers.iter().zip(&directed).filter(|(_, directed)| directed.repeated);
        let repeated = repeated.map(|(answer, _)| answer.node).collect();
        let contributions = self.agreements(answers, &directed);
        let influence =
            |((answer, directed), contribution): ((&ReferenceAnswer<'_>, &DirectedAnswer), &f64)| {
                self.nodes[answer.node].influence(directed, *contribution, self.similarity_floor)
            };
        let influences: Vec<f64> =
            answers.par_iter().zip(&directed).zip(&contributions).map(influence).collect();
        // What all have in common in a round is no error of the differences between nodes.
        let mean = influences.iter().sum::<f64>() / influences.len().max(1) as f64;
        for (answer, influence) in answers.iter().zip(&influences) {
            self.nodes[answer.node].credit(influence - mean, self.decay);
        }
        Ok(ReferenceRound { contributions, repeated })
    }

    /// φᵢ,ₜ of each answer; pᵢ of every node is renewed. Nothing while D is not reliable.
    fn agreements(&mut self, answers: &[ReferenceAnswer<'_>], directed: &[DirectedAnswer]) -> Vec<f64> {
        let groups = self.twins.groups(self.nodes.len());
        let mut part_of = vec![0; self.nodes.len()];
        for (part, group) in groups.iter().enumerate() {
            group.iter().for_each(|node| part_of[*node] = part);
        }
        let direction =
            Direction::of(groups.iter().map(|group| DirectionPart::of(group, &self.nodes)).collect());
        let reliability = direction.reliability();
        if reliability < RELIABILITY_MIN {
            return Vec::new();
        }
        let agreement = |(answer, directed): (&ReferenceAnswer<'_>, &DirectedAnswer)| {
            let agreement = |unit: &Vec<f32>| direction.agreement(part_of[answer.node], unit);
            directed.unit.as_ref().map_or(0.0, agreement) / reliability
        };
        let contributions = answers.par_iter().zip(directed).map(agreement).collect();
        let precision = |(node, evidence): (usize, &NodeEvidence)| {
            direction.mean_agreement(part_of[node], evidence) / reliability
        };
        let precisions: Vec<f64> = self.nodes.par_iter().enumerate().map(precision).collect();
        self.nodes.iter_mut().zip(precisions).for_each(|(node, precision)| node.set_precision(precision));
        let mut similarities: Vec<f64> = self.nodes.iter().map(NodeEvidence::similarity).collect();
        similarities.sort_unstable_by(f64::total_cmp);
        self.similarity_floor =
            similarities.get(similarities.len() / 2).map_or(0.0, |median| median.max(0.0) / 16.0);
        contributions
    }

    /// ψ of a node, with its parts.
    pub fn standing(&self, node: usize) -> ReferenceStanding {
        let standing = |evidence: &NodeEvidence| evidence.standing(self.similarity_floor);
        self.nodes.get(node).map_or_else(ReferenceStanding::default, standing)
    }

    /// Groups of nodes that answer alike.
    pub fn twins(&self) -> &Twins {
        &self.twins
    }

    /// Begins again with other reference weights: sums of gradients are dropped, what they have shown is kept.
    pub fn change_reference(&mut self) {
        self.nodes.iter_mut().for_each(NodeEvidence::forget_gradients);
        self.noise = NoiseSubspace::default();
    }

    /// True if every sum has so many values, or none.
    pub fn fits(&self, dimension: usize, nodes: usize) -> bool {
        self.nodes.len() <= nodes && self.nodes.iter().all(|node| node.fits(dimension))
    }

    fn check(&self, answers: &[ReferenceAnswer<'_>]) -> Result<(), FairnessError> {
        let known = self.nodes.iter().map(|node| node.sum().len()).find(|length| *length > 0);
        let mut expected = known;
        for answer in answers {
            let Some(gradient) = answer.gradient else { continue };
            let field = || format!("answers[{}]", answer.node);
            let expected = *expected.get_or_insert(gradient.len());
            if gradient.len() != expected {
                return Err(FairnessError::Length { field: field(), found: gradient.len(), expected });
            }
            if gradient.iter().any(|value| !value.is_finite()) {
                return Err(FairnessError::NotFinite { field: field() });
            }
        }
        Ok(())
    }
}
