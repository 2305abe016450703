//! Strategies by name: Evenhand and the baselines it is compared with.

use evenhand_federation::strategy::StrategyKind;

/// A strategy that simulations can run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegisteredStrategy {
    /// Its name on the command line and in records.
    pub name: &'static str,
    /// The strategy.
    pub kind: StrategyKind,
}

/// All strategies, Evenhand first: one line a strategy.
pub const STRATEGIES: [RegisteredStrategy; 7] = [
    RegisteredStrategy { name: "evenhand", kind: StrategyKind::Evenhand },
    RegisteredStrategy { name: "fedavg", kind: StrategyKind::FedAvg },
    RegisteredStrategy { name: "q-ffl", kind: StrategyKind::QFfl },
    RegisteredStrategy { name: "fgfl", kind: StrategyKind::Fgfl },
    RegisteredStrategy { name: "gog", kind: StrategyKind::Gog },
    RegisteredStrategy { name: "standalone", kind: StrategyKind::Standalone },
    RegisteredStrategy { name: "cons", kind: StrategyKind::Cons },
];

/// The strategy of a name, if there is one.
pub fn strategy(name: &str) -> Option<RegisteredStrategy> {
    STRATEGIES.into_iter().find(|strategy| strategy.name == name)
}
