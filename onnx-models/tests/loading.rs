//! Selection and order of parameters, coverage of the digest, and files exported and loaded again.
#![allow(clippy::unwrap_used)]

mod support;

use evenhand_models::{LoadOptions, Model, ModelError, shipped};
use support::{Attr, DeclaredDim, OnnxBuilder, load, shipped_model};

#[test]
fn fixed_inputs_are_never_trained_and_literals_only_if_listed() {
    let mut b = OnnxBuilder::new(17);
    b.input("x", &[DeclaredDim::Free("batch"), DeclaredDim::Fixed(2)]);
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
    assert_eq!(listed("two").unwrap().dim(), 1, "a literal can be listed");
    assert!(
        listed("var")
            .unwrap_err()
            .to_string()
            .contains("it is a running statistic, a bound, a ratio or an exponent")
    );
    assert!(listed("unused").unwrap_err().to_string().contains("it does not reach the first output"));
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
            "the file's metadata stay"
        );
        let twice = again.export(&moved, &[("evenhand.round", "2")]).unwrap();
        let twice = Model::load(&twice, &LoadOptions::default()).unwrap();
        assert_eq!(twice.metadata()["evenhand.round"], "2");
        assert_eq!(twice.metadata()["evenhand.federation"], "demo");
    }
    assert!(matches!(
        shipped_model("dqn-grid").export(&[], &[]),
        Err(ModelError::Weights { found: 0, expected: 66_582 })
    ));
}

#[test]
fn the_digest_distinguishes_graphs() {
    let build = |opset, transposed, name: &str, bias: f32| {
        let mut b = OnnxBuilder::new(opset);
        b.input("x", &[DeclaredDim::Free("batch"), DeclaredDim::Fixed(2)]).floats(name, &[2, 2], &[bias; 4]);
        b.floats("fixed", &[], &[2.0]).node(
            "Gemm",
            &["x", name],
            &["z"],
            &[("transB", Attr::Int(transposed))],
        );
        b.node("Mul", &["z", "fixed"], &["y"], &[]).output("y");
        b
    };
    let digest = |b: &OnnxBuilder| load(b).digest();
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
fn shipped_models_have_the_documented_sizes() {
    let sizes = [
        ("electricity-rnn", 1_921),
        ("load-quantiles", 2_499),
        ("electricity-mlp", 57_201),
        ("hft-mlp", 27_011),
        ("mnist-cnn", 104_242),
        ("cifar-cnn", 62_006),
        ("path-cnn", 86_537),
        ("dqn-nature", 1_687_206),
        ("dqn-grid", 66_582),
        ("dqn-minatar-4", 132_566),
        ("dqn-minatar-6", 132_854),
    ];
    assert_eq!(sizes.len(), shipped::NAMES.len());
    for (name, size) in sizes {
        assert_eq!(shipped_model(name).dim(), size, "{name}");
    }
}
