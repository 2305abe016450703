//! Every operator's gradient against central differences, with respect to its data and to its weights.
//!
//! Each case is a graph `x + p → operator → y` with a squared error on y, so the gradient of p is that of the operator's
//! input. Every inference engine must agree with the forward pass of every case too.
#![allow(clippy::unwrap_used)]

mod support;

use std::collections::HashSet;

use evenhand_models::{Batch, Engine, InferenceEngine, LoadOptions, Loss, Model, Targets};
use support::Attr::{Float, Int, Ints, Tensor, Text, Texts};
use support::{
    DeclaredDim, OnnxBuilder, next, on_every_backend, predictor, trainer, uniform,
    with_every_inference_engine,
};

on_every_backend!(gradients_are_those_of_finite_differences, inference_computes_the_same_outputs);

type BuildOperator = fn(&mut OnnxBuilder, &mut u64);

struct OperatorCase {
    name: &'static str,
    opset: i64,
    shape: &'static [usize],
    /// Values of x + p: any, or positive.
    positive: bool,
    build: BuildOperator,
}

const fn case(name: &'static str, opset: i64, shape: &'static [usize], build: BuildOperator) -> OperatorCase {
    OperatorCase { name, opset, shape, positive: false, build }
}

const fn positive(
    name: &'static str,
    opset: i64,
    shape: &'static [usize],
    build: BuildOperator,
) -> OperatorCase {
    OperatorCase { name, opset, shape, positive: true, build }
}

fn random(b: &mut OnnxBuilder, seed: &mut u64, name: &str, shape: &[usize]) {
    let data: Vec<f32> = (0..shape.iter().product()).map(|_| uniform(seed)).collect();
    b.floats(name, shape, &data);
}

fn chain(b: &mut OnnxBuilder, operator: &str, attributes: &[(&str, support::Attr)]) {
    b.node(operator, &["a"], &["y"], attributes);
}

fn with_weight(
    b: &mut OnnxBuilder,
    seed: &mut u64,
    operator: &str,
    shape: &[usize],
    attributes: &[(&str, support::Attr)],
) {
    random(b, seed, "w", shape);
    b.node(operator, &["a", "w"], &["y"], attributes);
}

fn recurrent(
    b: &mut OnnxBuilder,
    seed: &mut u64,
    operator: &str,
    gates: usize,
    bias: f32,
    attributes: &[(&str, support::Attr)],
) {
    let mut attributes = attributes.to_vec();
    attributes.push(("hidden_size", Int(3)));
    random(b, seed, "W", &[1, gates * 3, 2]);
    random(b, seed, "R", &[1, gates * 3, 3]);
    let bias: Vec<f32> = (0..gates * 6).map(|i| bias * [1.0, -1.0, 1.2][i % 3]).collect();
    b.floats("B", &[1, gates * 6], &bias);
    random(b, seed, "h0", &[1, 2, 3]);
    let mut inputs = vec!["a", "W", "R", "B", "", "h0"];
    let mut outputs = vec!["all", "last"];
    if operator == "LSTM" {
        random(b, seed, "c0", &[1, 2, 3]);
        inputs.push("c0");
        outputs.push("cell");
    }
    b.node(operator, &inputs, &outputs, &attributes);
    // Every output takes part: all hidden states, the last one, and the cell.
    b.node("Squeeze", &["all", "one"], &["squeezed"], &[]).ints("one", &[1], &[1]);
    let mut parts = vec!["squeezed"];
    parts.extend(&outputs[1..]);
    b.node("Concat", &parts, &["y"], &[("axis", Int(0))]);
}

