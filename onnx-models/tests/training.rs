//! Losses, local epochs, frozen parameters, dropout, export, and steps that leave nothing behind.
#![allow(clippy::unwrap_used)]

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use evenhand_models::{
    Batch, LoadOptions, Loss, Model, ModelError, Predictor, Sgd, Targets, Trainer, shipped,
};
use support::{Attr, Builder, Dim, uniform};

/// Counts what this thread holds.
struct Counting;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
}

#[allow(unsafe_code)]
// SAFETY: every call is handed to the system's allocator unchanged; only a counter of this thread is kept besides.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.set(HELD.get() + layout.size() as isize);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.set(HELD.get() - layout.size() as isize);
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn shipped_model(name: &str) -> Model {
    Model::load(shipped::by_name(name).unwrap(), &LoadOptions::default()).unwrap()
}

fn load(b: &Builder) -> Model {
    Model::load(&b.bytes(), &LoadOptions::default()).unwrap()
}

/// y = x·w with one weight a column, so that outputs are chosen by inputs.
fn diagonal(weights: &[f32]) -> Model {
    let mut b = Builder::new(17);
    b.input("x", &[Dim::Free("batch"), Dim::Fixed(weights.len() as i64)]);
    b.floats("w", &[weights.len()], weights).node("Mul", &["x", "w"], &["y"], &[]).output("y");
    load(&b)
}

fn gradient(model: &Model, inputs: &[f32], shape: &[usize], targets: Targets, loss: Loss) -> (f32, Vec<f32>) {
    let batch = Batch { inputs: inputs.to_vec(), shape: shape.to_vec(), targets };
    let found = Trainer::new(model).gradient(&model.initial_weights(), &batch, loss).unwrap();
    (found.loss, found.gradient)
}

fn assert_near(found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len());
    for (a, b) in found.iter().zip(expected) {
        assert!((a - b).abs() < 1e-6, "{found:?} instead of {expected:?}");
    }
}

/// By hand: outputs (1, −2), targets (0.5, 1), errors (0.5, −3).
#[test]
fn losses_are_pytorchs() {
    let model = diagonal(&[1.0, 1.0]);
    let (x, shape) = ([1.0, -2.0], [1, 2]);
    let (loss, slopes) = gradient(&model, &x, &shape, Targets::Values(vec![0.5, 1.0]), Loss::Mse);
    assert_near(&[loss], &[(0.25 + 9.0) / 2.0]);
    assert_near(&slopes, &[0.5, 6.0]);
    let (loss, slopes) = gradient(&model, &x, &shape, Targets::Values(vec![0.5, 1.0]), Loss::Huber);
    assert_near(&[loss], &[(0.125 + 2.5) / 2.0]);
    assert_near(&slopes, &[0.25, 1.0]);
    let (loss, slopes) = gradient(&model, &x, &shape, Targets::Classes(vec![1]), Loss::Nll);
    assert_near(&[loss], &[2.0]);
    assert_near(&slopes, &[0.0, 2.0]);
    let (loss, slopes) = gradient(&model, &x, &shape, Targets::Classes(vec![1]), Loss::CrossEntropy);
    let (p, total) = (1.0f32.exp(), 1.0f32.exp() + (-2.0f32).exp());
    assert_near(&[loss], &[2.0 + total.ln()]);
    assert_near(&slopes, &[p / total, 2.0 * (1.0 - (-2.0f32).exp() / total)]);
    // Q-learning: only the chosen column of each sample counts, and the mean is over samples.
    let chosen = Targets::Chosen { columns: vec![1, 0], values: vec![1.0, 0.5] };
    let (loss, slopes) = gradient(&model, &[1.0, -2.0, 1.0, 4.0], &[2, 2], chosen, Loss::Huber);
    assert_near(&[loss], &[(2.5 + 0.125) / 2.0]);
    assert_near(&slopes, &[0.25, 1.0]);
}

