//! Losses, local epochs, frozen parameters, dropout and hidden states.
#![allow(clippy::unwrap_used)]

mod support;

use evenhand_models::{
    Batch, Engine, InferenceEngine, LoadOptions, Loss, Model, ModelError, QUANTILES, Sgd, Targets, Trainer,
    shipped,
};
use support::{
    Attr, DeclaredDim, OnnxBuilder, load, on_every_backend, predictor, shipped_model, trainer, uniform,
    with_every_inference_engine,
};

on_every_backend!(
    losses_are_pytorchs,
    pinball_is_the_loss_of_quantiles,
    pinball_gradients_are_those_of_finite_differences,
    pinball_is_least_at_the_quantile,
    targets_that_do_not_fit_are_refused,
    weights_and_inputs_that_do_not_fit_are_refused,
    local_epochs_are_gradient_descent_with_momentum,
    sgd_options_out_of_range_are_refused,
    only_listed_parameters_are_trained,
    weights_may_be_initializers_constants_or_inputs_with_defaults,
    dropout_is_seeded_and_only_while_training,
    hidden_states_go_in_and_out,
);

/// y = x·w with one weight a column, so that outputs are chosen by inputs.
fn diagonal(weights: &[f32]) -> Model {
    let mut b = OnnxBuilder::new(17);
    b.input("x", &[DeclaredDim::Free("batch"), DeclaredDim::Fixed(weights.len() as i64)]);
    b.floats("w", &[weights.len()], weights).node("Mul", &["x", "w"], &["y"], &[]).output("y");
    load(&b)
}

fn gradient<B: Engine>(
    model: &Model,
    inputs: &[f32],
    shape: &[usize],
    targets: Targets,
    loss: Loss,
) -> (f32, Vec<f32>) {
    let batch = Batch { inputs: inputs.to_vec(), shape: shape.to_vec(), targets };
    let found = trainer::<B>(model).gradient(&model.initial_weights(), &batch, loss).unwrap();
    (found.loss, found.gradient)
}

fn assert_near(found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len());
    for (a, b) in found.iter().zip(expected) {
        assert!((a - b).abs() < 1e-6, "{found:?} instead of {expected:?}");
    }
}

/// By hand: outputs (1, −2), targets (0.5, 1), errors (0.5, −3).
fn losses_are_pytorchs<B: Engine>() {
    let model = diagonal(&[1.0, 1.0]);
    let (x, shape) = ([1.0, -2.0], [1, 2]);
    let (loss, slopes) = gradient::<B>(&model, &x, &shape, Targets::Values(vec![0.5, 1.0]), Loss::Mse);
    assert_near(&[loss], &[(0.25 + 9.0) / 2.0]);
    assert_near(&slopes, &[0.5, 6.0]);
    let (loss, slopes) = gradient::<B>(&model, &x, &shape, Targets::Values(vec![0.5, 1.0]), Loss::Huber);
    assert_near(&[loss], &[(0.125 + 2.5) / 2.0]);
    assert_near(&slopes, &[0.25, 1.0]);
    let (loss, slopes) = gradient::<B>(&model, &x, &shape, Targets::Classes(vec![1]), Loss::Nll);
    assert_near(&[loss], &[2.0]);
    assert_near(&slopes, &[0.0, 2.0]);
    let (loss, slopes) = gradient::<B>(&model, &x, &shape, Targets::Classes(vec![1]), Loss::CrossEntropy);
    let (p, total) = (1.0f32.exp(), 1.0f32.exp() + (-2.0f32).exp());
    assert_near(&[loss], &[2.0 + total.ln()]);
    assert_near(&slopes, &[p / total, 2.0 * (1.0 - (-2.0f32).exp() / total)]);
    // Q-learning: only the chosen column of each sample counts, and the mean is over samples.
    let chosen = Targets::Chosen { columns: vec![1, 0], values: vec![1.0, 0.5] };
    let (loss, slopes) = gradient::<B>(&model, &[1.0, -2.0, 1.0, 4.0], &[2, 2], chosen, Loss::Huber);
    assert_near(&[loss], &[(2.5 + 0.125) / 2.0]);
    assert_near(&slopes, &[0.25, 1.0]);
}

