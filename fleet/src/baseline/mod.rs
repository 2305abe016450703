//! Strategies by name: Evenhand and the baselines it is compared with.

mod concurrent;
mod cons;
mod fedavg;
mod fgfl;
mod gog;
mod oracle;
mod published_step;
mod qffl;
mod standalone;

#[cfg(test)]
mod tests;

use evenhand_federation::strategy::{Evenhand, Strategy};

pub use self::concurrent::Concurrent;
pub use self::cons::Cons;
pub use self::fedavg::FedAvg;
pub use self::fgfl::Fgfl;
pub use self::gog::{Gog, Validation};
pub use self::oracle::Oracle;
pub use self::published_step::PublishedStep;
pub use self::qffl::QFfl;
pub use self::standalone::Standalone;

/// A strategy that simulations can run.
#[derive(Debug, Clone, Copy)]
pub struct RegisteredStrategy {
    /// Its name on the command line and in records.
    pub name: &'static str,
    /// The strategy before its first round.
    pub create: fn() -> Box<dyn Strategy>,
}

/// All strategies, Evenhand first: one line a strategy.
pub const STRATEGIES: [RegisteredStrategy; 8] = [
    RegisteredStrategy { name: "evenhand", create: || Box::new(Evenhand) },
    RegisteredStrategy { name: "fedavg", create: || Box::new(FedAvg) },
    RegisteredStrategy { name: "q-ffl", create: || Box::new(QFfl::default()) },
    RegisteredStrategy { name: "fgfl", create: || Box::new(Fgfl::default()) },
    RegisteredStrategy { name: "gog", create: || Box::new(Gog::default()) },
    RegisteredStrategy { name: "standalone", create: || Box::new(Standalone) },
    RegisteredStrategy { name: "cons", create: || Box::new(Cons::default()) },
    RegisteredStrategy { name: "concurrent", create: || Box::new(Concurrent::default()) },
];

/// The strategy of a name, if there is one.
pub fn strategy(name: &str) -> Option<RegisteredStrategy> {
    STRATEGIES.into_iter().find(|strategy| strategy.name == name)
}

impl PartialEq for RegisteredStrategy {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}
