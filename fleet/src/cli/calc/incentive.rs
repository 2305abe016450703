//! `calc incentive`: from standings to probabilities and staleness, at a temperature or for a wanted staleness.

use std::io::{BufRead, Write};

use evenhand_fairness::{
    FairnessError, expected_staleness, inclusion_probabilities, mean_staleness, sampling_probabilities,
    selection_probability, temperature_for_band, temperature_for_worst_staleness, wait_bound,
};
use serde::{Deserialize, Serialize, Serializer};

use super::CalcError;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct IncentiveQuestion {
    standings: Vec<f64>,
    k: u32,
    temperature: Option<f64>,
    worst_staleness: Option<f64>,
    band: Option<(f64, f64)>,
}

#[derive(Serialize)]
struct IncentiveAnswer {
    temperature: ExtendedNumber,
    /// All temperatures that keep the band.
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature_range: Option<(ExtendedNumber, ExtendedNumber)>,
    sampling_probability: Vec<f64>,
    selection_probability: Vec<f64>,
    expected_staleness: Vec<ExtendedNumber>,
    mean_staleness: Vec<ExtendedNumber>,
    /// Of the sampler `credit`: the share of rounds in which each node is drawn.
    inclusion_probability: Vec<f64>,
    /// Of the sampler `credit`: the rounds between two draws, at most.
    longest_wait: Vec<ExtendedNumber>,
}

/// A number that may be infinite, for which JSON has no number: it is written "inf".
#[derive(Clone, Copy)]
struct ExtendedNumber(f64);

impl Serialize for ExtendedNumber {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_infinite() { serializer.serialize_str("inf") } else { serializer.serialize_f64(self.0) }
    }
}

