//! Which model a node can run.

use evenhand_protocol::identity::Digest;

/// What the core must know of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct Card {
    /// Digest of the graph and its parameter order.
    pub digest: Digest,
    /// Number of trainable parameters.
    pub parameters: usize,
    /// The shape of the input; `None` where any length will do. The first dimension counts samples.
    pub input_shape: Vec<Option<usize>>,
}

impl Card {
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

/// How far a node is with the graph its federation trains.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Graph {
    /// No manifest said which.
    Unknown,
    /// The driver is looking for it, or loading it.
    Sought(Digest),
    /// The coordinator was asked for it.
    Asked(Digest),
    /// It is loaded and takes this node's samples in `sample` shape.
    Held { card: Card, sample: Vec<usize> },
    /// It is not for this node.
    Unfit(Digest),
}

impl Graph {
    pub(super) fn digest(&self) -> Option<Digest> {
        match self {
            Graph::Unknown => None,
            Graph::Sought(digest) | Graph::Asked(digest) | Graph::Unfit(digest) => Some(*digest),
            Graph::Held { card, .. } => Some(card.digest),
        }
    }
}
