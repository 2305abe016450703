//! Times of one gradient step of shipped models, for `bench/compare.py`: one JSON object a line on stdout.
//!
//!     cargo run --release --workspace --example gradient_time
#![allow(clippy::unwrap_used)]

use std::time::Instant;

use evenhand_models::{Batch, LoadOptions, Loss, Model, Predictor, Targets, Trainer, shipped};

struct TimedModel {
    name: &'static str,
    shape: &'static [usize],
    loss: Loss,
    classes: u32,
}

const CASES: &[TimedModel] = &[
    TimedModel { name: "mnist-cnn", shape: &[3, 1, 32, 32], loss: Loss::Nll, classes: 10 },
    TimedModel { name: "mnist-cnn", shape: &[32, 1, 32, 32], loss: Loss::Nll, classes: 10 },
    TimedModel { name: "electricity-rnn", shape: &[4, 24, 5], loss: Loss::Mse, classes: 0 },
    TimedModel { name: "electricity-rnn", shape: &[4, 96, 5], loss: Loss::Mse, classes: 0 },
    TimedModel { name: "cifar-cnn", shape: &[32, 3, 32, 32], loss: Loss::Nll, classes: 10 },
    TimedModel { name: "path-cnn", shape: &[32, 3, 28, 28], loss: Loss::Nll, classes: 9 },
    TimedModel { name: "hft-mlp", shape: &[32, 144], loss: Loss::Nll, classes: 3 },
    TimedModel { name: "electricity-mlp", shape: &[32, 520], loss: Loss::Mse, classes: 0 },
    TimedModel { name: "dqn-grid", shape: &[32, 4, 10, 10], loss: Loss::Mse, classes: 0 },
    TimedModel { name: "dqn-nature", shape: &[32, 4, 84, 84], loss: Loss::Mse, classes: 0 },
];

fn main() {
    let wanted = std::env::args().nth(1).unwrap_or_default();
    let gradient_only = std::env::args().any(|argument| argument == "--gradient-only");
    for case in CASES.iter().filter(|case| case.name.contains(&wanted)) {
        let model = Model::load(shipped::by_name(case.name).unwrap(), &LoadOptions::default()).unwrap();
        let mut weights = model.initial_weights();
        let mut trainer = Trainer::new(&model);
        let count: usize = case.shape.iter().product();
        let inputs: Vec<f32> = (0..count).map(|i| ((i * 7919) % 1009) as f32 / 504.5 - 1.0).collect();
        let outputs = trainer.forward(&weights, &inputs, case.shape).unwrap().0.len();
        let targets = match case.classes {
            0 => Targets::Values(vec![0.1; outputs]),
            classes => Targets::Classes((0..case.shape[0] as u32).map(|i| i % classes).collect()),
        };
        let batch = Batch { inputs, shape: case.shape.to_vec(), targets };

        let gradient = microseconds(|| {
            let step = trainer.gradient(&weights, &batch, case.loss).unwrap();
            weights.iter_mut().zip(&step.gradient).for_each(|(w, g)| *w -= 1e-4 * g);
        });
        if gradient_only {
            println!(r#"{{"model":"{}","shape":{:?},"gradient_us":{gradient:.1}}}"#, case.name, case.shape);
            continue;
        }
        let mut one = case.shape.to_vec();
        one[0] = 1;
        let sample = &batch.inputs[..one.iter().product()];
        let mut figures = String::new();
        for (kind, predictor) in
            [("", Predictor::new(&model, &weights)), ("folded_", Predictor::folding(&model, &weights))]
        {
            let mut predictor = predictor.unwrap();
            predictor.predict(sample, &one).unwrap();
            let predict = microseconds(|| drop(predictor.predict(sample, &one).unwrap()));
            let swap = microseconds(|| {
                predictor.set_weights(&weights).unwrap();
                predictor.predict(sample, &one).unwrap();
            });
            figures += &format!(r#","{kind}predict_us":{predict:.1},"{kind}swap_and_predict_us":{swap:.1}"#);
        }
        println!(
            r#"{{"model":"{}","shape":{:?},"gradient_us":{gradient:.1}{figures}}}"#,
            case.name, case.shape
        );
    }
}

/// Microseconds of processor time that one run takes: the best mean of several stretches, after some to warm up.
///
/// Processor time and not the clock's, so that other work on the machine does not count.
fn microseconds(mut work: impl FnMut()) -> f64 {
    let begin = Instant::now();
    work();
    let rounds = (0.15 / begin.elapsed().as_secs_f64().max(1e-6)).clamp(3.0, 2000.0) as usize;
    let mut best = f64::INFINITY;
    for _ in 0..6 {
        let begin = processor_nanoseconds();
        (0..rounds).for_each(|_| work());
        best = best.min((processor_nanoseconds() - begin) / rounds as f64 / 1e3);
    }
    best
}

/// Time this process has spent on a processor; the kernel updates it when the process is switched out, hence the yield.
fn processor_nanoseconds() -> f64 {
    std::thread::yield_now();
    let text = std::fs::read_to_string("/proc/self/schedstat").unwrap();
    text.split_whitespace().next().unwrap().parse().unwrap()
}
