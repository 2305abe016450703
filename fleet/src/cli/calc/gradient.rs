//! `calc gradient`: loss and gradient of an ONNX model on one batch.
//!
//! `{"inputs": […flat…], "shape": […], "targets": […]}` becomes `{"loss": …, "parameters": …, "gradient_norm": …,
//! "tensors": [{"name": …, "shape": […], "gradient": […flat…]}]}`. Targets are classes for `cross-entropy` and `nll`, and
//! values for `mse`, `huber` and `pinball`.

use std::io::{BufRead, Write};
use std::path::PathBuf;

use evenhand_models::{Batch, LoadOptions, Loss, Model, ModelError, Targets, Trainer};
use serde::{Deserialize, Serialize};

use super::CalcError;

/// Flags of `calc gradient`
#[derive(Debug, clap::Args)]
pub(crate) struct GradientArgs {
    /// The ONNX file
    #[arg(long, value_name = "FILE")]
    pub model: PathBuf,
    /// Loss that is minimised: mse, cross-entropy, nll, huber or pinball
    #[arg(long, default_value = "mse")]
    pub loss: Loss,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GradientQuestion {
    inputs: Vec<f32>,
    shape: Vec<usize>,
    targets: Vec<f64>,
}

#[derive(Serialize)]
struct GradientAnswer<'a> {
    loss: f32,
    parameters: usize,
    gradient_norm: f64,
    tensors: Vec<TensorGradient<'a>>,
}

#[derive(Serialize)]
struct TensorGradient<'a> {
    name: &'a str,
    shape: &'a [usize],
    gradient: &'a [f32],
}

/// Answers one question.
pub(super) fn run(args: &GradientArgs, stdin: impl BufRead, stdout: impl Write) -> Result<(), CalcError> {
    let refused = |error: ModelError| CalcError::Refused(error.to_string());
    let loss = args.loss;
    let file = std::fs::read(&args.model)
        .map_err(|error| CalcError::Refused(format!("cannot read {}: {error}", args.model.display())))?;
    let model = Model::load(&file, &LoadOptions::default()).map_err(refused)?;
    let question: GradientQuestion = super::read(stdin)?;
    let targets = match loss {
        Loss::Mse | Loss::Huber | Loss::Pinball => {
            Targets::Values(question.targets.iter().map(|&v| v as f32).collect())
        }
        Loss::CrossEntropy | Loss::Nll => Targets::Classes(classes(&question.targets)?),
    };
    let batch = Batch { inputs: question.inputs, shape: question.shape, targets };
    let weights = model.initial_weights();
    let found = Trainer::new(&model).gradient(&weights, &batch, loss).map_err(refused)?;
    if !found.loss.is_finite() || found.gradient.iter().any(|v| !v.is_finite()) {
        return Err(CalcError::Refused("the loss or its gradient is not finite".to_owned()));
    }
    let answer = GradientAnswer {
        loss: found.loss,
        parameters: model.dim(),
        gradient_norm: found.gradient.iter().map(|&v| f64::from(v) * f64::from(v)).sum::<f64>().sqrt(),
        tensors: model
            .parameters()
            .iter()
            .map(|parameter| TensorGradient {
                name: &parameter.name,
                shape: &parameter.shape,
                gradient: &found.gradient[parameter.offset..parameter.offset + parameter.len()],
            })
            .collect(),
    };
    super::write(stdout, &answer)
}

fn classes(targets: &[f64]) -> Result<Vec<u32>, CalcError> {
    let class = |&target: &f64| match target {
        class if class >= 0.0 && class <= f64::from(u32::MAX) && class.fract() == 0.0 => Ok(class as u32),
        other => Err(CalcError::Refused(format!("target {other} is not a class; classes count from 0"))),
    };
    targets.iter().map(class).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::io::Write;

    use super::{GradientArgs, run};

    /// A shipped model as a file, so that the calculator reads it as a user's.
    fn ask(model: &[u8], loss: &str, question: &str) -> Result<serde_json::Value, String> {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(model).unwrap();
        let args = GradientArgs { model: file.path().to_owned(), loss: loss.parse().unwrap() };
        let mut answer = Vec::new();
        run(&args, question.as_bytes(), &mut answer).map_err(|error| error.to_string())?;
        Ok(serde_json::from_slice(&answer).unwrap())
    }

    #[test]
    fn answers_have_the_documented_shape() {
        let inputs = vec!["0.25"; 2 * 4 * 5].join(",");
        let question = format!(r#"{{"inputs":[{inputs}],"shape":[2,4,5],"targets":[0.5,-0.5]}}"#);
        let answer = ask(evenhand_models::shipped::ELECTRICITY_RNN, "mse", &question).unwrap();
        assert_eq!(answer["parameters"], 1921);
        let tensors = answer["tensors"].as_array().unwrap();
        let names: Vec<&str> = tensors.iter().map(|tensor| tensor["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["rnn.W", "rnn.R", "rnn.B", "fc.weight", "fc.bias"]);
        assert_eq!(tensors[1]["shape"], serde_json::json!([1, 40, 40]));
        let squares = tensors.iter().flat_map(|tensor| tensor["gradient"].as_array().unwrap());
        let norm = squares.map(|value| value.as_f64().unwrap().powi(2)).sum::<f64>().sqrt();
        assert!((answer["gradient_norm"].as_f64().unwrap() - norm).abs() < 1e-6 * norm);
        // Both samples have the same input, so the error is smallest in the middle, where the bias's slope is the output.
        let output = tensors[4]["gradient"][0].as_f64().unwrap() / 2.0;
        assert!((answer["loss"].as_f64().unwrap() - (output * output + 0.25)).abs() < 1e-5);
    }

    #[test]
    fn refusals_say_what_is_wrong() {
        let model = evenhand_models::shipped::HFT_MLP;
        let inputs = vec!["0"; 144].join(",");
        let question =
            |targets: &str| format!(r#"{{"inputs":[{inputs}],"shape":[1,144],"targets":[{targets}]}}"#);
        assert!(ask(model, "nll", &question("2")).is_ok());
        assert!(ask(model, "nll", &question("3")).unwrap_err().contains("column 3 of 3"));
        assert!(ask(model, "nll", &question("0.5")).unwrap_err().contains("target 0.5 is not a class"));
        assert!(ask(model, "mse", &question("1")).unwrap_err().contains("1 values for 3 elements"));
        assert!(ask(model, "nll", "{}").unwrap_err().contains("missing field"));
        assert!(ask(b"\x00", "nll", &question("1")).unwrap_err().contains("not an ONNX file"));
    }
}
