//! The federation's graph, as seen by one node.

use std::sync::Arc;

use evenhand_protocol::identity::Digest;

/// Properties of a model that the core decides by.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelInfo {
    /// Digest of the graph and its parameter order.
    pub digest: Digest,
    /// Number of trainable parameters.
    pub parameters: usize,
    /// The weights in the file, which are no secret.
    pub initial: Arc<[f32]>,
    /// The personal weights in the file; empty for a model without a personal part.
    pub personal: Arc<[f32]>,
    /// The shape of the input; `None` where any length will do. The first dimension counts samples.
    pub input_shape: Vec<Option<usize>>,
}

impl ModelInfo {
    /// The shape in which this model takes samples of `sample` shape: as they are, or flattened to a row.
    pub fn accepts(&self, sample: &[usize]) -> Option<Vec<usize>> {
        let (_, wanted) = self.input_shape.split_first()?;
        let fits = |shape: &[usize]| {
            shape.len() == wanted.len()
                && shape
                    .iter()
                    .zip(wanted)
                    .all(|(length, wanted)| wanted.is_none_or(|wanted| wanted == *length))
        };
        let flat = vec![sample.iter().product()];
        [sample.to_vec(), flat].into_iter().find(|shape| fits(shape))
    }
}

/// Availability of the graph that the federation trains.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum GraphState {
    /// No manifest was received.
    Unknown,
    /// The driver is looking for it, or loading it.
    Loading(Digest),
    /// It was requested from the coordinator.
    Requested(Digest),
    /// It is loaded and takes this node's samples in `sample` shape.
    Ready { info: ModelInfo, sample: Vec<usize> },
    /// This node cannot train it.
    Unfit(Digest),
}

impl GraphState {
    pub(super) fn digest(&self) -> Option<Digest> {
        match self {
            GraphState::Unknown => None,
            GraphState::Loading(digest) | GraphState::Requested(digest) | GraphState::Unfit(digest) => {
                Some(*digest)
            }
            GraphState::Ready { info, .. } => Some(info.digest),
        }
    }
}