#[rustfmt::skip]
const CASES: &[OperatorCase] = &[
    case("Gemm", 13, &[3, 4], |b, s| { random(b, s, "c", &[2]); random(b, s, "w", &[4, 2]); b.node("Gemm", &["a", "w", "c"], &["y"], &[]); }),
    case("Gemm, both transposed, scaled", 11, &[4, 3], |b, s| { random(b, s, "c", &[3, 1]); random(b, s, "w", &[2, 4]); b.node("Gemm", &["a", "w", "c"], &["y"], &[("transA", Int(1)), ("transB", Int(1)), ("alpha", Float(0.5)), ("beta", Float(1.5))]); }),
    case("Gemm without C", 13, &[3, 4], |b, s| with_weight(b, s, "Gemm", &[2, 4], &[("transB", Int(1))])),
    case("MatMul", 13, &[3, 4], |b, s| with_weight(b, s, "MatMul", &[4, 2], &[])),
    case("MatMul of a batch with one matrix", 13, &[2, 3, 4], |b, s| with_weight(b, s, "MatMul", &[4, 2], &[])),
    case("MatMul of batches, broadcast", 13, &[2, 1, 3, 4], |b, s| with_weight(b, s, "MatMul", &[3, 4, 2], &[])),
    case("MatMul with a vector", 13, &[2, 3, 4], |b, s| with_weight(b, s, "MatMul", &[4], &[])),
    case("Add, broadcast", 13, &[2, 3, 4], |b, s| with_weight(b, s, "Add", &[3, 1], &[])),
    case("Sub, broadcast to a higher rank", 13, &[4], |b, s| with_weight(b, s, "Sub", &[2, 3, 1], &[])),
    case("Mul, broadcast", 14, &[2, 3], |b, s| with_weight(b, s, "Mul", &[3], &[])),
    case("Mul by itself", 14, &[2, 3], |b, _| { b.node("Mul", &["a", "a"], &["y"], &[]); }),
    positive("Div", 14, &[2, 3], |b, s| { random(b, s, "w", &[3]); b.node("Div", &["w", "a"], &["y"], &[]); }),
    case("Div by a literal", 13, &[2, 3], |b, _| { b.floats("two", &[], &[2.0]).node("Div", &["a", "two"], &["y"], &[]); }),
    case("Sub from a literal", 13, &[2, 3], |b, _| { b.floats("two", &[], &[2.0]).node("Sub", &["two", "a"], &["y"], &[]); }),
    case("Neg", 13, &[2, 3], |b, _| chain(b, "Neg", &[])),
    case("Relu", 14, &[3, 4], |b, _| chain(b, "Relu", &[])),
    case("LeakyRelu", 16, &[3, 4], |b, _| chain(b, "LeakyRelu", &[("alpha", Float(0.2))])),
    case("Tanh", 13, &[3, 4], |b, _| chain(b, "Tanh", &[])),
    case("Sigmoid", 13, &[3, 4], |b, _| chain(b, "Sigmoid", &[])),
    case("Exp", 13, &[3, 4], |b, _| chain(b, "Exp", &[])),
    positive("Log", 13, &[3, 4], |b, _| chain(b, "Log", &[])),
    positive("Sqrt", 13, &[3, 4], |b, _| chain(b, "Sqrt", &[])),
    case("Pow 2", 15, &[3, 4], |b, _| { b.floats("two", &[], &[2.0]).node("Pow", &["a", "two"], &["y"], &[]); }),
    positive("Pow 1.5", 15, &[3, 4], |b, _| { b.floats("e", &[], &[1.5]).node("Pow", &["a", "e"], &["y"], &[]); }),
    positive("Pow by a tensor", 15, &[2, 2], |b, _| { b.floats("e", &[2], &[1.5, 3.0]).node("Pow", &["a", "e"], &["y"], &[]); }),
    case("Clip", 13, &[3, 4], |b, _| { b.floats("lo", &[], &[-0.5]).floats("hi", &[], &[0.4]).node("Clip", &["a", "lo", "hi"], &["y"], &[]); }),
    case("Clip above only", 11, &[3, 4], |b, _| { b.floats("hi", &[], &[0.4]).node("Clip", &["a", "", "hi"], &["y"], &[]); }),
    case("Softmax", 13, &[2, 3, 4], |b, _| chain(b, "Softmax", &[("axis", Int(1))])),
    case("Softmax, last axis by default", 13, &[2, 3, 4], |b, _| chain(b, "Softmax", &[])),
    case("Softmax of operator set 11 flattens", 11, &[2, 3, 4], |b, _| chain(b, "Softmax", &[("axis", Int(1))])),
    case("LogSoftmax", 13, &[2, 3, 4], |b, _| chain(b, "LogSoftmax", &[("axis", Int(-1))])),
    case("LogSoftmax of operator set 11 flattens", 11, &[2, 3, 4], |b, _| chain(b, "LogSoftmax", &[])),
    case("Conv", 11, &[2, 2, 5, 4], |b, s| { random(b, s, "c", &[3]); random(b, s, "w", &[3, 2, 3, 2]); b.node("Conv", &["a", "w", "c"], &["y"], &[("kernel_shape", Ints(vec![3, 2]))]); }),
    case("Conv, strides, uneven pads, dilations", 11, &[2, 2, 6, 7], |b, s| with_weight(b, s, "Conv", &[3, 2, 3, 2], &[("strides", Ints(vec![2, 1])), ("pads", Ints(vec![1, 0, 2, 1])), ("dilations", Ints(vec![1, 2]))])),
    case("Conv in groups", 11, &[1, 4, 4, 4], |b, s| with_weight(b, s, "Conv", &[6, 2, 2, 2], &[("group", Int(2))])),
    case("Conv, depthwise", 11, &[2, 3, 4, 4], |b, s| with_weight(b, s, "Conv", &[3, 1, 3, 3], &[("group", Int(3)), ("pads", Ints(vec![1, 1, 1, 1]))])),
    case("Conv 1-D", 11, &[2, 2, 7], |b, s| { random(b, s, "c", &[3]); random(b, s, "w", &[3, 2, 3]); b.node("Conv", &["a", "w", "c"], &["y"], &[("strides", Ints(vec![2])), ("pads", Ints(vec![2, 1])), ("dilations", Ints(vec![2]))]); }),
    case("Conv, SAME_UPPER", 11, &[1, 1, 5, 6], |b, s| with_weight(b, s, "Conv", &[2, 1, 2, 3], &[("auto_pad", Text("SAME_UPPER")), ("strides", Ints(vec![2, 2]))])),
    case("Conv, SAME_LOWER", 11, &[1, 1, 5, 6], |b, s| with_weight(b, s, "Conv", &[2, 1, 2, 3], &[("auto_pad", Text("SAME_LOWER"))])),
    case("Conv, VALID", 11, &[1, 1, 5, 6], |b, s| with_weight(b, s, "Conv", &[2, 1, 2, 3], &[("auto_pad", Text("VALID"))])),
    case("MaxPool", 12, &[2, 2, 4, 6], |b, _| chain(b, "MaxPool", &[("kernel_shape", Ints(vec![2, 2])), ("strides", Ints(vec![2, 2]))])),
    case("MaxPool, overlapping, padded, dilated", 12, &[1, 2, 6, 6], |b, _| chain(b, "MaxPool", &[("kernel_shape", Ints(vec![3, 2])), ("strides", Ints(vec![2, 1])), ("pads", Ints(vec![1, 0, 1, 1])), ("dilations", Ints(vec![1, 2]))])),
    case("MaxPool, rounded up", 12, &[1, 1, 5, 5], |b, _| chain(b, "MaxPool", &[("kernel_shape", Ints(vec![2, 2])), ("strides", Ints(vec![2, 2])), ("ceil_mode", Int(1))])),
    case("MaxPool 1-D", 12, &[2, 2, 6], |b, _| chain(b, "MaxPool", &[("kernel_shape", Ints(vec![3])), ("strides", Ints(vec![3]))])),
    case("Conv, more outputs than a register holds", 11, &[1, 3, 4, 5], |b, s| { random(b, s, "c", &[21]); random(b, s, "w", &[21, 3, 2, 2]); b.node("Conv", &["a", "w", "c"], &["y"], &[("pads", Ints(vec![1, 1, 0, 0]))]); }),
    case("Conv, runs longer than a block", 11, &[2, 13, 3, 5], |b, s| with_weight(b, s, "Conv", &[2, 13, 2, 5], &[("pads", Ints(vec![0, 2, 0, 2]))])),
    case("Conv in groups, strided and dilated", 11, &[2, 4, 6, 7], |b, s| { random(b, s, "c", &[6]); random(b, s, "w", &[6, 2, 2, 3]); b.node("Conv", &["a", "w", "c"], &["y"], &[("group", Int(2)), ("strides", Ints(vec![1, 2])), ("dilations", Ints(vec![2, 2])), ("pads", Ints(vec![1, 2, 1, 2]))]); }),
    case("Tanh, then MaxPool", 12, &[1, 2, 4, 4], |b, _| { b.node("Tanh", &["a"], &["t"], &[]).node("MaxPool", &["t"], &["y"], &[("kernel_shape", Ints(vec![2, 2]))]); }),
    case("Neg, then MaxPool", 12, &[1, 2, 4, 4], |b, _| { b.node("Neg", &["a"], &["t"], &[]).node("MaxPool", &["t"], &["y"], &[("kernel_shape", Ints(vec![2, 2]))]); }),
    case("LeakyRelu that falls, then MaxPool", 16, &[1, 2, 4, 4], |b, _| { b.node("LeakyRelu", &["a"], &["t"], &[("alpha", Float(-0.3))]).node("MaxPool", &["t"], &["y"], &[("kernel_shape", Ints(vec![2, 2])), ("strides", Ints(vec![2, 2]))]); }),
    case("Sigmoid that is needed besides MaxPool", 12, &[1, 2, 3, 3], |b, _| { b.node("Sigmoid", &["a"], &["t"], &[]).node("MaxPool", &["t"], &["m"], &[("kernel_shape", Ints(vec![3, 3]))]).node("Mul", &["t", "m"], &["y"], &[]); }),
    case("AveragePool", 11, &[2, 2, 4, 4], |b, _| chain(b, "AveragePool", &[("kernel_shape", Ints(vec![2, 2])), ("strides", Ints(vec![2, 2]))])),
    case("AveragePool, padding not counted", 11, &[1, 1, 4, 5], |b, _| chain(b, "AveragePool", &[("kernel_shape", Ints(vec![3, 3])), ("strides", Ints(vec![2, 2])), ("pads", Ints(vec![1, 1, 1, 1]))])),
    case("AveragePool, padding counted", 11, &[1, 1, 4, 5], |b, _| chain(b, "AveragePool", &[("kernel_shape", Ints(vec![3, 3])), ("strides", Ints(vec![2, 2])), ("pads", Ints(vec![1, 1, 1, 1])), ("count_include_pad", Int(1))])),
    case("AveragePool 1-D", 11, &[1, 2, 5], |b, _| chain(b, "AveragePool", &[("kernel_shape", Ints(vec![2]))])),
    case("GlobalAveragePool", 11, &[2, 3, 2, 4], |b, _| chain(b, "GlobalAveragePool", &[])),
    case("BatchNormalization", 15, &[2, 3, 2, 2], |b, s| { random(b, s, "scale", &[3]); random(b, s, "bias", &[3]); b.floats("mean", &[3], &[0.1, -0.2, 0.3]).floats("var", &[3], &[0.5, 1.0, 2.0]).node("BatchNormalization", &["a", "scale", "bias", "mean", "var"], &["y"], &[("epsilon", Float(1e-3)), ("momentum", Float(0.9))]); }),
    case("BatchNormalization of vectors", 11, &[4, 3], |b, s| { random(b, s, "scale", &[3]); random(b, s, "bias", &[3]); b.floats("mean", &[3], &[0.1, -0.2, 0.3]).floats("var", &[3], &[0.5, 1.0, 2.0]).node("BatchNormalization", &["a", "scale", "bias", "mean", "var"], &["y"], &[]); }),
    case("BatchNormalization, statistics stored as weights", 15, &[4, 3], |b, _| { b.floats("scale", &[3], &[0.5, 1.0, 2.0]).floats("bias", &[3], &[0.1, -0.2, 0.3]).node("BatchNormalization", &["a", "scale", "bias", "bias", "scale"], &["y"], &[]); }),
    case("BatchNormalization, statistics as Identity of weights", 15, &[4, 3], |b, _| { b.floats("scale", &[3], &[0.5, 1.0, 2.0]).floats("bias", &[3], &[0.1, -0.2, 0.3]).node("Identity", &["scale"], &["var"], &[]).node("Identity", &["bias"], &["mean"], &[]).node("BatchNormalization", &["a", "scale", "bias", "mean", "var"], &["y"], &[]); }),
    case("LayerNormalization", 17, &[2, 3, 4], |b, s| { random(b, s, "scale", &[4]); random(b, s, "bias", &[4]); b.node("LayerNormalization", &["a", "scale", "bias"], &["y"], &[("axis", Int(-1)), ("epsilon", Float(1e-3))]); }),
    case("LayerNormalization over two axes", 17, &[2, 3, 4], |b, s| { random(b, s, "scale", &[3, 4]); b.node("LayerNormalization", &["a", "scale"], &["y"], &[("axis", Int(1))]); }),
    case("Flatten", 13, &[2, 3, 2], |b, _| chain(b, "Flatten", &[("axis", Int(1))])),
    case("Reshape", 13, &[2, 3, 2], |b, _| { b.ints("shape", &[3], &[0, -1, 3]).node("Reshape", &["a", "shape"], &["y"], &[]); }),
    case("Transpose", 13, &[2, 3, 4], |b, s| { b.node("Transpose", &["a"], &["t"], &[("perm", Ints(vec![2, 0, 1]))]); random(b, s, "w", &[3]); b.node("Mul", &["t", "w"], &["y"], &[]); }),
    case("Transpose, reversed by default", 13, &[2, 3], |b, _| chain(b, "Transpose", &[])),
    case("Squeeze and Unsqueeze of operator set 11", 11, &[2, 1, 3], |b, _| { b.node("Squeeze", &["a"], &["t"], &[("axes", Ints(vec![1]))]).node("Unsqueeze", &["t"], &["y"], &[("axes", Ints(vec![0, -1]))]); }),
    case("Squeeze and Unsqueeze of operator set 13", 13, &[2, 1, 3], |b, _| { b.ints("one", &[1], &[1]).node("Squeeze", &["a", "one"], &["t"], &[]).node("Unsqueeze", &["t", "one"], &["y"], &[]); }),
    case("Concat", 13, &[2, 3], |b, s| { random(b, s, "w", &[2, 1]); b.node("Concat", &["a", "w", "a"], &["y"], &[("axis", Int(1))]); }),
    case("Slice", 13, &[4, 5], |b, _| { b.ints("from", &[2], &[1, -4]).ints("to", &[2], &[3, 99]).ints("axes", &[2], &[0, 1]).node("Slice", &["a", "from", "to", "axes"], &["y"], &[]); }),
    case("Slice, backwards and in steps", 13, &[4, 5], |b, _| { b.ints("from", &[2], &[0, -1]).ints("to", &[2], &[99, -99]).ints("axes", &[2], &[0, 1]).ints("steps", &[2], &[2, -2]).node("Slice", &["a", "from", "to", "axes", "steps"], &["y"], &[]); }),
    case("Gather", 13, &[4, 3], |b, _| { b.ints("which", &[2, 2], &[0, -1, 2, 0]).node("Gather", &["a", "which"], &["y"], &[("axis", Int(0))]); }),
    case("Gather of one row", 13, &[4, 3], |b, _| { b.ints("which", &[], &[1]).node("Gather", &["a", "which"], &["y"], &[("axis", Int(1))]); }),
    case("Split of operator set 11", 11, &[2, 5], |b, _| { b.node("Split", &["a"], &["l", "r"], &[("axis", Int(1)), ("split", Ints(vec![2, 3]))]).node("Concat", &["r", "l"], &["y"], &[("axis", Int(1))]); }),
    case("Split of operator set 13", 13, &[2, 4], |b, _| { b.node("Split", &["a"], &["l", "r"], &[("axis", Int(1))]).node("Mul", &["r", "l"], &["y"], &[]); }),
    case("Split of operator set 18", 18, &[5, 2], |b, _| { b.node("Split", &["a"], &["l", "r"], &[("num_outputs", Int(2))]).node("Concat", &["r", "l"], &["y"], &[("axis", Int(0))]); }),
    case("Expand", 13, &[2, 1, 3], |b, s| { random(b, s, "w", &[4, 1, 2, 1]); b.ints("shape", &[3], &[2, 2, 1]).node("Expand", &["a", "shape"], &["t"], &[]).node("Mul", &["t", "w"], &["y"], &[]); }),
    case("Identity, Cast and Dropout at inference", 13, &[2, 3], |b, _| { b.node("Identity", &["a"], &["i"], &[]).node("Cast", &["i"], &["c"], &[("to", Int(1))]).node("Dropout", &["c"], &["y"], &[]); }),
    case("ReduceMean of operator set 13", 13, &[2, 3, 4], |b, _| chain(b, "ReduceMean", &[("axes", Ints(vec![-1, 0])), ("keepdims", Int(0))])),
    case("ReduceMean of operator set 18", 18, &[2, 3, 4], |b, _| { b.ints("axes", &[1], &[1]).node("ReduceMean", &["a", "axes"], &["y"], &[]); }),
    case("ReduceSum of operator set 11", 11, &[2, 3, 4], |b, _| chain(b, "ReduceSum", &[("axes", Ints(vec![2]))])),
    case("ReduceSum of everything", 13, &[2, 3], |b, _| chain(b, "ReduceSum", &[("keepdims", Int(0))])),
    case("RNN", 14, &[4, 2, 2], |b, s| recurrent(b, s, "RNN", 1, 0.3, &[])),
    // A bias that keeps every unit far from Relu's kink.
    case("RNN with Relu", 14, &[4, 2, 2], |b, s| recurrent(b, s, "RNN", 1, 2.5, &[("activations", Texts(vec!["Relu"]))])),
    case("RNN with Sigmoid", 14, &[4, 2, 2], |b, s| recurrent(b, s, "RNN", 1, 0.3, &[("activations", Texts(vec!["Sigmoid"]))])),
    case("GRU, linear before reset", 14, &[4, 2, 2], |b, s| recurrent(b, s, "GRU", 3, 0.3, &[("linear_before_reset", Int(1))])),
    case("GRU", 14, &[4, 2, 2], |b, s| recurrent(b, s, "GRU", 3, 0.3, &[])),
    case("LSTM", 14, &[4, 2, 2], |b, s| recurrent(b, s, "LSTM", 4, 0.3, &[])),
    case("Constant node as a weight", 13, &[2, 3], |b, _| { b.node("Constant", &[], &["w"], &[("value", Tensor(support::floats("", &[3], &[0.3, -0.7, 0.9])))]).node("Mul", &["a", "w"], &["y"], &[]); }),
    case("shape arithmetic", 15, &[2, 3, 4], |b, _| {
        b.node("Shape", &["a"], &["s"], &[]).ints("zero", &[1], &[0]).ints("rest", &[1], &[-1]);
        b.node("Gather", &["s", "zero"], &["batch"], &[]).node("Concat", &["batch", "rest"], &["flat"], &[("axis", Int(0))]);
        b.node("Reshape", &["a", "flat"], &["t"], &[]);
        b.node("ConstantOfShape", &["batch"], &["ones"], &[("value", Tensor(support::floats("", &[1], &[2.0])))]);
        b.ints("one", &[1], &[1]).node("Unsqueeze", &["ones", "one"], &["column"], &[]).node("Mul", &["t", "column"], &["y"], &[]);
    }),
];

