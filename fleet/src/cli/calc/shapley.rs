//! `calc shapley`: contributions of one round.

use std::io::{BufRead, Write};

use evenhand_fairness::{
    ContributionConfig, Contributions, Device, Estimator, Measurement, Utility, UtilityState, Weighting,
};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use super::CalcError;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ShapleyQuestion {
    updates: Vec<Vec<f32>>,
    weights: Vec<f64>,
    #[serde(default)]
    utility: Utility,
    #[serde(default)]
    estimator: Estimator,
    samples: Option<usize>,
    standard_error: Option<f64>,
    #[serde(default)]
    weighting: Weighting,
    #[serde(default)]
    device: Device,
    /// The state of the utility before this round, as an answer gave it.
    state: Option<UtilityState>,
    direction_decay: Option<f64>,
    #[serde(default)]
    seed: u64,
}

#[derive(Serialize)]
struct ShapleyAnswer {
    contributions: Vec<f64>,
    /// Null where a single sample has no error estimate.
    standard_errors: Vec<f64>,
    /// The state of a utility that has one, for the next round.
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<UtilityState>,
}

/// Answers one question.
pub(super) fn run(stdin: impl BufRead, stdout: impl Write) -> Result<(), CalcError> {
    let question: ShapleyQuestion = super::read(stdin)?;
    let defaults = ContributionConfig::default();
    let config = ContributionConfig {
        utility: question.utility,
        estimator: question.estimator,
        samples: question.samples.unwrap_or(defaults.samples),
        standard_error: question.standard_error,
        weighting: question.weighting,
        device: question.device,
        direction_decay: question.direction_decay.unwrap_or(defaults.direction_decay),
    };
    let updates: Vec<&[f32]> = question.updates.iter().map(Vec::as_slice).collect();
    let mut rng = ChaCha8Rng::seed_from_u64(question.seed);
    let mut measurement = match question.state {
        Some(state) => Measurement::with_state(config, state)?,
        None => Measurement::new(config),
    };
    let Contributions { values, standard_errors } =
        measurement.measure(&updates, &question.weights, &mut rng)?;
    let state = measurement.is_stateful().then(|| measurement.state().clone());
    super::write(stdout, &ShapleyAnswer { contributions: values, standard_errors, state })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::super::CalcCommand::Shapley;
    use super::super::tests::{ask, refused};

    #[test]
    fn two_updates_at_right_angles_share_alike() {
        let answer = ask(
            &Shapley,
            r#"{"updates":[[1,0],[0,1]],"weights":[0.5,0.5],"utility":"cosine","estimator":"exact"}"#,
        );
        for value in answer["contributions"].as_array().unwrap() {
            assert!((value.as_f64().unwrap() - 0.5).abs() < 1e-12, "{answer}");
        }
        assert_eq!(answer["standard_errors"], serde_json::json!([0.0, 0.0]));
    }

    #[test]
    fn an_inner_product_is_as_by_hand() {
        // g_N = (2, 1): φ₀ = ½·⟨(4, 0), g_N⟩ = 4, φ₁ = ½·⟨(0, 2), g_N⟩ = 1.
        let answer =
            ask(&Shapley, r#"{"updates":[[4,0],[0,2]],"weights":[0.5,0.5],"utility":"inner-product"}"#);
        assert_eq!(answer["contributions"], serde_json::json!([4.0, 1.0]));
    }

    #[test]
    fn a_direction_is_as_by_hand() {
        // Half of (8, 0), and (1.5, 1): the first sees (4, 1), the second sees (5.5, 0), at right angles to it.
        let answer = ask(
            &Shapley,
            r#"{"updates":[[3,0],[0,2]],"weights":[0.5,0.5],"utility":"direction","state":{"direction":[8,0]},"direction_decay":0.5}"#,
        );
        let values = answer["contributions"].as_array().unwrap();
        assert!((values[0].as_f64().unwrap() - 0.5f64.sqrt()).abs() < 1e-12, "{answer}");
        assert_eq!(values[1], 0.0);
        assert_eq!(answer["state"], serde_json::json!({"direction": [5.5, 1.0]}));
    }

    #[test]
    fn the_seed_decides_a_sampled_answer() {
        let of = |seed: u32| {
            let question = format!(
                r#"{{"updates":[[1,2,0],[0,1,5],[3,1,1],[1,1,1]],"weights":[0.1,0.2,0.3,0.4],
                    "estimator":"permutation","samples":4,"seed":{seed}}}"#
            );
            ask(&Shapley, &question)
        };
        assert_eq!(of(1), of(1));
        assert_ne!(of(1), of(2));
    }

    #[test]
    fn one_sample_has_no_standard_error() {
        let answer = ask(&Shapley, r#"{"updates":[[1,2],[0,1]],"weights":[0.5,0.5],"samples":1}"#);
        assert_eq!(answer["standard_errors"], serde_json::json!([null, null]));
    }

    #[test]
    fn bad_questions_name_the_field() {
        for (question, error) in [
            (r#"{"updates":[[1,2],[3]],"weights":[0.5,0.5]}"#, "updates[1] has 1 values, expected 2"),
            (r#"{"updates":[[1,2],[3,4]],"weights":[0.5,-0.5]}"#, "weights[1] = -0.5 must be at least 0"),
            (r#"{"updates":[[1,2],[3,4]],"weights":[1]}"#, "weights has 1 values, expected 2"),
            (r#"{"updates":[],"weights":[]}"#, "updates is empty"),
            (r#"{"updates":[[1,NaN]],"weights":[1]}"#, "updates[0][1]: expected value"),
            (r#"{"updates":[[1,null]],"weights":[1]}"#, "updates[0][1]: invalid type: null, expected f32"),
            (r#"{"updates":[[1,1e39]],"weights":[1]}"#, "updates[0] is not finite"),
            (
                r#"{"updates":[[1]],"weights":[1],"utility":"fame"}"#,
                "utility: unknown variant `fame`, expected one of `inner-product`, `cosine`, `leave-one-out`, \
                 `projection`, `direction`",
            ),
            (
                r#"{"updates":[[1,2]],"weights":[1],"utility":"direction","state":{"direction":[1]}}"#,
                "direction has 1 values, expected 2",
            ),
            (r#"{"updates":[[1]],"weights":[1],"samples":0}"#, "samples = 0 must be at least 1"),
            (
                r#"{"updates":[[1]],"weights":[1],"state":{"direction":[1]}}"#,
                "the state is not one of the configured utility",
            ),
        ] {
            // What serde found wrong ends with its place.
            assert!(
                refused(&Shapley, question).starts_with(error),
                "{question}: {}",
                refused(&Shapley, question)
            );
        }
        assert!(
            refused(&Shapley, r#"{"updates":[[1]],"weights":[1],"wieghts":[1]}"#)
                .contains("unknown field `wieghts`")
        );
        assert!(refused(&Shapley, "updates").contains("the question on stdin is not understood"));
    }
}