/// Answers one question.
pub(super) fn run(stdin: impl BufRead, stdout: impl Write) -> Result<(), CalcError> {
    let IncentiveQuestion { standings, k, temperature, worst_staleness, band } = super::read(stdin)?;
    if standings.is_empty() {
        return Err(FairnessError::Empty { field: "standings" }.into());
    }
    if k == 0 {
        return Err(FairnessError::OutOfRange { field: "k".into(), found: 0.0, wanted: "at least 1" }.into());
    }
    let (temperature, range) = match (temperature, worst_staleness, band) {
        (Some(temperature), None, None) if temperature > 0.0 => (temperature, None),
        (Some(found), None, None) => {
            return Err(
                FairnessError::OutOfRange { field: "temperature".into(), found, wanted: "above 0" }.into()
            );
        }
        (None, Some(wanted), None) => (temperature_for_worst_staleness(&standings, k, wanted)?, None),
        (None, None, Some(band)) => {
            let found = temperature_for_band(&standings, k, band)?;
            (found.best, Some((ExtendedNumber(found.low), ExtendedNumber(found.high))))
        }
        _ => return Err(CalcError::Refused("give one of temperature, worst_staleness and band".into())),
    };
    let sampling = sampling_probabilities(&standings, temperature);
    let of = |f: fn(f64, u32) -> f64| sampling.iter().map(move |probability| f(*probability, k));
    let inclusion = inclusion_probabilities(&sampling, k as usize);
    let bound = wait_bound(standings.len(), k as usize);
    let wait = |probability: &f64| if *probability > 0.0 { bound / probability } else { f64::INFINITY };
    let answer = IncentiveAnswer {
        temperature: ExtendedNumber(temperature),
        temperature_range: range,
        selection_probability: of(selection_probability).collect(),
        expected_staleness: of(expected_staleness).map(ExtendedNumber).collect(),
        mean_staleness: of(mean_staleness).map(ExtendedNumber).collect(),
        longest_wait: inclusion.iter().map(wait).map(ExtendedNumber).collect(),
        inclusion_probability: inclusion,
        sampling_probability: sampling,
    };
    super::write(stdout, &answer)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::CalcCommand::Incentive;
    use super::super::tests::{ask, refused};
    use serde_json::{Value, json};

    fn numbers(value: &Value) -> Vec<f64> {
        value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
    }

    #[test]
    fn equal_standings_are_as_by_hand() {
        let answer = ask(&Incentive, r#"{"standings":[1,1],"k":2,"temperature":0.1}"#);
        let wanted = [
            ("sampling_probability", 0.5),
            ("selection_probability", 0.75),
            ("expected_staleness", 4.0 / 9.0),
            ("mean_staleness", 1.0 / 3.0),
        ];
        for (field, wanted) in wanted {
            assert!(
                numbers(&answer[field]).iter().all(|found| (found - wanted).abs() < 1e-12),
                "{field}: {answer}"
            );
        }
        assert_eq!(answer["temperature"], json!(0.1));
    }

    #[test]
    fn a_wanted_worst_staleness_is_kept() {
        let answer = ask(&Incentive, r#"{"standings":[0.1,0.2,0.4],"k":1,"worst_staleness":50}"#);
        assert!((numbers(&answer["expected_staleness"])[0] - 50.0).abs() < 1e-9, "{answer}");
    }

    #[test]
    fn the_credit_sampler_bounds_every_wait() {
        // Three equal nodes, one draw a round: π = 1/3 each, B = H₂ = 3/2.
        let answer = ask(&Incentive, r#"{"standings":[1,1,1],"k":1,"temperature":1}"#);
        for (field, wanted) in [("inclusion_probability", 1.0 / 3.0), ("longest_wait", 4.5)] {
            let found = numbers(&answer[field]);
            assert!(found.iter().all(|found| (found - wanted).abs() < 1e-12), "{field}: {answer}");
        }
    }

    #[test]
    fn a_band_gives_its_range() {
        let answer = ask(&Incentive, r#"{"standings":[0.1,0.2,0.4],"k":1,"band":[0.1,5]}"#);
        let range = answer["temperature_range"].as_array().unwrap();
        assert!(range[0].as_f64().unwrap() < answer["temperature"].as_f64().unwrap());
        assert_eq!(range[1], "inf");
    }

    #[test]
    fn the_infinite_has_a_word() {
        let answer = ask(&Incentive, r#"{"standings":[0,1],"k":1,"temperature":0.000001}"#);
        assert_eq!(answer["expected_staleness"], json!(["inf", 0.0]));
    }

    #[test]
    fn bad_questions_name_the_field() {
        for (question, error) in [
            (json!({"standings": [], "k": 1, "temperature": 1}), "standings is empty"),
            (json!({"standings": [1], "k": 0, "temperature": 1}), "k = 0 must be at least 1"),
            (json!({"standings": [1], "k": 1, "temperature": 0}), "temperature = 0 must be above 0"),
            (json!({"standings": [1], "k": 1}), "give one of temperature, worst_staleness and band"),
            (
                json!({"standings": [1], "k": 1, "temperature": 1, "band": [1, 2]}),
                "give one of temperature, worst_staleness and band",
            ),
            (
                json!({"standings": [1, 2], "k": 1, "band": [2, 1]}),
                "band[0] = 2 must be a number that is at most band[1]",
            ),
        ] {
            assert_eq!(refused(&Incentive, &question.to_string()), error, "{question}");
        }
        assert!(
            refused(&Incentive, r#"{"standings":[1],"k":-1,"temperature":1}"#)
                .starts_with("k: invalid value")
        );
        assert!(
            refused(&Incentive, r#"{"standings":[1,NaN],"k":1,"temperature":1}"#)
                .starts_with("standings[1]: ")
        );
        let unreachable = refused(&Incentive, r#"{"standings":[1,2],"k":1,"worst_staleness":1}"#);
        assert!(
            unreachable.starts_with("worst_staleness = 1 is out of reach: even equal probabilities leave 2 "),
            "{unreachable}"
        );
    }
}
