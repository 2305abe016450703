//! Variants under comparison: strategies with their stop rules and samplers.

use clap::ValueEnum;

use evenhand_fairness::SamplerKind;
use evenhand_federation::{Policy, StopRuleKind};

use crate::names::value_name;

/// A strategy with its stop rule and sampler, by its name on the command line; in the order of tables, ours first.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, ValueEnum, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "kebab-case")]
pub enum Variant {
    /// The product as it ships: measured in every round at reference weights, drawn by credit
    Evenhand,
    /// The paper's stop rule and sampler
    Paper,
    /// The paper's stop rule; the sampler of the published code
    PaperWithoutReplacement,
    /// The paper's stop rule; draws without luck
    PaperCredit,
    /// The calibrated stop rule; the paper's sampler
    PaperCalibrated,
    /// The calibrated stop rule; draws without luck
    PaperCalibratedCredit,
    /// All nodes are drawn with equal probability (McMahan et al. 2017)
    Fedavg,
    /// Nodes with higher losses weigh more, q = 0.1 (Li et al. 2020)
    QFfl,
    /// Sparser updates for those who contribute less (Xu et al. 2021)
    Fgfl,
    /// Nodes are drawn by the Shapley values of their last updates (Nagalapatti and Narayanam 2021)
    Gog,
    /// Every node learns alone
    Standalone,
    /// A penalty on differences between nodes' losses, λ = 0.3 (Lin et al. 2023)
    Cons,
    /// Draws by ζ itself without luck, which no federation knows: what draws can do at best
    Oracle,
    /// Nodes are drawn by their standings from the first round on, and only those drawn are measured
    Concurrent,
}

impl Variant {
    /// The variants of `all`: each of our choices once against the paper's, and every baseline.
    pub fn all() -> Vec<Self> {
        let wanted = |&variant: &Self| {
            !matches!(variant, Self::PaperCalibratedCredit | Self::Oracle | Self::Concurrent)
        };
        Self::value_variants().iter().copied().filter(wanted).collect()
    }

    /// True if it is Evenhand or the paper's mechanism, with any stop rule and sampler.
    pub fn is_ours(self) -> bool {
        self < Self::Fedavg
    }

    /// True if its standings come from the utility of updates.
    pub fn has_utility(self) -> bool {
        self.is_ours() && self != Self::Evenhand
    }

    /// Its position in tables, and so its colour in plots.
    pub fn position(self) -> usize {
        self as usize
    }

    /// The name on the command line and in file names.
    pub fn name(self) -> String {
        value_name(&self)
    }

    /// The name in tables and plots.
    pub fn label(self) -> &'static str {
        match self {
            Self::Evenhand => "Evenhand",
            Self::Paper => "paper",
            Self::PaperWithoutReplacement => "paper, no replacement",
            Self::PaperCredit => "paper, credit",
            Self::PaperCalibrated => "paper, calibrated",
            Self::PaperCalibratedCredit => "paper, calibrated, credit",
            Self::Fedavg => "FedAvg",
            Self::QFfl => "q-FFL",
            Self::Fgfl => "FGFL",
            Self::Gog => "GoG",
            Self::Standalone => "Standalone",
            Self::Cons => "Cons",
            Self::Oracle => "oracle",
            Self::Concurrent => "concurrent",
        }
    }
}

impl Variant {
    /// The name of its strategy.
    pub(super) fn strategy(self) -> &'static str {
        match self {
            Self::Evenhand
            | Self::Paper
            | Self::PaperWithoutReplacement
            | Self::PaperCredit
            | Self::PaperCalibrated
            | Self::PaperCalibratedCredit => "evenhand",
            Self::Fedavg => "fedavg",
            Self::QFfl => "q-ffl",
            Self::Fgfl => "fgfl",
            Self::Gog => "gog",
            Self::Standalone => "standalone",
            Self::Cons => "cons",
            Self::Oracle => "oracle",
            Self::Concurrent => "concurrent",
        }
    }

    /// Its policy.
    pub(super) fn policy(self) -> Policy {
        if self == Self::Evenhand { Policy::Continuous } else { Policy::Paper }
    }

    /// Its stop rule.
    pub(super) fn stop_rule(self) -> StopRuleKind {
        match self {
            Self::PaperCalibrated | Self::PaperCalibratedCredit => StopRuleKind::Calibrated,
            _ => StopRuleKind::Paper,
        }
    }

    /// Its sampler: ours as named, or as the published code draws; the baselines draw k distinct nodes.
    pub(super) fn sampler(self, as_code: bool) -> SamplerKind {
        match self {
            Self::Evenhand | Self::PaperCredit | Self::PaperCalibratedCredit | Self::Oracle => {
                SamplerKind::Credit
            }
            Self::Paper | Self::PaperCalibrated if !as_code => SamplerKind::WithReplacement,
            _ => SamplerKind::WithoutReplacement,
        }
    }
}

/// Some variants, as the command line names them: `all`, one name, or several with commas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variants(pub Vec<Variant>);

impl std::str::FromStr for Variants {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut wanted = Vec::new();
        for name in text.split(',').map(str::trim) {
            match name {
                "all" => wanted.extend(Variant::all()),
                name => wanted.push(Variant::from_str(name, false).map_err(|_| unknown(name))?),
            }
        }
        wanted.sort();
        wanted.dedup();
        Ok(Self(wanted))
    }
}

fn unknown(name: &str) -> String {
    let names: Vec<String> = Variant::value_variants().iter().map(value_name).collect();
    format!("no strategy is called {name:?}; there are {}, and all", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_put_in_the_order_of_tables_without_doubles() {
        let listed: Variants = "fedavg, paper-credit,fedavg".parse().expect("known names");
        assert_eq!(listed.0, [Variant::PaperCredit, Variant::Fedavg]);
        let all: Variants = "all".parse().expect("a known name");
        assert_eq!((all.0.len(), all.0[0]), (11, Variant::Evenhand));
    }

    #[test]
    fn an_unknown_name_is_refused_with_the_known_ones() {
        let error = "evenhnd".parse::<Variants>().expect_err("no such name");
        assert!(error.contains("\"evenhnd\"") && error.contains("q-ffl") && error.contains("all"), "{error}");
    }
}