/// Values at least 0.1 apart and 0.05 from zero and from the bounds the cases use, so that no difference crosses a kink.
fn spread(count: usize, positive: bool, seed: &mut u64) -> Vec<f32> {
    let mut order: Vec<usize> = (0..count).collect();
    (1..count).rev().for_each(|i| order.swap(i, next(seed) as usize % (i + 1)));
    let step = if positive { 1.5 / count as f32 } else { 0.1 };
    let low = if positive { 0.5 } else { 0.05 - 0.1 * (count / 2) as f32 };
    order.into_iter().map(|i| low + step * i as f32).collect()
}

fn build(case: &OperatorCase) -> (Model, Vec<f32>) {
    let (b, x) = file(case);
    let model = Model::load(&b.bytes(), &LoadOptions::default());
    (model.unwrap_or_else(|error| panic!("{}: {error}", case.name)), x)
}

fn file(case: &OperatorCase) -> (OnnxBuilder, Vec<f32>) {
    let mut seed = 7;
    let mut b = OnnxBuilder::new(case.opset);
    let dims: Vec<DeclaredDim> = case.shape.iter().map(|&d| DeclaredDim::Fixed(d as i64)).collect();
    b.input("x", &dims);
    let wanted = spread(case.shape.iter().product(), case.positive, &mut seed);
    let p: Vec<f32> = wanted.iter().map(|_| uniform(&mut seed)).collect();
    let x = wanted.iter().zip(&p).map(|(sum, p)| sum - p).collect();
    b.floats("p", case.shape, &p).node("Add", &["x", "p"], &["a"], &[]);
    (case.build)(&mut b, &mut seed);
    b.output("y");
    (b, x)
}

