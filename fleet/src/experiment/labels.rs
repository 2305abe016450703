//! Names of choices and numbers in titles and columns.

use crate::data::Dataset;
use crate::names::value_name;
use crate::scenario::Corruption;

/// A data set's name in titles.
pub(crate) fn dataset_label(dataset: Dataset) -> &'static str {
    match dataset {
        Dataset::Mnist => "MNIST",
        Dataset::Cifar10 => "CIFAR-10",
        Dataset::Pathmnist => "PathMNIST",
        Dataset::Hft => "HFT",
        Dataset::Electricity => "Electricity",
        Dataset::Meters => "Meters",
        Dataset::DayAhead => "Day-ahead",
        Dataset::Synthetic => "Synthetic",
    }
}

/// A corruption in titles and heads of columns.
pub(crate) fn corruption_label(corruption: Corruption) -> String {
    value_name(&corruption).replace('-', " ")
}

/// A number for people: 1/150 rather than 0.006666666666666667.
pub(crate) fn number_label(value: &str) -> String {
    let inverse = value.parse::<f64>().map_or(0.0, |value| 1.0 / value);
    let long = value.len() > 8 && (inverse - inverse.round()).abs() < 1e-9 * inverse;
    if long { format!("1/{}", inverse.round()) } else { value.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_fractions_are_shown_as_fractions() {
        let shown =
            [(1.0 / 150.0).to_string(), "0.9".into(), "12".into(), "0.002".into(), "0.0123456789".into()];
        assert_eq!(shown.map(|value| number_label(&value)), ["1/150", "0.9", "12", "0.002", "0.0123456789"]);
    }
}