/// A model of one weight a column with these quantile levels.
fn quantile_model(weights: &[f32], levels: &str) -> Result<Model, ModelError> {
    let mut b = OnnxBuilder::new(17);
    b.input("x", &[DeclaredDim::Free("batch"), DeclaredDim::Fixed(weights.len() as i64)]);
    b.floats("w", &[weights.len()], weights).node("Mul", &["x", "w"], &["y"], &[]).output("y");
    b.metadata(QUANTILES, levels);
    Model::load(&b.bytes(), &LoadOptions::default())
}

/// By hand: outputs (1, 2, 3), targets (2, 2, 0), levels (0.1, 0.5, 0.9): below, at and above the target.
fn pinball_is_the_loss_of_quantiles<B: Engine>() {
    let model = quantile_model(&[1.0, 1.0, 1.0], "0.1, 0.5,0.9").unwrap();
    assert_eq!(model.quantiles(), Some(&[0.1, 0.5, 0.9][..]));
    let (x, shape) = ([1.0, 2.0, 3.0], [1, 3]);
    let targets = Targets::Values(vec![2.0, 2.0, 0.0]);
    let (loss, slopes) = gradient::<B>(&model, &x, &shape, targets.clone(), Loss::Pinball);
    assert_near(&[loss], &[(0.1 + 0.0 + 0.3) / 3.0]);
    assert_near(&slopes, &[-0.1 / 3.0, 0.0, 0.1 * 3.0 / 3.0]);
    // Only the chosen column counts, with its level.
    let chosen = Targets::Chosen { columns: vec![2], values: vec![0.0] };
    let (loss, slopes) = gradient::<B>(&model, &x, &shape, chosen, Loss::Pinball);
    assert_near(&[loss], &[0.3]);
    assert_near(&slopes, &[0.0, 0.0, 0.3]);
    // Levels that are not named divide (0, 1) evenly: a quarter, a half, three quarters.
    let (loss, _) = gradient::<B>(&diagonal(&[1.0, 1.0, 1.0]), &x, &shape, targets, Loss::Pinball);
    assert_near(&[loss], &[(0.25 + 0.0 + 0.75) / 3.0]);
    let median = Targets::Values(vec![3.0]);
    let (loss, _) = gradient::<B>(&diagonal(&[1.0]), &[1.0], &[1, 1], median, Loss::Pinball);
    assert_near(&[loss], &[1.0]);
}

/// On the shipped model with moved weights; targets are at least 0.05 from the outputs, so no step crosses the kink.
fn pinball_gradients_are_those_of_finite_differences<B: Engine>() {
    let model = shipped_model("load-quantiles");
    let mut seed = 41;
    let weights: Vec<f32> = model.initial_weights().iter().map(|w| w + 0.1 * uniform(&mut seed)).collect();
    let inputs: Vec<f32> = (0..4 * 41).map(|_| uniform(&mut seed)).collect();
    let mut trainer = trainer::<B>(&model);
    let (output, _) = trainer.forward(&weights, &inputs, &[4, 41]).unwrap();
    let side = |value: &f32| {
        let distance = uniform(&mut seed);
        value + distance.signum() * (0.05 + distance.abs())
    };
    let targets = Targets::Values(output.iter().map(side).collect());
    let batch = Batch { inputs, shape: vec![4, 41], targets };
    let found = trainer.gradient(&weights, &batch, Loss::Pinball).unwrap().gradient;
    let scale = found.iter().fold(0.0f32, |max, slope| max.max(slope.abs()));
    assert!(scale > 0.01, "the gradient is nearly zero everywhere");
    let mut loss = |index: usize, change: f32| {
        let mut moved = weights.clone();
        moved[index] += change;
        trainer.evaluate(&moved, &batch, Loss::Pinball).unwrap().loss
    };
    for (index, slope) in found.iter().enumerate().step_by(7) {
        // Relu bends too: differences on both sides, of which one is free of its kink.
        let h = 0.004;
        let (above, here, below) = (loss(index, h), loss(index, 0.0), loss(index, -h));
        let error = ((above - here) / h - slope).abs().min(((here - below) / h - slope).abs());
        assert!(error < 2e-3 * scale.max(0.1), "weight {index}: {slope}, off by {error}");
    }
}