/// Every operator that the loader supports is differentiated here, except those that compute shapes only.
#[test]
fn every_operator_has_a_case() {
    let mut b = OnnxBuilder::new(17);
    b.input("x", &[DeclaredDim::Fixed(1)]).node("Unknown", &["x"], &["y"], &[]).output("y");
    let error = Model::load(&b.bytes(), &LoadOptions::default()).unwrap_err().to_string();
    let supported = error.split("supported are ").nth(1).unwrap();
    let supported: Vec<&str> =
        supported.split(|c: char| !c.is_alphanumeric()).filter(|s| !s.is_empty()).collect();
    assert!(supported.len() >= 45, "{error}");
    let seen: HashSet<String> = CASES
        .iter()
        .flat_map(|case| file(case).0.file.graph.unwrap().node)
        .map(|node| node.op_type)
        .collect();
    let shapes = ["Equal", "Range", "ReduceProd", "Size", "Where"];
    let missing: Vec<&&str> =
        supported.iter().filter(|name| !seen.contains(**name) && !shapes.contains(name)).collect();
    assert!(missing.is_empty(), "{missing:?}");
}

fn gradients_are_those_of_finite_differences<B: Engine>() {
    let mut wrong: Vec<String> = Vec::new();
    for case in CASES {
        let (model, inputs) = build(case);
        let weights = model.initial_weights();
        let mut trainer = trainer::<B>(&model);
        let (output, _) = trainer.forward(&weights, &inputs, case.shape).unwrap();
        let mut seed = 11;
        let targets = Targets::Values(output.iter().map(|v| v + uniform(&mut seed)).collect());
        let batch = Batch { inputs, shape: case.shape.to_vec(), targets };
        let found = trainer.gradient(&weights, &batch, Loss::Mse).unwrap().gradient;

        let mut loss = |index: usize, change: f32| {
            let mut moved = weights.clone();
            moved[index] += change;
            f64::from(trainer.evaluate(&moved, &batch, Loss::Mse).unwrap().loss)
        };
        // Richardson's extrapolation of two central differences.
        let mut difference = |i: usize, h: f32| (loss(i, h) - loss(i, -h)) / f64::from(2.0 * h);
        let expected: Vec<f64> =
            (0..weights.len()).map(|i| (4.0 * difference(i, 0.01) - difference(i, 0.02)) / 3.0).collect();
        let scale = expected.iter().fold(0.1f64, |max, v| max.max(v.abs()));
        for (i, (found, expected)) in found.iter().zip(&expected).enumerate() {
            let error = (f64::from(*found) - expected).abs();
            if error >= 1e-3 * scale {
                wrong.push(format!("{}: parameter {i} is {found}, differences give {expected}", case.name));
            }
        }
        assert!(found.iter().any(|v| *v != 0.0), "{}: the gradient is zero everywhere", case.name);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn inference_computes_the_same_outputs<B: Engine>() {
    with_every_inference_engine!(computes_the_same_outputs, B);
}

fn computes_the_same_outputs<E: InferenceEngine, B: Engine>() {
    let mut wrong: Vec<String> = Vec::new();
    for case in CASES {
        let (model, inputs) = build(case);
        let weights = model.initial_weights();
        let (burn, _) = trainer::<B>(&model).forward(&weights, &inputs, case.shape).unwrap();
        let predicted = predictor::<E>(&model, &weights).predict(&inputs, case.shape);
        let scale = burn.iter().fold(1.0f32, |max, v| v.abs().max(max));
        match predicted {
            Err(error) => wrong.push(format!("{}: {error}", case.name)),
            Ok(predicted) => {
                assert_eq!(predicted.len(), burn.len(), "{}", case.name);
                if let Some((a, b)) =
                    predicted.iter().zip(&burn).find(|(a, b)| (*a - *b).abs() > 1e-5 * scale)
                {
                    wrong.push(format!("{}: {} {a}, training {b}", case.name, E::NAME));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
