//! One node's part of a stream, as a source of the production node.

use std::sync::Arc;

use evenhand_node::reading::InputBatch;
use evenhand_node::source::{Source, SourceError};

use super::{FalseReadings, SampleStream};

/// The measurements of one node, round by round: one "reading" is one round.
#[derive(Debug, Clone)]
pub struct NodeStream {
    stream: Arc<SampleStream>,
    node: usize,
    next: u32,
    pretended: Option<FalseReadings>,
}

impl NodeStream {
    /// Begins with the first round.
    pub fn new(stream: Arc<SampleStream>, node: usize) -> Self {
        Self { stream, node, next: 1, pretended: None }
    }

    /// The same with readings that are not true.
    pub fn pretending(self, pretended: Option<FalseReadings>) -> Self {
        Self { pretended, ..self }
    }
}

impl Source for NodeStream {
    /// The data of the next `count` rounds.
    fn read(&mut self, count: usize) -> Result<InputBatch, SourceError> {
        let last = self.stream.rounds();
        if self.next > last {
            return Err(SourceError::Ended);
        }
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        let end = self.next.saturating_add(count).min(last + 1);
        let read = self.stream.inputs(self.node, self.next..end, self.pretended);
        self.next = end;
        Ok(read)
    }
}
