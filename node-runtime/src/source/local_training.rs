//! Training by acting, for sources that are environments.

use crate::core::{Trained, TrainingJob};

/// An agent in an environment, which learns from what it does with the model.
///
/// Only drivers that hold the source and the node on one thread use it, such as [`InlineNode`](crate::inline::InlineNode):
/// acting and learning take turns.
pub trait LocalTraining {
    /// The update of a job, learned by acting from its weights on; none if the round has to be declined. The samples of the
    /// job are the source's own and need not be used.
    fn train(&mut self, job: &TrainingJob) -> Option<Trained>;
}