/// Gradient descent on a constant finds the empirical quantiles of 0, 1, …, 99.
fn pinball_is_least_at_the_quantile<B: Engine>() {
    let model = quantile_model(&[50.0, 50.0, 50.0], "0.1,0.5,0.9").unwrap();
    let targets = (0..100).flat_map(|value| [value as f32; 3]).collect();
    let batch = Batch { inputs: vec![1.0; 300], shape: vec![100, 3], targets: Targets::Values(targets) };
    let sgd = Sgd { epochs: 300, learning_rate: 10.0, momentum: 0.0, batch_size: None };
    let start = model.initial_weights();
    let moved = trainer::<B>(&model).local_epochs(&start, &batch, Loss::Pinball, &sgd).unwrap().gradient;
    for ((start, moved), expected) in start.iter().zip(&moved).zip([9.5, 49.5, 89.5]) {
        assert!((start - moved - expected).abs() <= 1.0, "{} instead of {expected}", start - moved);
    }
}

#[test]
fn quantile_levels_that_do_not_fit_get_a_sentence() {
    for (levels, why) in [
        ("0.1,0.5", "2 levels for 3 output columns"),
        ("0.1,half,0.9", "not a list of numbers"),
        ("", "not a list of numbers"),
        ("0,0.5,0.9", "0 is not between 0 and 1"),
        ("0.1,0.5,NaN", "NaN is not between 0 and 1"),
        ("0.1,0.9,0.5", "the levels do not ascend"),
        ("0.1,0.5,0.5", "the levels do not ascend"),
    ] {
        let error = quantile_model(&[1.0; 3], levels).unwrap_err().to_string();
        let expected = format!(
            "metadata `evenhand.quantiles` = `{levels}`: {why}; name one level between 0 and 1 for each output column, \
             ascending, as in `0.1,0.5,0.9`"
        );
        assert_eq!(error, expected);
    }
}

