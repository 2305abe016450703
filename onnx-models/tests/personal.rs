//! Personal parameters: apart from the shared ones, and never in an update or an exported file.
//!
//! The oracle is the same file without the metadata, where every parameter is shared.
#![allow(clippy::unwrap_used)]

mod support;

use evenhand_models::{
    Batch, Engine, InferenceEngine, LoadOptions, Loss, Model, PERSONAL, Predictor, Sgd, Targets,
};
use prost::Message;
use support::{
    Attr, DeclaredDim, OnnxBuilder, load, next, on_every_backend, predictor, shipped_model, trainer, uniform,
    with_every_inference_engine,
};
use tract_onnx::pb;

on_every_backend!(
    gradients_are_the_parts_of_the_whole,
    personal_epochs_are_those_of_a_model_that_trains_nothing_else,
    outputs_depend_on_both_parts,
    a_model_without_personal_parameters_has_an_empty_part,
);

/// Parameters of [`net`].
const NAMES: [&str; 5] = ["w1", "b1", "w2", "b2", "direct"];

/// y = Relu(x·w1 + b1)·w2 + b2 + x·direct, of random weights, with these names as personal.
fn net(seed: u64, personal: &[&str]) -> OnnxBuilder {
    let mut seed = seed;
    let mut b = OnnxBuilder::new(17);
    b.input("x", &[DeclaredDim::Free("batch"), DeclaredDim::Fixed(3)]);
    for (name, shape) in NAMES.into_iter().zip([&[3, 4][..], &[4], &[4, 2], &[2], &[3, 2]]) {
        let values: Vec<f32> = (0..shape.iter().product()).map(|_| uniform(&mut seed)).collect();
        b.floats(name, shape, &values);
    }
    b.node("Gemm", &["x", "w1", "b1"], &["h"], &[]).node("Relu", &["h"], &["r"], &[]);
    b.node("Gemm", &["r", "w2", "b2"], &["s"], &[("alpha", Attr::Float(0.5))]);
    b.node("MatMul", &["x", "direct"], &["d"], &[]).node("Add", &["s", "d"], &["y"], &[]).output("y");
    if !personal.is_empty() {
        b.metadata(PERSONAL, &personal.join(", "));
    }
    b
}

fn batch(seed: &mut u64) -> Batch {
    let mut values = |count| (0..count).map(|_| uniform(seed)).collect::<Vec<f32>>();
    Batch { inputs: values(5 * 3), shape: vec![5, 3], targets: Targets::Values(values(5 * 2)) }
}

/// Every choice of personal parameters but all of them.
fn choices() -> impl Iterator<Item = Vec<&'static str>> {
    (1..(1 << NAMES.len()) - 1)
        .map(|set| NAMES.into_iter().enumerate().filter(|(i, _)| set >> i & 1 == 1).map(|(_, n)| n).collect())
}

/// The values of the parameters in a vector of the whole model, in the order of `model`'s own parameters.
fn part(whole: &Model, values: &[f32], parameters: &[evenhand_models::Parameter]) -> Vec<f32> {
    let find = |name: &str| whole.parameters().iter().find(|parameter| parameter.name == name).unwrap();
    let values_of =
        |found: &evenhand_models::Parameter| values[found.offset..found.offset + found.len()].to_vec();
    parameters.iter().flat_map(|parameter| values_of(find(&parameter.name))).collect()
}

/// For every choice: an update has exactly the shared entries of the whole gradient, whatever the personal weights are.
fn gradients_are_the_parts_of_the_whole<B: Engine>() {
    let mut seed = 5;
    for personal in choices() {
        let (whole, model) = (load(&net(seed, &[])), load(&net(seed, &personal)));
        assert_eq!(model.dim() + model.personal_dim(), whole.dim());
        assert!(model.parameters().iter().all(|parameter| !personal.contains(&parameter.name.as_str())));
        assert_eq!(model.personal_parameters().len(), personal.len());
        assert_ne!(model.digest(), whole.digest(), "{personal:?}: what is exchanged differs");

        let weights: Vec<f32> = (0..whole.dim()).map(|_| uniform(&mut seed)).collect();
        let (shared, own) =
            (part(&whole, &weights, model.parameters()), part(&whole, &weights, model.personal_parameters()));
        let batch = batch(&mut seed);
        let expected = trainer::<B>(&whole).gradient(&weights, &batch, Loss::Pinball).unwrap();
        let mut trainer = trainer::<B>(&model);
        trainer.set_personal(&own).unwrap();
        let update = trainer.gradient(&shared, &batch, Loss::Pinball).unwrap();
        let local = trainer.personal_gradient(&shared, &batch, Loss::Pinball).unwrap();
        assert_eq!(update.gradient.len(), model.dim());
        assert_eq!(update.gradient, part(&whole, &expected.gradient, model.parameters()), "{personal:?}");
        assert_eq!(
            local.gradient,
            part(&whole, &expected.gradient, model.personal_parameters()),
            "{personal:?}"
        );
        assert_eq!((update.loss, local.loss), (expected.loss, expected.loss));
    }
}

fn personal_epochs_are_those_of_a_model_that_trains_nothing_else<B: Engine>() {
    let mut seed = 6;
    let sgd = Sgd { epochs: 4, learning_rate: 0.1, momentum: 0.9, batch_size: Some(2) };
    for personal in choices() {
        let file = net(seed, &personal);
        let model = load(&file);
        // The same file with the shared parameters frozen.
        let listed = Some(personal.iter().map(|&name| name.to_owned()).collect());
        let frozen = net(seed, &[]).bytes();
        let frozen = Model::load(&frozen, &LoadOptions { trainable: listed, ..Default::default() }).unwrap();
        assert_eq!(frozen.initial_weights(), model.initial_personal());

        let batch = batch(&mut seed);
        let weights = model.initial_weights();
        let found = trainer::<B>(&model).personal_epochs(&weights, &batch, Loss::Mse, &sgd).unwrap();
        let expected =
            trainer::<B>(&frozen).local_epochs(&frozen.initial_weights(), &batch, Loss::Mse, &sgd).unwrap();
        assert_eq!(found, expected, "{personal:?}");
    }
}

