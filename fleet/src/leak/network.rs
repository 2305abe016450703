//! The shipped networks for loads in double precision, with derivatives in weights, inputs and targets.

use super::LeakError;

/// The loss of an observed gradient; the mean over all outputs of all samples.
#[derive(Debug, Clone, PartialEq)]
pub enum AttackedLoss {
    /// Squared error.
    Squared,
    /// Pinball loss of these quantiles.
    Pinball(Vec<f64>),
}

/// A network whose gradients are attacked.
#[derive(Debug, Clone, PartialEq)]
pub enum AttackedNetwork {
    /// Dense layers with Relu between them; values of each layer, inputs first.
    Dense(Vec<usize>),
    /// One Elman layer with tanh, and a dense output of its last state.
    Recurrent {
        /// Steps of a sample.
        lags: usize,
        /// Inputs of a step.
        features: usize,
        /// Values of the state.
        hidden: usize,
    },
}

/// Samples as an attacker imagines them.
#[derive(Debug, Clone, PartialEq)]
pub struct AttackedBatch {
    /// Number of samples.
    pub samples: usize,
    /// All inputs, then all targets, each sample by sample.
    pub values: Vec<f64>,
}

/// What a pass adds to: derivatives of the mean loss.
pub enum Derivative<'a> {
    /// In the weights.
    Weights(&'a mut [f64]),
    /// In the inputs and targets.
    Values(&'a mut [f64]),
}

impl AttackedNetwork {
    /// Inputs of a sample.
    pub fn inputs(&self) -> usize {
        match self {
            Self::Dense(sizes) => sizes[0],
            Self::Recurrent { lags, features, .. } => lags * features,
        }
    }

    /// Outputs of a sample.
    pub fn outputs(&self) -> usize {
        match self {
            Self::Dense(sizes) => sizes[sizes.len() - 1],
            Self::Recurrent { .. } => 1,
        }
    }

    /// Number of weights.
    pub fn parameters(&self) -> usize {
        match self {
            Self::Dense(sizes) => sizes.windows(2).map(|pair| pair[1] * (pair[0] + 1)).sum(),
            Self::Recurrent { features, hidden, .. } => hidden * (features + hidden + 2) + hidden + 1,
        }
    }

    /// Units and inputs of the first layer, where it is dense: its weights and then its biases come first.
    pub fn first_layer(&self) -> Option<(usize, usize)> {
        match self {
            Self::Dense(sizes) => Some((sizes[1], sizes[0])),
            Self::Recurrent { .. } => None,
        }
    }

    /// Adds the derivative of the mean loss to zeros.
    pub fn derive(&self, weights: &[f64], batch: &AttackedBatch, loss: &AttackedLoss, into: Derivative<'_>) {
        let (inputs, outputs) = (self.inputs(), self.outputs());
        let (all_inputs, targets) = batch.values.split_at(batch.samples * inputs);
        let scale = 1.0 / (batch.samples * outputs) as f64;
        let (mut of_weights, mut of_values) = match into {
            Derivative::Weights(slopes) => (Some(slopes), None),
            Derivative::Values(slopes) => (None, Some(slopes.split_at_mut(batch.samples * inputs))),
        };
        let samples = all_inputs.chunks_exact(inputs).zip(targets.chunks_exact(outputs));
        for (number, (sample, target)) in samples.enumerate() {
            let (in_inputs, in_targets) = match &mut of_values {
                Some((inputs_of, targets_of)) => (
                    Some(&mut inputs_of[number * inputs..(number + 1) * inputs]),
                    Some(&mut targets_of[number * outputs..(number + 1) * outputs]),
                ),
                None => (None, None),
            };
            let slope = |outputs: &[f64]| {
                let slopes: Vec<f64> = slopes(loss, outputs, target).map(|slope| slope * scale).collect();
                if let Some(in_targets) = in_targets {
                    in_targets.iter_mut().zip(&slopes).for_each(|(of, slope)| *of -= slope);
                }
                slopes
            };
            match self {
                Self::Dense(sizes) => {
                    dense(sizes, weights, sample, slope, of_weights.as_deref_mut(), in_inputs)
                }
                Self::Recurrent { features, hidden, .. } => {
                    recurrent(
                        (*features, *hidden),
                        weights,
                        sample,
                        slope,
                        of_weights.as_deref_mut(),
                        in_inputs,
                    );
                }
            }
        }
    }

    /// The gradient in the weights.
    pub fn gradient(&self, weights: &[f64], batch: &AttackedBatch, loss: &AttackedLoss) -> Vec<f64> {
        let mut gradient = vec![0.0; self.parameters()];
        self.derive(weights, batch, loss, Derivative::Weights(&mut gradient));
        gradient
    }

    /// Checks that so many weights are those of this network.
    pub fn check(&self, weights: usize) -> Result<(), LeakError> {
        match self.parameters() {
            wanted if wanted == weights => Ok(()),
            wanted => Err(LeakError::Weights { wanted, found: weights }),
        }
    }
}

/// Slopes of the loss in the outputs, before the mean.
fn slopes<'a>(
    loss: &'a AttackedLoss,
    outputs: &'a [f64],
    targets: &'a [f64],
) -> impl Iterator<Item = f64> + 'a {
    outputs.iter().zip(targets).enumerate().map(move |(column, (output, target))| match loss {
        AttackedLoss::Squared => 2.0 * (output - target),
        AttackedLoss::Pinball(levels) if output < target => -levels[column],
        AttackedLoss::Pinball(levels) if output > target => 1.0 - levels[column],
        AttackedLoss::Pinball(_) => 0.0,
    })
}

