//! What nodes are ordered by, in words: it depends on who tells of the run.

use super::outcome::Teller;

/// The words for what nodes are ordered and coloured by, least first, and for their losses.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Words {
    pub(crate) symbol: &'static str,
    pub(crate) order: &'static str,
    pub(crate) axis: &'static str,
    pub(crate) least: &'static str,
    pub(crate) most: &'static str,
    pub(crate) least_on_top: &'static str,
    pub(crate) nodes: &'static str,
    pub(crate) loss: &'static str,
    pub(crate) loss_meaning: &'static str,
    pub(crate) unfinished: &'static str,
    pub(crate) repeat: &'static str,
}

impl Teller {
    pub(crate) fn words(self) -> &'static Words {
        match self {
            Teller::Fleet => &Words {
                symbol: "ζ",
                order: "data quality",
                axis: "data quality ζ (0 is clean)",
                least: "clean",
                most: "noisy",
                least_on_top: "the cleanest on top",
                nodes: "meters",
                loss: "online loss",
                loss_meaning: "Each node forecasts with the model it last received. Its online loss is that model's \
                               error on everybody's next, clean readings.",
                unfinished: "Interrupted",
                repeat: "To repeat this run",
            },
            Teller::Coordinator => &Words {
                symbol: "shortfall",
                order: "shortfall of standing",
                axis: "shortfall of standing (0 gave most, 1 gave least)",
                least: "gave most",
                most: "gave least",
                least_on_top: "who gave most on top",
                nodes: "nodes",
                loss: "reported loss",
                loss_meaning: "What nodes say of themselves: the error of their own forecasts since their last update, or else \
                               of the model on their batch, whenever they took part. Readings differ, so compare a node \
                               with itself.",
                unfinished: "Under way",
                repeat: "To make this report anew",
            },
        }
    }
}