fn outputs_depend_on_both_parts<B: Engine>() {
    with_every_inference_engine!(predictions_depend_on_both_parts, B);
}

fn predictions_depend_on_both_parts<E: InferenceEngine, B: Engine>() {
    let mut seed = 7;
    for personal in choices() {
        let (whole, model) = (load(&net(seed, &[])), load(&net(seed, &personal)));
        let batch = batch(&mut seed);
        let mut reused = predictor::<E>(&model, &model.initial_weights());
        let mut folding = Predictor::folding(&model, &model.initial_weights()).unwrap();
        let mut trainer = trainer::<B>(&model);
        for _ in 0..3 {
            let weights: Vec<f32> = (0..whole.dim()).map(|_| uniform(&mut seed)).collect();
            let shared = part(&whole, &weights, model.parameters());
            let own = part(&whole, &weights, model.personal_parameters());
            let expected = predictor::<E>(&whole, &weights).predict(&batch.inputs, &batch.shape).unwrap();
            reused.set_weights(&shared).unwrap();
            reused.set_personal(&own).unwrap();
            let found = reused.predict(&batch.inputs, &batch.shape).unwrap();
            assert!(support::off(&found, &expected) < 1e-6, "{personal:?}: {found:?} {expected:?}");
            folding.set_weights(&shared).unwrap();
            folding.set_personal(&own).unwrap();
            let folded = folding.predict(&batch.inputs, &batch.shape).unwrap();
            assert!(support::off(&folded, &expected) < 1e-6, "{personal:?}: {folded:?} {expected:?}");
            trainer.set_personal(&own).unwrap();
            let (found, _) = trainer.forward(&shared, &batch.inputs, &batch.shape).unwrap();
            assert!(support::off(&found, &expected) < 1e-5, "{personal:?}");
        }
    }
}

fn a_model_without_personal_parameters_has_an_empty_part<B: Engine>() {
    let model = load(&net(1, &[]));
    assert_eq!((model.personal_dim(), model.personal_parameters().len()), (0, 0));
    let batch = batch(&mut 3);
    let weights = model.initial_weights();
    let mut trainer = trainer::<B>(&model);
    let found = trainer.personal_gradient(&weights, &batch, Loss::Mse).unwrap();
    assert!(found.gradient.is_empty());
    assert_eq!(found.loss, trainer.gradient(&weights, &batch, Loss::Mse).unwrap().loss);
}

/// What a coordinator holds is the shared vector, and the file it exports has the personal weights as they began.
#[test]
fn an_exported_file_has_the_initial_personal_weights() {
    let model = shipped_model("load-quantiles");
    assert_eq!((model.dim(), model.personal_dim()), (2_499, 123));
    assert_eq!(model.initial_personal(), vec![0.0; 123]);
    let mut seed = 8;
    let trained: Vec<f32> = (0..model.dim()).map(|_| uniform(&mut seed)).collect();
    let exported = model.export(&trained, &[]).unwrap();
    let again = Model::load(&exported, &LoadOptions::default()).unwrap();
    assert_eq!(again.digest(), model.digest());
    assert_eq!(again.initial_weights(), trained);
    let file = pb::ModelProto::decode(exported.as_slice()).unwrap();
    let personal = file.graph.unwrap().initializer.into_iter().find(|t| t.name == "personal.weight").unwrap();
    assert_eq!(personal.raw_data, vec![0; 4 * 123]);
    // Weights of a length that includes the personal ones are refused everywhere.
    let whole = vec![0.0; 2_499 + 123];
    let sentence = "2622 weights given, the model has 2499 parameters";
    assert_eq!(model.export(&whole, &[]).unwrap_err().to_string(), sentence);
    assert_eq!(Predictor::new(&model, &whole).err().unwrap().to_string(), sentence);
}

#[test]
fn names_and_lengths_that_do_not_fit_get_a_sentence() {
    let refuse = |personal: &[&str]| {
        Model::load(&net(1, personal).bytes(), &LoadOptions::default()).unwrap_err().to_string()
    };
    assert_eq!(
        refuse(&["w1", "w9"]),
        "metadata `evenhand.personal` names `w9`: the file does not have it; parameters are w1, b1, w2, b2, direct"
    );
    assert_eq!(
        refuse(&NAMES),
        "metadata `evenhand.personal` names `w1`: no other parameter is left to share; \
         parameters are w1, b1, w2, b2, direct"
    );
    let model = load(&net(next(&mut 1), &["b2"]));
    let sentence = "3 personal weights given, the model has 2 personal parameters";
    let mut predictor = Predictor::new(&model, &model.initial_weights()).unwrap();
    assert_eq!(predictor.set_personal(&[0.0; 3]).unwrap_err().to_string(), sentence);
    let error = trainer::<evenhand_models::DefaultBackend>(&model).set_personal(&[0.0; 3]).unwrap_err();
    assert_eq!(error.to_string(), sentence);
    // A list of parameters to train does not make a personal one shared.
    let listed =
        LoadOptions { trainable: Some(vec!["w2".to_owned(), "b2".to_owned()]), ..Default::default() };
    let model = Model::load(&net(1, &["b2"]).bytes(), &listed).unwrap();
    assert_eq!((model.dim(), model.personal_dim()), (8, 2));
}
