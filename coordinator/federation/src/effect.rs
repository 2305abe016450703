//! Effects of a step, in the order in which they must be carried out.

use std::sync::Arc;

use evenhand_protocol::identity::{Digest, NodeId};
use evenhand_protocol::message::{Account, Manifest, MeasureRequest, Order, Refusal};

use crate::closed::RoundEvidence;
use crate::draw::TrainingTask;
use crate::save::SavedFederation;

/// One action for the driver. Within one step, what must be durable comes before what is announced.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Record a closed round, together with the `Persist` that follows.
    Record(Box<RoundEvidence>),
    /// Make this state durable before any later effect is carried out.
    Persist(Box<SavedFederation>),
    /// Publish the state of the federation.
    Manifest {
        /// The node that has just come online; `None` for everybody, retained.
        to: Option<NodeId>,
        /// The message.
        manifest: Manifest,
    },
    /// Publish a node's account to that node, retained.
    Account {
        /// The recipient.
        node: NodeId,
        /// The message.
        account: Account,
    },
    /// Send an order to one node, on its own topic and nowhere else.
    Publish {
        /// The recipient.
        node: NodeId,
        /// The order.
        payload: OrderPayload,
    },
}

/// An order before encoding; [`OrderPayload::order`] makes the message.
#[derive(Debug, Clone, PartialEq)]
pub enum OrderPayload {
    /// A round's work, with the model. Only a draw can make one.
    Train(TrainingTask),
    /// The request for a reference gradient, without a model.
    Measure(MeasureRequest),
    /// The ONNX file, which is no secret.
    Graph {
        /// Its digest.
        graph: Digest,
        /// Its bytes.
        onnx: Arc<[u8]>,
    },
    /// An update or a join request that was refused.
    Refused {
        /// The round it was for.
        round: u32,
        /// The reason.
        refusal: Refusal,
    },
}

impl OrderPayload {
    /// The order as a message; copies the model or the file.
    pub fn order(&self) -> Order {
        match self {
            Self::Train(task) => Order::Train(task.to_train()),
            Self::Measure(request) => Order::Measure(request.clone()),
            Self::Graph { graph, onnx } => Order::Graph { graph: *graph, onnx: onnx.to_vec() },
            Self::Refused { round, refusal } => Order::Refused { round: *round, refusal: *refusal },
        }
    }
}

/// The effects of a step by kind, so that durable ones precede announcements.
#[derive(Default)]
pub(crate) struct EffectBuffer {
    pub(crate) closed: Vec<RoundEvidence>,
    pub(crate) persist: bool,
    pub(crate) announcements: Vec<Effect>,
    /// The manifest has changed: it goes to everybody, before the tasks that belong to it.
    pub(crate) manifest: bool,
    pub(crate) tasks: Vec<Effect>,
}

impl EffectBuffer {
    pub(crate) fn publish(&mut self, node: NodeId, payload: OrderPayload) {
        self.announcements.push(Effect::Publish { node, payload });
    }

    /// Marks the state as changed: it is saved, then announced.
    pub(crate) fn state_changed(&mut self) {
        self.persist = true;
        self.manifest = true;
    }
}