#[test]
fn targets_that_do_not_fit_are_refused() {
    let model = diagonal(&[1.0, 1.0]);
    let refuse = |targets, loss| {
        let batch = Batch { inputs: vec![1.0; 4], shape: vec![2, 2], targets };
        match Trainer::new(&model).gradient(&[1.0, 1.0], &batch, loss) {
            Err(ModelError::Targets { why, .. }) => why,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(refuse(Targets::Values(vec![0.0; 3]), Loss::Mse), "3 values for 4 elements");
    assert_eq!(refuse(Targets::Classes(vec![0]), Loss::Nll), "1 targets for 2 samples");
    assert_eq!(refuse(Targets::Classes(vec![0, 2]), Loss::CrossEntropy), "column 2 of 2");
    assert_eq!(
        refuse(Targets::Classes(vec![0, 1]), Loss::Huber),
        "huber wants values, or values of chosen columns"
    );
    assert_eq!(refuse(Targets::Values(vec![0.0; 4]), Loss::Nll), "nll wants classes");
    let few = Targets::Chosen { columns: vec![0, 1], values: vec![1.0] };
    assert_eq!(refuse(few, Loss::Mse), "1 values for 2 samples");
}

#[test]
fn weights_and_inputs_that_do_not_fit_are_refused() {
    let model = shipped_model("electricity-rnn");
    let batch = |shape: &[usize], values| Batch {
        inputs: vec![0.0; values],
        shape: shape.to_vec(),
        targets: Targets::Values(vec![0.0; 2]),
    };
    let weights = model.initial_weights();
    let mut trainer = Trainer::new(&model);
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
#[test]
fn local_epochs_are_gradient_descent_with_momentum() {
    let model = diagonal(&[1.0]);
    let batch = Batch { inputs: vec![2.0], shape: vec![1, 1], targets: Targets::Values(vec![3.0]) };
    let sgd = Sgd { epochs: 2, learning_rate: 0.1, momentum: 0.5, batch_size: None };
    let found = Trainer::new(&model).local_epochs(&[1.0], &batch, Loss::Mse, &sgd).unwrap();
    // w = 1: slope 2·(2−3)·2 = −4, v = −4, w = 1.4; slope 2·(2.8−3)·2 = −0.8, v = −2.8, w = 1.68.
    assert_near(&found.gradient, &[1.0 - 1.68]);
    assert_near(&[found.loss], &[0.04]);

    // Two samples in steps of one: the second step sees the weights after the first.
    let batch = Batch { inputs: vec![2.0, 1.0], shape: vec![2, 1], targets: Targets::Values(vec![3.0, 0.0]) };
    let sgd = Sgd { epochs: 1, learning_rate: 0.1, momentum: 0.0, batch_size: Some(1) };
    let found = Trainer::new(&model).local_epochs(&[1.0], &batch, Loss::Mse, &sgd).unwrap();
    assert_near(&found.gradient, &[1.0 - (1.4 - 0.1 * 2.0 * 1.4)]);
    assert_near(&[found.loss], &[(1.0 + 1.96) / 2.0]);

    // One epoch over the whole batch without momentum is one gradient step.
    let sgd = Sgd { batch_size: None, ..sgd };
    let mut trainer = Trainer::new(&model);
    let (epoch, step) = (
        trainer.local_epochs(&[1.0], &batch, Loss::Mse, &sgd).unwrap(),
        trainer.gradient(&[1.0], &batch, Loss::Mse).unwrap(),
    );
    assert_near(&epoch.gradient, &[0.1 * step.gradient[0]]);
}

#[test]
fn settings_out_of_range_are_refused() {
    let model = diagonal(&[1.0]);
    let batch = Batch { inputs: vec![2.0], shape: vec![1, 1], targets: Targets::Values(vec![3.0]) };
    let good = Sgd { epochs: 1, learning_rate: 0.1, momentum: 0.9, batch_size: Some(1) };
    let refuse = |sgd: Sgd| match Trainer::new(&model).local_epochs(&[1.0], &batch, Loss::Mse, &sgd) {
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
#[test]
fn only_listed_parameters_are_trained() {
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
    let whole = Trainer::new(&all).gradient(&all.initial_weights(), &batch, Loss::Nll).unwrap();
    let part = Trainer::new(&head).gradient(&head.initial_weights(), &batch, Loss::Nll).unwrap();
    assert_near(&part.gradient, &whole.gradient[all.dim() - head.dim()..]);

    let refusal = |names: &[&str]| listed(names).unwrap_err().to_string();
    assert!(refusal(&["fc9.weight"]).contains("`fc9.weight` cannot be trained: the file does not have it"));
    assert!(
        refusal(&["relu1"])
            .contains("it is not a float initializer; trainable here are fc1.weight, fc1.bias")
    );
}

#[test]
fn settings_and_literals_are_not_trained_unless_they_can_be() {
    let mut b = Builder::new(17);
    b.input("x", &[Dim::Free("batch"), Dim::Fixed(2)]);
    for name in ["scale", "bias", "mean", "var"] {
        b.floats(name, &[2], &[1.0, 2.0]);
    }
    b.floats("two", &[], &[2.0]).floats("gain", &[1], &[3.0]).floats("unused", &[4], &[0.0; 4]);
    b.node("BatchNormalization", &["x", "scale", "bias", "mean", "var"], &["n"], &[]);
    b.node("Mul", &["n", "two"], &["m"], &[]).node("Mul", &["m", "gain"], &["y"], &[]).output("y");
    let model = load(&b);
    let names: Vec<&str> = model.parameters().iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["scale", "bias", "gain"]);
    let listed = |name: &str| {
        let trainable = Some(vec![name.to_owned()]);
        Model::load(&b.bytes(), &LoadOptions { trainable, ..Default::default() })
    };
    assert_eq!(listed("two").unwrap().dim(), 1, "a literal can be asked for");
    assert!(listed("var").unwrap_err().to_string().contains("it is a setting of an operator"));
    assert!(listed("unused").unwrap_err().to_string().contains("it does not reach the first output"));
}

/// Weights as initializers, as Constant nodes, and as inputs with a default are the same to the trainer.
#[test]
fn weights_may_be_initializers_constants_or_inputs_with_defaults() {
    let values = [0.5, -1.0, 2.0];
    let start = || {
        let mut b = Builder::new(17);
        b.input("x", &[Dim::Free("batch"), Dim::Fixed(3)]);
        b
    };
    let finish = |b: &mut Builder| load(b.node("Mul", &["x", "w"], &["y"], &[]).output("y"));
    let mut b = start();
    let initializer = finish(b.floats("w", &[3], &values));
    let mut b = start();
    let default = finish(b.input("w", &[Dim::Fixed(3)]).floats("w", &[3], &values));
    let mut b = start();
    let tensor = Attr::Tensor(support::floats("", &[3], &values));
    let constant = finish(b.node("Constant", &[], &["w"], &[("value", tensor)]));
    let mut b = start();
    let floats = Attr::Floats(values.to_vec());
    let list = finish(b.node("Constant", &[], &["w"], &[("value_floats", floats)]));
    for model in [&initializer, &default, &constant, &list] {
        assert_eq!(model.initial_weights(), values);
        let targets = Targets::Values(vec![0.0; 3]);
        let (_, slopes) = gradient(model, &[1.0, 2.0, 3.0], &[1, 3], targets, Loss::Mse);
        assert_near(&slopes, &[1.0 / 3.0, -8.0 / 3.0, 12.0]);
        let moved = [4.0, 5.0, 6.0];
        let exported = model.export(&moved, &[]).unwrap();
        let again = Model::load(&exported, &LoadOptions::default()).unwrap();
        assert_eq!(again.initial_weights(), moved);
        assert_eq!(again.digest(), model.digest());
    }
}

#[test]
fn exported_files_keep_the_digest_and_carry_weights_and_metadata() {
    for name in shipped::NAMES {
        let model = shipped_model(name);
        let moved: Vec<f32> = model.initial_weights().iter().map(|w| w + 0.25).collect();
        let once = model.export(&moved, &[("evenhand.round", "1"), ("evenhand.federation", "demo")]).unwrap();
        let again = Model::load(&once, &LoadOptions::default()).unwrap();
        assert_eq!(again.initial_weights(), moved, "{name}");
        assert_eq!(again.digest(), model.digest(), "{name}");
        assert_eq!(again.metadata()["evenhand.round"], "1");
        assert_eq!(
            again.metadata().get("evenhand.task"),
            model.metadata().get("evenhand.task"),
            "its own stay"
        );
        let twice = again.export(&moved, &[("evenhand.round", "2")]).unwrap();
        let twice = Model::load(&twice, &LoadOptions::default()).unwrap();
        assert_eq!(twice.metadata()["evenhand.round"], "2");
        assert_eq!(twice.metadata()["evenhand.federation"], "demo");
    }
    assert!(matches!(diagonal(&[1.0]).export(&[], &[]), Err(ModelError::Weights { found: 0, expected: 1 })));
}

#[test]
fn the_digest_tells_graphs_apart() {
    let build = |opset, transposed, name: &str, bias: f32| {
        let mut b = Builder::new(opset);
        b.input("x", &[Dim::Free("batch"), Dim::Fixed(2)]).floats(name, &[2, 2], &[bias; 4]);
        b.floats("fixed", &[], &[2.0]).node(
            "Gemm",
            &["x", name],
            &["z"],
            &[("transB", Attr::Int(transposed))],
        );
        b.node("Mul", &["z", "fixed"], &["y"], &[]).output("y");
        b
    };
    let digest = |b: &Builder| load(b).digest();
    let base = digest(&build(17, 1, "w", 0.5));
    assert_eq!(base, digest(&build(17, 1, "w", 0.75)), "weights do not count");
    let mut documented = build(17, 1, "w", 0.5);
    documented.graph().doc_string = "about".to_owned();
    documented.graph().node[0].name = "first".to_owned();
    documented.file.producer_name = "someone".to_owned();
    assert_eq!(base, digest(&documented), "documentation does not count");
    assert_ne!(base, digest(&build(16, 1, "w", 0.5)), "the operator set does");
    assert_ne!(base, digest(&build(17, 0, "w", 0.5)), "attributes do");
    assert_ne!(base, digest(&build(17, 1, "v", 0.5)), "names of parameters do");
    let mut fixed = build(17, 1, "w", 0.5);
    fixed.graph().initializer[1] = support::floats("fixed", &[], &[3.0]);
    assert_ne!(base, digest(&fixed), "fixed tensors do");
}

#[test]
fn an_architecture_without_weights_draws_them_from_its_seed() {
    let model = shipped_model("dqn-nature");
    assert_eq!(model.dim(), 1_687_206);
    let weights = model.initial_weights();
    assert_eq!(weights, shipped_model("dqn-nature").initial_weights());
    for parameter in model.parameters() {
        let part = &weights[parameter.offset..parameter.offset + parameter.len()];
        let fan_in = match parameter.name.split('.').next().unwrap() {
            "conv1" => 4 * 64,
            "conv2" => 32 * 16,
            "conv3" => 64 * 9,
            "fc1" => 3136,
            _ => 512,
        };
        let bound = 1.0 / (fan_in as f32).sqrt();
        let largest = part.iter().fold(0.0f32, |max, w| max.max(w.abs()));
        assert!(largest <= bound && (part.len() < 30 || largest > 0.9 * bound), "{}", parameter.name);
        let mean = part.iter().sum::<f32>() / part.len() as f32;
        assert!(mean.abs() < 3.0 * bound / (part.len() as f32).sqrt(), "{}: mean {mean}", parameter.name);
    }
}

#[test]
fn dropout_is_seeded_and_only_while_training() {
    let mut b = Builder::new(17);
    b.input("x", &[Dim::Free("batch"), Dim::Fixed(1000)]).floats("w", &[1000], &[1.0; 1000]);
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
    let slopes = |trainer: &mut Trainer| trainer.gradient(&weights, &batch, Loss::Mse).unwrap().gradient;
    let mut trainer = Trainer::on(&model, 1);
    let first = slopes(&mut trainer);
    let dropped = first.iter().filter(|&&slope| slope == 0.0).count();
    assert!((200..300).contains(&dropped), "{dropped} of 1000");
    // 2·(4/3)²/1000 where kept.
    assert!(first.iter().all(|&slope| slope == 0.0 || (slope - 2.0 * 16.0 / 9.0 / 1000.0).abs() < 1e-8));
    assert_ne!(first, slopes(&mut trainer), "masks differ from step to step");
    assert_eq!(first, slopes(&mut Trainer::on(&model, 1)), "and are those of the seed");
    assert_eq!(trainer.forward(&weights, &batch.inputs, &batch.shape).unwrap().0, vec![1.0; 1000]);
    let predicted = Predictor::new(&model, &weights).unwrap().predict(&batch.inputs, &batch.shape).unwrap();
    assert_eq!(predicted, vec![1.0; 1000]);
}

#[test]
fn tract_and_burn_agree_on_every_shipped_model_before_and_after_a_swap_of_weights() {
    for name in shipped::NAMES {
        let model = shipped_model(name);
        let mut weights = model.initial_weights();
        let mut predictor = Predictor::new(&model, &weights).unwrap();
        let mut seed = 5;
        for lags in [3, 4] {
            let shape: Vec<usize> = model.input_shape().iter().map(|d| d.unwrap_or(lags)).collect();
            let inputs: Vec<f32> = (0..shape.iter().product()).map(|_| uniform(&mut seed)).collect();
            let (burn, _) = Trainer::new(&model).forward(&weights, &inputs, &shape).unwrap();
            let tract = predictor.predict(&inputs, &shape).unwrap();
            let off = burn.iter().zip(&tract).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(burn.len() == tract.len() && off <= 1e-5, "{name}: off by {off}");
            weights.iter_mut().for_each(|w| *w += 0.02 * uniform(&mut seed));
            predictor.set_weights(&weights).unwrap();
            let (burn, _) = Trainer::new(&model).forward(&weights, &inputs, &shape).unwrap();
            let tract = predictor.predict(&inputs, &shape).unwrap();
            let scale = burn.iter().fold(1.0f32, |max, v| max.max(v.abs()));
            let off = burn.iter().zip(&tract).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(off <= 1e-5 * scale, "{name} after a swap: off by {off} of {scale}");
        }
    }
}

/// A stream in two pieces, the hidden state handed over, is the stream in one piece.
#[test]
fn hidden_states_go_in_and_out() {
    let path = format!("{}/tests/exporters/stateful-gru.torchscript.17.onnx", env!("CARGO_MANIFEST_DIR"));
    let model = Model::load(&std::fs::read(path).unwrap(), &LoadOptions::default()).unwrap();
    let mut predictor = Predictor::new(&model, &model.initial_weights()).unwrap();
    let mut seed = 3;
    let inputs: Vec<f32> = (0..5 * 3).map(|_| uniform(&mut seed)).collect();
    let whole = predictor.predict(&inputs, &[1, 5, 3]).unwrap();
    let mut states = vec![];
    let first = predictor.predict_from(&inputs, &[1, 5, 3], &mut states).unwrap();
    assert_eq!(first, whole, "no states are zeros");
    assert_eq!(states.iter().map(Vec::len).collect::<Vec<_>>(), [4]);
    let again = predictor.predict_from(&inputs, &[1, 5, 3], &mut states).unwrap();
    let twice = [&inputs[..], &inputs[..]].concat();
    let (expected, _) = Trainer::new(&model).forward(&model.initial_weights(), &twice, &[1, 10, 3]).unwrap();
    assert_near(&again, &expected);
    assert_ne!(again, whole);
    let error = predictor.predict_from(&inputs, &[1, 5, 3], &mut vec![vec![0.0; 3]]).unwrap_err();
    assert!(
        error.to_string().contains("[3] values do not fit the model's further inputs [[1, 1, 4]]"),
        "{error}"
    );
}

#[test]
fn shipped_models_have_the_documented_sizes() {
    let sizes = [
        ("electricity-rnn", 1_921),
        ("electricity-mlp", 57_201),
        ("hft-mlp", 27_011),
        ("mnist-cnn", 104_242),
        ("cifar-cnn", 62_006),
        ("path-cnn", 86_537),
        ("dqn-nature", 1_687_206),
        ("dqn-grid", 66_582),
    ];
    assert_eq!(sizes.len(), shipped::NAMES.len());
    for (name, size) in sizes {
        assert_eq!(shipped_model(name).dim(), size, "{name}");
    }
}

/// Ten thousand steps hold as much as a hundred.
#[test]
fn steps_leave_nothing_behind() {
    let model = shipped_model("electricity-rnn");
    let mut weights = model.initial_weights();
    let mut trainer = Trainer::new(&model);
    let batch =
        Batch { inputs: vec![0.1; 4 * 8 * 5], shape: vec![4, 8, 5], targets: Targets::Values(vec![0.2; 4]) };
    let mut steps = |count: usize| {
        for _ in 0..count {
            let step = trainer.gradient(&weights, &batch, Loss::Mse).unwrap();
            weights.iter_mut().zip(&step.gradient).for_each(|(w, g)| *w -= 0.01 * g);
        }
        HELD.get()
    };
    let early = steps(100);
    let late = steps(9_900);
    assert!(late - early <= 4096, "{} bytes more after ten thousand steps", late - early);
}