fn dense(
    sizes: &[usize],
    weights: &[f64],
    sample: &[f64],
    slope: impl FnOnce(&[f64]) -> Vec<f64>,
    mut of_weights: Option<&mut [f64]>,
    in_inputs: Option<&mut [f64]>,
) {
    let mut layers = Vec::with_capacity(sizes.len());
    let mut values = vec![sample.to_vec()];
    let mut offset = 0;
    for pair in sizes.windows(2) {
        let (from, to) = (pair[0], pair[1]);
        let (matrix, bias) = weights[offset..offset + to * (from + 1)].split_at(to * from);
        let last = layers.len() + 2 == sizes.len();
        let unit = |(row, bias): (&[f64], &f64)| {
            let sum = bias + dot(row, &values[layers.len()]);
            if last { sum } else { sum.max(0.0) }
        };
        let next = matrix.chunks_exact(from).zip(bias).map(unit).collect();
        layers.push(offset);
        values.push(next);
        offset += to * (from + 1);
    }
    let mut back = slope(&values[sizes.len() - 1]);
    for (layer, offset) in layers.into_iter().enumerate().rev() {
        let (from, to) = (sizes[layer], sizes[layer + 1]);
        if let Some(slopes) = &mut of_weights {
            let (matrix, bias) = slopes[offset..offset + to * (from + 1)].split_at_mut(to * from);
            for ((row, bias), back) in matrix.chunks_exact_mut(from).zip(bias).zip(&back) {
                if *back != 0.0 {
                    add_scaled(row, *back, &values[layer]);
                    *bias += back;
                }
            }
        }
        if layer == 0 && in_inputs.is_none() {
            return;
        }
        let matrix = &weights[offset..offset + to * from];
        let mut before = vec![0.0; from];
        for (row, back) in matrix.chunks_exact(from).zip(&back) {
            if *back != 0.0 {
                add_scaled(&mut before, *back, row);
            }
        }
        if layer > 0 {
            before.iter_mut().zip(&values[layer]).for_each(|(slope, value)| {
                if *value <= 0.0 {
                    *slope = 0.0;
                }
            });
        }
        back = before;
    }
    if let Some(in_inputs) = in_inputs {
        in_inputs.copy_from_slice(&back);
    }
}

/// Weights in the order W, R, both biases, the output's weights and its bias.
fn recurrent(
    (features, hidden): (usize, usize),
    weights: &[f64],
    sample: &[f64],
    slope: impl FnOnce(&[f64]) -> Vec<f64>,
    mut of_weights: Option<&mut [f64]>,
    mut in_inputs: Option<&mut [f64]>,
) {
    let (matrix, rest) = weights.split_at(hidden * features);
    let (recurrence, rest) = rest.split_at(hidden * hidden);
    let (biases, rest) = rest.split_at(2 * hidden);
    let (read_out, bias) = rest.split_at(hidden);
    let mut states = vec![vec![0.0; hidden]];
    for step in sample.chunks_exact(features) {
        let before = &states[states.len() - 1];
        let unit = |unit: usize| {
            let input = dot(&matrix[unit * features..(unit + 1) * features], step);
            let state = dot(&recurrence[unit * hidden..(unit + 1) * hidden], before);
            (input + state + biases[unit] + biases[hidden + unit]).tanh()
        };
        states.push((0..hidden).map(unit).collect());
    }
    let last = &states[states.len() - 1];
    let back = slope(&[dot(read_out, last) + bias[0]])[0];
    let (at_recurrence, at_biases) = (hidden * features, hidden * (features + hidden));
    let at_output = at_biases + 2 * hidden;
    if let Some(slopes) = &mut of_weights {
        add_scaled(&mut slopes[at_output..at_output + hidden], back, last);
        slopes[at_output + hidden] += back;
    }
    let mut state_slope: Vec<f64> = read_out.iter().map(|weight| back * weight).collect();
    for (number, step) in sample.chunks_exact(features).enumerate().rev() {
        let (before, after) = (&states[number], &states[number + 1]);
        state_slope.iter_mut().zip(after).for_each(|(slope, state)| *slope *= 1.0 - state * state);
        if let Some(slopes) = &mut of_weights {
            for (unit, slope) in state_slope.iter().enumerate() {
                add_scaled(&mut slopes[unit * features..(unit + 1) * features], *slope, step);
                let row = at_recurrence + unit * hidden;
                add_scaled(&mut slopes[row..row + hidden], *slope, before);
                slopes[at_biases + unit] += slope;
                slopes[at_biases + hidden + unit] += slope;
            }
        }
        let mut earlier = vec![0.0; hidden];
        for (unit, slope) in state_slope.iter().enumerate() {
            add_scaled(&mut earlier, *slope, &recurrence[unit * hidden..(unit + 1) * hidden]);
            if let Some(in_inputs) = &mut in_inputs {
                let row = &matrix[unit * features..(unit + 1) * features];
                add_scaled(&mut in_inputs[number * features..(number + 1) * features], *slope, row);
            }
        }
        state_slope = earlier;
    }
}

pub(super) fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

pub(super) fn add_scaled(into: &mut [f64], factor: f64, vector: &[f64]) {
    into.iter_mut().zip(vector).for_each(|(sum, value)| *sum += factor * value);
}
