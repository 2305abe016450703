//! The strategies under comparison, as tables name and order them.

use clap::ValueEnum;

use super::names::value_name;
use super::setup::Contender;

impl Contender {
    /// What `all` means: each of our choices once against the paper's, and every baseline.
    pub fn all() -> Vec<Self> {
        let wanted = |&contender: &Self| contender != Self::EvenhandCalibratedCredit;
        Self::value_variants().iter().copied().filter(wanted).collect()
    }

    /// Ours: the paper's mechanism, whatever its stop rule and sampler.
    pub fn is_ours(self) -> bool {
        self < Self::Fedavg
    }

    /// Its place in tables, and so its colour in plots.
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
            Self::EvenhandWithoutReplacement => "Evenhand, no replacement",
            Self::EvenhandCredit => "Evenhand, credit",
            Self::EvenhandCalibrated => "Evenhand, calibrated",
            Self::EvenhandCalibratedCredit => "Evenhand, calibrated, credit",
            Self::Fedavg => "FedAvg",
            Self::QFfl => "q-FFL",
            Self::Fgfl => "FGFL",
            Self::Gog => "GoG",
            Self::Standalone => "Standalone",
            Self::Cons => "Cons",
        }
    }
}

/// Some contenders, as the command line names them: `all`, one name, or several with commas.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contenders(pub Vec<Contender>);

impl std::str::FromStr for Contenders {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut wanted = Vec::new();
        for name in text.split(',').map(str::trim) {
            match name {
                "all" => wanted.extend(Contender::all()),
                name => wanted.push(Contender::from_str(name, false).map_err(|_| unknown(name))?),
            }
        }
        wanted.sort();
        wanted.dedup();
        Ok(Self(wanted))
    }
}

fn unknown(name: &str) -> String {
    let names: Vec<String> = Contender::value_variants().iter().map(value_name).collect();
    format!("no strategy is called {name:?}; there are {}, and all", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_put_in_the_order_of_tables_without_doubles() {
        let listed: Contenders = "fedavg, evenhand-credit,fedavg".parse().expect("known names");
        assert_eq!(listed.0, [Contender::EvenhandCredit, Contender::Fedavg]);
        let all: Contenders = "all".parse().expect("a known name");
        assert_eq!((all.0.len(), all.0[0]), (10, Contender::Evenhand));
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_known_ones() {
        let error = "evenhnd".parse::<Contenders>().expect_err("no such name");
        assert!(error.contains("\"evenhnd\"") && error.contains("q-ffl") && error.contains("all"), "{error}");
    }
}
