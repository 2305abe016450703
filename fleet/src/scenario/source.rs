//! One node's part of a stream, as a source of the production node.

use std::sync::Arc;

use evenhand_node::reading::InputBatch;
use evenhand_node::source::{Source, SourceError};

use super::SampleStream;

/// The measurements of one node, round by round: one "reading" is one round.
#[derive(Debug, Clone)]
pub struct NodeStream {
    stream: Arc<SampleStream>,
    node: usize,
    next: u32,
}

impl NodeStream {
    /// Begins with the first round.
    pub fn new(stream: Arc<SampleStream>, node: usize) -> Self {
        Self { stream, node, next: 1 }
    }
}

impl Source for NodeStream {
    /// The rows of the next `count` rounds.
    fn read(&mut self, count: usize) -> Result<InputBatch, SourceError> {
        let last = self.stream.rounds();
        if self.next > last {
            return Err(SourceError::Ended);
        }
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        let end = self.next.saturating_add(count).min(last + 1);
        let rows = (self.next..end).flat_map(|round| self.stream.rows(self.node, round)).collect();
        self.next = end;
        Ok(InputBatch::Rows(rows))
    }
}
