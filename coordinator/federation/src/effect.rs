//! What a federation wants done, in the order in which it must be done.

use std::sync::Arc;

use evenhand_protocol::identity::{Digest, NodeId};
use evenhand_protocol::message::{Account, Manifest, Order, Refusal};

use super::draw::TrainingTask;
use super::record::RoundEvidence;
use super::save::SavedFederation;

/// One thing for the shell to do. Within one step, what must be durable comes before what is announced.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// A round is over: for the log, the report, the dashboard. It belongs to the `Persist` after it.
    Record(Box<RoundEvidence>),
    /// Make this durable before anything that follows is done.
    Persist(Box<SavedFederation>),
    /// Tell everybody, or the one that has just arrived, how the federation stands.
    Manifest {
        /// The one; `None` for everybody, retained.
        to: Option<NodeId>,
        /// What to tell.
        manifest: Manifest,
    },
    /// Tell a node how it stands, retained.
    Account {
        /// Whom.
        node: NodeId,
        /// How.
        account: Account,
    },
    /// Send an order to one node, on its own topic and nowhere else.
    Publish {
        /// Whom.
        node: NodeId,
        /// What.
        dispatch: OrderPayload,
    },
}

/// An order on its way; [`OrderPayload::order`] makes the message of it.
#[derive(Debug, Clone, PartialEq)]
pub enum OrderPayload {
    /// A round's work, with the model. Only a draw can make one.
    Train(TrainingTask),
    /// The ONNX file, which is no secret.
    Graph {
        /// Its digest.
        graph: Digest,
        /// Its bytes.
        onnx: Arc<[u8]>,
    },
    /// An update, or a birth, that did not count.
    Refused {
        /// The round it was for.
        round: u32,
        /// Why.
        refusal: Refusal,
    },
}

impl OrderPayload {
    /// The order as it travels; copies model or file.
    pub fn order(&self) -> Order {
        match self {
            Self::Train(task) => Order::Train(task.to_train()),
            Self::Graph { graph, onnx } => Order::Graph { graph: *graph, onnx: onnx.to_vec() },
            Self::Refused { round, refusal } => Order::Refused { round: *round, refusal: *refusal },
        }
    }
}
