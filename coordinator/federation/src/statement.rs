//! Statements: what nodes are told of their standing, so seldom that nobody can try out what pays.

use evenhand_protocol::message::Account;
use serde::{Deserialize, Serialize};

use crate::closed::NodeRound;

/// Nodes are told their standing once in so many rounds. The difference of two standings, one round apart, would be what
/// that round's answer was worth: a node could learn which answers count.
const STATEMENT_ROUNDS: u32 = 20;

/// The standing that a node was told last.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
struct Statement {
    standing: f64,
    standing_error: f64,
    sampling_probability: f64,
}

/// By index: the last statement of each node; all zero before the first.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(crate) struct Statements(Vec<Statement>);

impl Statements {
    /// The accounts of all nodes after a round: their draws as they are, their standings as of the last statement.
    pub(crate) fn accounts(&mut self, round: u32, nodes: &[NodeRound]) -> Vec<Account> {
        self.0.resize_with(nodes.len(), Statement::default);
        if round.is_multiple_of(STATEMENT_ROUNDS) {
            for (statement, node) in self.0.iter_mut().zip(nodes) {
                *statement = Statement {
                    standing: node.standing,
                    standing_error: node.standing_error,
                    sampling_probability: node.sampling_probability,
                };
            }
        }
        let told = |(node, statement): (&NodeRound, &Statement)| Account {
            standing: statement.standing,
            standing_error: statement.standing_error,
            sampling_probability: statement.sampling_probability,
            ..node.account(round)
        };
        nodes.iter().zip(&self.0).map(told).collect()
    }

    /// Whether they can belong to so many members.
    pub(crate) fn is_sound(&self, members: usize) -> bool {
        self.0.len() <= members
    }
}