fn targets_that_do_not_fit_are_refused<B: Engine>() {
    let model = diagonal(&[1.0, 1.0]);
    let refuse = |targets, loss| {
        let batch = Batch { inputs: vec![1.0; 4], shape: vec![2, 2], targets };
        match trainer::<B>(&model).gradient(&[1.0, 1.0], &batch, loss) {
            Err(ModelError::Targets { why, .. }) => why,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(refuse(Targets::Values(vec![0.0; 3]), Loss::Mse), "3 values for 4 elements");
    assert_eq!(refuse(Targets::Classes(vec![0]), Loss::Nll), "1 targets for 2 samples");
    assert_eq!(refuse(Targets::Classes(vec![0, 2]), Loss::CrossEntropy), "column 2 of 2");
    assert_eq!(
        refuse(Targets::Classes(vec![0, 1]), Loss::Huber),
        "huber needs values, or values of chosen columns"
    );
    assert_eq!(refuse(Targets::Values(vec![0.0; 4]), Loss::Nll), "nll needs classes");
    assert_eq!(
        refuse(Targets::Classes(vec![0, 1]), Loss::Pinball),
        "pinball needs values, or values of chosen columns"
    );
    let few = Targets::Chosen { columns: vec![0, 1], values: vec![1.0] };
    assert_eq!(refuse(few, Loss::Mse), "1 values for 2 samples");
}

fn weights_and_inputs_that_do_not_fit_are_refused<B: Engine>() {
    let model = shipped_model("electricity-rnn");
    let batch = |shape: &[usize], values| Batch {
        inputs: vec![0.0; values],
        shape: shape.to_vec(),
        targets: Targets::Values(vec![0.0; 2]),
    };
    let weights = model.initial_weights();
    let mut trainer = trainer::<B>(&model);
    for (shape, values) in
        [(&[2, 4, 6][..], 48), (&[2, 4, 5], 39), (&[2, 20], 40), (&[2, 0, 5], 0), (&[0, 4, 5], 0)]
    {
        let error = trainer.gradient(&weights, &batch(shape, values), Loss::Mse).unwrap_err();
        assert!(error.to_string().contains("do not fit the model's input [?, ?, 5]"), "{error}");
    }
    let error = trainer.gradient(&weights[1..], &batch(&[2, 4, 5], 40), Loss::Mse).unwrap_err();
    assert_eq!(error.to_string(), "1920 weights given, the model has 1921 parameters");
}

/// θ_old − θ_new of PyTorch's SGD, by hand: y = w·x, squared error, one sample (2, 3) in one step an epoch.
fn local_epochs_are_gradient_descent_with_momentum<B: Engine>() {
    let model = diagonal(&[1.0]);
    let batch = Batch { inputs: vec![2.0], shape: vec![1, 1], targets: Targets::Values(vec![3.0]) };
    let sgd = Sgd { epochs: 2, learning_rate: 0.1, momentum: 0.5, batch_size: None };
    let found = trainer::<B>(&model).local_epochs(&[1.0], &batch, Loss::Mse, &sgd).unwrap();
    // w = 1: slope 2·(2−3)·2 = −4, v = −4, w = 1.4; slope 2·(2.8−3)·2 = −0.8, v = −2.8, w = 1.68.
    assert_near(&found.gradient, &[1.0 - 1.68]);
    assert_near(&[found.loss], &[0.04]);

    // Two samples in steps of one: the second step sees the weights after the first.
    let batch = Batch { inputs: vec![2.0, 1.0], shape: vec![2, 1], targets: Targets::Values(vec![3.0, 0.0]) };
    let sgd = Sgd { epochs: 1, learning_rate: 0.1, momentum: 0.0, batch_size: Some(1) };
    let found = trainer::<B>(&model).local_epochs(&[1.0], &batch, Loss::Mse, &sgd).unwrap();
    assert_near(&found.gradient, &[1.0 - (1.4 - 0.1 * 2.0 * 1.4)]);
    assert_near(&[found.loss], &[(1.0 + 1.96) / 2.0]);

    // One epoch over the whole batch without momentum is one gradient step.
    let sgd = Sgd { batch_size: None, ..sgd };
    let mut trainer = trainer::<B>(&model);
    let (epoch, step) = (
        trainer.local_epochs(&[1.0], &batch, Loss::Mse, &sgd).unwrap(),
        trainer.gradient(&[1.0], &batch, Loss::Mse).unwrap(),
    );
    assert_near(&epoch.gradient, &[0.1 * step.gradient[0]]);
}

fn sgd_options_out_of_range_are_refused<B: Engine>() {
    let model = diagonal(&[1.0]);
    let batch = Batch { inputs: vec![2.0], shape: vec![1, 1], targets: Targets::Values(vec![3.0]) };
    let good = Sgd { epochs: 1, learning_rate: 0.1, momentum: 0.9, batch_size: Some(1) };
    let refuse = |sgd: Sgd| match trainer::<B>(&model).local_epochs(&[1.0], &batch, Loss::Mse, &sgd) {
        Err(ModelError::Setting { name, .. }) => name,
        other => panic!("{other:?}"),
    };
    assert_eq!(refuse(Sgd { epochs: 0, ..good.clone() }), "epochs");
    assert_eq!(refuse(Sgd { learning_rate: f32::NAN, ..good.clone() }), "learning_rate");
    assert_eq!(refuse(Sgd { learning_rate: 0.0, ..good.clone() }), "learning_rate");
    assert_eq!(refuse(Sgd { momentum: 1.0, ..good.clone() }), "momentum");
    assert_eq!(refuse(Sgd { batch_size: Some(0), ..good }), "batch_size");
}

/// A feature extractor is frozen by listing the head alone.
fn only_listed_parameters_are_trained<B: Engine>() {
    let bytes = shipped::HFT_MLP;
    let all = Model::load(bytes, &LoadOptions::default()).unwrap();
    let listed = |names: &[&str]| {
        let trainable = Some(names.iter().map(|&name| name.to_owned()).collect());
        Model::load(bytes, &LoadOptions { trainable, ..Default::default() })
    };
    let head = listed(&["fc3.bias", "fc3.weight"]).unwrap();
    let names: Vec<&str> = head.parameters().iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["fc3.weight", "fc3.bias"], "in canonical order, whatever the list's");
    assert_eq!(head.dim(), 3 * 64 + 3);
    assert_ne!(head.digest(), all.digest(), "another set of parameters is another model to both sides");

    let batch =
        Batch { inputs: vec![0.3; 2 * 144], shape: vec![2, 144], targets: Targets::Classes(vec![0, 2]) };
    let whole = trainer::<B>(&all).gradient(&all.initial_weights(), &batch, Loss::Nll).unwrap();
    let part = trainer::<B>(&head).gradient(&head.initial_weights(), &batch, Loss::Nll).unwrap();
    assert_near(&part.gradient, &whole.gradient[all.dim() - head.dim()..]);

    let refusal = |names: &[&str]| listed(names).unwrap_err().to_string();
    assert!(refusal(&["fc9.weight"]).contains("`fc9.weight` cannot be trained: the file does not have it"));
    assert!(
        refusal(&["relu1"])
            .contains("it is not a float initializer; trainable here are fc1.weight, fc1.bias")
    );
}

/// Weights as initializers, as Constant nodes, and as inputs with a default are the same to the trainer.
fn weights_may_be_initializers_constants_or_inputs_with_defaults<B: Engine>() {
    let values = [0.5, -1.0, 2.0];
    let start = || {
        let mut b = OnnxBuilder::new(17);
        b.input("x", &[DeclaredDim::Free("batch"), DeclaredDim::Fixed(3)]);
        b
    };
    let finish = |b: &mut OnnxBuilder| load(b.node("Mul", &["x", "w"], &["y"], &[]).output("y"));
    let mut b = start();
    let initializer = finish(b.floats("w", &[3], &values));
    let mut b = start();
    let default = finish(b.input("w", &[DeclaredDim::Fixed(3)]).floats("w", &[3], &values));
    let mut b = start();
    let tensor = Attr::Tensor(support::floats("", &[3], &values));
    let constant = finish(b.node("Constant", &[], &["w"], &[("value", tensor)]));
    let mut b = start();
    let floats = Attr::Floats(values.to_vec());
    let list = finish(b.node("Constant", &[], &["w"], &[("value_floats", floats)]));
    for model in [&initializer, &default, &constant, &list] {
        assert_eq!(model.initial_weights(), values);
        let targets = Targets::Values(vec![0.0; 3]);
        let (_, slopes) = gradient::<B>(model, &[1.0, 2.0, 3.0], &[1, 3], targets, Loss::Mse);
        assert_near(&slopes, &[1.0 / 3.0, -8.0 / 3.0, 12.0]);
        let moved = [4.0, 5.0, 6.0];
        let exported = model.export(&moved, &[]).unwrap();
        let again = Model::load(&exported, &LoadOptions::default()).unwrap();
        assert_eq!(again.initial_weights(), moved);
        assert_eq!(again.digest(), model.digest());
    }
}

fn dropout_is_seeded_and_only_while_training<B: Engine>() {
    let mut b = OnnxBuilder::new(17);
    b.input("x", &[DeclaredDim::Free("batch"), DeclaredDim::Fixed(1000)]).floats("w", &[1000], &[1.0; 1000]);
    b.floats("ratio", &[], &[0.25]).node("Mul", &["x", "w"], &["m"], &[]);
    let mut flag = support::ints("training", &[], &[]);
    flag.data_type = 9;
    flag.int32_data = vec![1];
    b.graph().initializer.push(flag);
    b.node("Dropout", &["m", "ratio", "training"], &["y", "mask"], &[]).output("y");
    let model = load(&b);
    let weights = model.initial_weights();
    let batch =
        Batch { inputs: vec![1.0; 1000], shape: vec![1, 1000], targets: Targets::Values(vec![0.0; 1000]) };
    let slopes = |trainer: &mut Trainer<B>| trainer.gradient(&weights, &batch, Loss::Mse).unwrap().gradient;
    let mut trainer = Trainer::on(&model, 1);
    let first = slopes(&mut trainer);
    let dropped = first.iter().filter(|&&slope| slope == 0.0).count();
    assert!((200..300).contains(&dropped), "{dropped} of 1000");
    // 2·(4/3)²/1000 where not dropped.
    assert!(first.iter().all(|&slope| slope == 0.0 || (slope - 2.0 * 16.0 / 9.0 / 1000.0).abs() < 1e-8));
    assert_ne!(first, slopes(&mut trainer), "masks differ from step to step");
    assert_eq!(first, slopes(&mut Trainer::on(&model, 1)), "and are those of the seed");
    assert_eq!(trainer.forward(&weights, &batch.inputs, &batch.shape).unwrap().0, vec![1.0; 1000]);
    with_every_inference_engine!(assert_never_drops; &model, &batch);
}

fn assert_never_drops<E: InferenceEngine>(model: &Model, batch: &Batch) {
    let mut predictor = predictor::<E>(model, &model.initial_weights());
    assert_eq!(predictor.predict(&batch.inputs, &batch.shape).unwrap(), vec![1.0; 1000], "{}", E::NAME);
}

/// A stream predicted in two parts, with the hidden state passed on, equals the stream in one part.
fn hidden_states_go_in_and_out<B: Engine>() {
    with_every_inference_engine!(assert_hidden_states_go_in_and_out, B);
}

fn assert_hidden_states_go_in_and_out<E: InferenceEngine, B: Engine>() {
    let path = format!("{}/tests/exporters/stateful-gru.torchscript.17.onnx", env!("CARGO_MANIFEST_DIR"));
    let model = Model::load(&std::fs::read(path).unwrap(), &LoadOptions::default()).unwrap();
    let mut predictor = predictor::<E>(&model, &model.initial_weights());
    let mut seed = 3;
    let inputs: Vec<f32> = (0..5 * 3).map(|_| uniform(&mut seed)).collect();
    let whole = predictor.predict(&inputs, &[1, 5, 3]).unwrap();
    let mut states = vec![];
    let first = predictor.predict_from(&inputs, &[1, 5, 3], &mut states).unwrap();
    assert_eq!(first, whole, "no states are zeros");
    assert_eq!(states.iter().map(Vec::len).collect::<Vec<_>>(), [4]);
    let again = predictor.predict_from(&inputs, &[1, 5, 3], &mut states).unwrap();
    let twice = [&inputs[..], &inputs[..]].concat();
    let (expected, _) = trainer::<B>(&model).forward(&model.initial_weights(), &twice, &[1, 10, 3]).unwrap();
    assert_near(&again, &expected);
    assert_ne!(again, whole);
    let error = predictor.predict_from(&inputs, &[1, 5, 3], &mut vec![vec![0.0; 3]]).unwrap_err();
    assert!(
        error.to_string().contains("[3] values do not fit the model's further inputs [[1, 1, 4]]"),
        "{error}"
    );
}
