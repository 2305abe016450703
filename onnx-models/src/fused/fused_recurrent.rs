//! Recurrent layers over a whole sequence: two matrix products a step forward and one back, everything else in bulk.

use burn_flex::FlexTensor;

use super::FusedKernel;
use super::fused_activation::{sigmoid_all, tanh_all};
use super::matrix_product::{MatrixView, WriteMode, multiply};
use super::memory_layout::{dense, shape, tensor, values};
use crate::kernel::{CellActivation, RecurrentCell};

#[derive(Debug, Clone)]
pub(super) struct FusedRecurrent(pub(super) RecurrentCell);

#[derive(Debug, Clone, Copy)]
struct RecurrentSizes {
    steps: usize,
    batch: usize,
    inputs: usize,
    hidden: usize,
    gates: usize,
}

impl RecurrentSizes {
    /// Values of a state of the whole batch.
    fn state(self) -> usize {
        self.batch * self.hidden
    }

    /// Columns of all gates.
    fn width(self) -> usize {
        self.gates * self.hidden
    }

    /// Values of all gates of the whole batch.
    fn step(self) -> usize {
        self.batch * self.width()
    }
}

#[derive(Debug, Clone)]
pub(super) struct SavedRecurrence {
    sizes: RecurrentSizes,
    inputs: Vec<FlexTensor>,
    /// The output: all hidden states, and an LSTM's last cell.
    out: FlexTensor,
    /// Gates after their nonlinearity, `[steps, batch, gates·hidden]`; an Elman cell's are its states.
    gates: Vec<f32>,
    /// Further values of each step: an LSTM's cells, a GRU's candidate before the reset or after.
    extra: Vec<f32>,
}

impl FusedRecurrent {
    fn run(&self, inputs: Vec<FlexTensor>) -> (FlexTensor, SavedRecurrence) {
        let inputs: Vec<FlexTensor> = inputs.into_iter().map(dense).collect();
        let [steps, batch, width] = shape(&inputs[0]);
        let [_, hidden] = shape(&inputs[4]);
        let s = RecurrentSizes { steps, batch, inputs: width, hidden, gates: self.0.gates() };
        let [x, w, r, b, h] = [0, 1, 2, 3, 4].map(|i| values(&inputs[i]));

        // From the inputs of all steps at once. The second bias joins it unless a GRU's reset comes in between.
        let (wb, rb) = b.split_at(s.width());
        let late = if matches!(self.0, RecurrentCell::Gru { linear_before_reset: true }) {
            2 * hidden
        } else {
            s.width()
        };
        let bias: Vec<f32> = (0..s.width()).map(|i| if i < late { wb[i] + rb[i] } else { wb[i] }).collect();
        let mut gates = bias.repeat(steps * batch);
        let weights = MatrixView::dense(w, s.width(), s.inputs).transposed();
        multiply(
            &mut gates,
            s.width(),
            MatrixView::dense(x, steps * batch, s.inputs),
            weights,
            WriteMode::Add,
        );

        let mut extra = Vec::new();
        let mut out = Vec::with_capacity((steps + 1) * s.state());
        match self.0 {
            RecurrentCell::Elman(activation) => {
                for step in 0..steps {
                    let (before, now) = gates.split_at_mut(step * s.step());
                    let last = if step == 0 { h } else { &before[(step - 1) * s.step()..] };
                    let now = &mut now[..s.step()];
                    recur(s, now, last, r);
                    match activation {
                        CellActivation::Tanh => tanh_all(now),
                        CellActivation::Sigmoid => sigmoid_all(now),
                        CellActivation::Relu => now.iter_mut().for_each(|x| *x = x.max(0.0)),
                    }
                }
                out = gates;
                gates = Vec::new();
            }
            RecurrentCell::Lstm => {
                let mut cell = values(&inputs[5]).to_vec();
                for step in 0..steps {
                    let now = &mut gates[step * s.step()..(step + 1) * s.step()];
                    let last = if step == 0 { h } else { &out[(step - 1) * s.state()..] };
                    recur(s, now, last, r);
                    for (row, cell) in now.chunks_exact_mut(s.width()).zip(cell.chunks_exact_mut(hidden)) {
                        let (iof, candidate) = row.split_at_mut(3 * hidden);
                        sigmoid_all(iof);
                        tanh_all(candidate);
                        for j in 0..hidden {
                            cell[j] = iof[2 * hidden + j] * cell[j] + iof[j] * candidate[j];
                        }
                    }
                    let start = out.len();
                    out.extend_from_slice(&cell);
                    extra.extend_from_slice(&cell);
                    tanh_all(&mut out[start..]);
                    for (row, state) in now.chunks_exact(s.width()).zip(out[start..].chunks_exact_mut(hidden))
                    {
                        state.iter_mut().zip(&row[hidden..]).for_each(|(h, o)| *h *= o);
                    }
                }
                out.extend_from_slice(&cell);
            }
            RecurrentCell::Gru { linear_before_reset } => {
                for step in 0..steps {
                    let now = &mut gates[step * s.step()..(step + 1) * s.step()];
                    let last = if step == 0 { h } else { &out[(step - 1) * s.state()..] };
                    let last = last[..s.state()].to_vec();
                    // The candidate's part comes after the reset gate is known.
                    let (zr, n) = r.split_at(2 * hidden * hidden);
                    let states = MatrixView::dense(&last, batch, hidden);
                    multiply(
                        now,
                        s.width(),
                        states,
                        MatrixView::dense(zr, 2 * hidden, hidden).transposed(),
                        WriteMode::Add,
                    );
                    let mut reset_operand =
                        if linear_before_reset { rb[2 * hidden..].repeat(batch) } else { last.clone() };
                    let n = MatrixView::dense(n, hidden, hidden).transposed();
                    if linear_before_reset {
                        multiply(&mut reset_operand, hidden, states, n, WriteMode::Add);
                    }
                    for (row, reset_operand) in
                        now.chunks_exact_mut(s.width()).zip(reset_operand.chunks_exact_mut(hidden))
                    {
                        let (zr, candidate) = row.split_at_mut(2 * hidden);
                        sigmoid_all(zr);
                        for j in 0..hidden {
                            match linear_before_reset {
                                true => candidate[j] += zr[hidden + j] * reset_operand[j],
                                false => reset_operand[j] *= zr[hidden + j],
                            }
                        }
                    }
                    if !linear_before_reset {
                        multiply(
                            &mut now[2 * hidden..],
                            s.width(),
                            MatrixView::dense(&reset_operand, batch, hidden),
                            n,
                            WriteMode::Add,
                        );
                    }
                    for (row, last) in now.chunks_exact_mut(s.width()).zip(last.chunks_exact(hidden)) {
                        let (zr, candidate) = row.split_at_mut(2 * hidden);
                        tanh_all(candidate);
                        out.extend((0..hidden).map(|j| candidate[j] + zr[j] * (last[j] - candidate[j])));
                    }
                    extra.extend_from_slice(&reset_operand);
                }
            }
        }
        let out = tensor(out, &[steps + usize::from(self.0 == RecurrentCell::Lstm), batch, hidden]);
        (out.clone(), SavedRecurrence { sizes: s, inputs, out, gates, extra })
    }

    fn differentiate(&self, saved: SavedRecurrence, gradient: FlexTensor) -> Vec<FlexTensor> {
        let SavedRecurrence { sizes: s, inputs, out, gates, extra } = saved;
        let gradient = dense(gradient);
        let (slopes, out) = (values(&gradient), values(&out));
        let [x, w, r, _, h] = [0, 1, 2, 3, 4].map(|i| values(&inputs[i]));
        let hidden = s.hidden;
        let recurrent = MatrixView::dense(r, s.width(), hidden);
        let state = |step: usize| &out[step * s.state()..(step + 1) * s.state()];
        let before = |step: usize| if step == 0 { h } else { state(step - 1) };

        // Slopes of the gates before their nonlinearity, as the inputs and as the states see them.
        let mut from_x = vec![0.0f32; s.steps * s.step()];
        let reset_after = matches!(self.0, RecurrentCell::Gru { linear_before_reset: true });
        let mut from_h = vec![0.0f32; if reset_after { from_x.len() } else { 0 }];
        let mut carry = vec![0.0f32; s.state()];
        let mut cell_carry: Vec<f32> = slopes[s.steps * s.state()..].to_vec();
        for step in (0..s.steps).rev() {
            let now = &mut from_x[step * s.step()..(step + 1) * s.step()];
            carry.iter_mut().zip(&slopes[step * s.state()..]).for_each(|(sum, slope)| *sum += slope);
            let last = before(step);
            match self.0 {
                RecurrentCell::Elman(activation) => {
                    let derivative = |y: f32| match activation {
                        CellActivation::Tanh => 1.0 - y * y,
                        CellActivation::Sigmoid => y * (1.0 - y),
                        CellActivation::Relu => f32::from(y > 0.0),
                    };
                    for ((to, slope), y) in now.iter_mut().zip(&carry).zip(state(step)) {
                        *to = slope * derivative(*y);
                    }
                    multiply(
                        &mut carry,
                        hidden,
                        MatrixView::dense(now, s.batch, s.width()),
                        recurrent,
                        WriteMode::Replace,
                    );
                }
                RecurrentCell::Lstm => {
                    let cells = &extra[step * s.state()..(step + 1) * s.state()];
                    let old = if step == 0 { values(&inputs[5]) } else { &extra[(step - 1) * s.state()..] };
                    let gates = &gates[step * s.step()..(step + 1) * s.step()];
                    let mut squashed = cells.to_vec();
                    tanh_all(&mut squashed);
                    for sample in 0..s.batch {
                        let row = &gates[sample * s.width()..(sample + 1) * s.width()];
                        let to = &mut now[sample * s.width()..(sample + 1) * s.width()];
                        for j in 0..hidden {
                            let place = sample * hidden + j;
                            let [i, o, f, g] = [0, 1, 2, 3].map(|gate| row[gate * hidden + j]);
                            let (slope, t) = (carry[place], squashed[place]);
                            let cell = slope * o * (1.0 - t * t) + cell_carry[place];
                            to[j] = cell * g * i * (1.0 - i);
                            to[hidden + j] = slope * t * o * (1.0 - o);
                            to[2 * hidden + j] = cell * old[place] * f * (1.0 - f);
                            to[3 * hidden + j] = cell * i * (1.0 - g * g);
                            cell_carry[place] = cell * f;
                        }
                    }
                    multiply(
                        &mut carry,
                        hidden,
                        MatrixView::dense(now, s.batch, s.width()),
                        recurrent,
                        WriteMode::Replace,
                    );
                }
                RecurrentCell::Gru { linear_before_reset } => {
                    let reset_operand = &extra[step * s.state()..(step + 1) * s.state()];
                    let gates = &gates[step * s.step()..(step + 1) * s.step()];
                    let mut direct = vec![0.0f32; s.state()];
                    for sample in 0..s.batch {
                        let row = &gates[sample * s.width()..(sample + 1) * s.width()];
                        let to = &mut now[sample * s.width()..(sample + 1) * s.width()];
                        for j in 0..hidden {
                            let place = sample * hidden + j;
                            let [z, reset, n] = [0, 1, 2].map(|gate| row[gate * hidden + j]);
                            let slope = carry[place];
                            to[j] = slope * (last[place] - n) * z * (1.0 - z);
                            to[2 * hidden + j] = slope * (1.0 - z) * (1.0 - n * n);
                            if linear_before_reset {
                                to[hidden + j] =
                                    to[2 * hidden + j] * reset_operand[place] * reset * (1.0 - reset);
                            }
                            direct[place] = slope * z;
                        }
                    }
                    if linear_before_reset {
                        let states = &mut from_h[step * s.step()..(step + 1) * s.step()];
                        states.copy_from_slice(now);
                        for (to, row) in states.chunks_exact_mut(s.width()).zip(gates.chunks_exact(s.width()))
                        {
                            let resets = &row[hidden..2 * hidden];
                            to[2 * hidden..]
                                .iter_mut()
                                .zip(resets)
                                .for_each(|(slope, reset)| *slope *= reset);
                        }
                        multiply(
                            &mut direct,
                            hidden,
                            MatrixView::dense(states, s.batch, s.width()),
                            recurrent,
                            WriteMode::Add,
                        );
                    } else {
                        let (zr, n) = r.split_at(2 * hidden * hidden);
                        let mut product = vec![0.0; s.state()];
                        let candidates = MatrixView::strided(&now[2 * hidden..], s.batch, hidden, s.width());
                        multiply(
                            &mut product,
                            hidden,
                            candidates,
                            MatrixView::dense(n, hidden, hidden),
                            WriteMode::Replace,
                        );
                        for sample in 0..s.batch {
                            for j in 0..hidden {
                                let place = sample * hidden + j;
                                let reset = gates[sample * s.width() + hidden + j];
                                now[sample * s.width() + hidden + j] =
                                    product[place] * last[place] * reset * (1.0 - reset);
                                direct[place] += product[place] * reset;
                            }
                        }
                        let both = MatrixView::strided(now, s.batch, 2 * hidden, s.width());
                        multiply(
                            &mut direct,
                            hidden,
                            both,
                            MatrixView::dense(zr, 2 * hidden, hidden),
                            WriteMode::Add,
                        );
                    }
                    carry = direct;
                }
            }
        }

        let rows = s.steps * s.batch;
        let slopes_x = MatrixView::dense(&from_x, rows, s.width());
        let slopes_h = if reset_after { MatrixView::dense(&from_h, rows, s.width()) } else { slopes_x };
        let mut x_gradient = vec![0.0; rows * s.inputs];
        multiply(
            &mut x_gradient,
            s.inputs,
            slopes_x,
            MatrixView::dense(w, s.width(), s.inputs),
            WriteMode::Replace,
        );
        let mut w_gradient = vec![0.0; s.width() * s.inputs];
        multiply(
            &mut w_gradient,
            s.inputs,
            slopes_x.transposed(),
            MatrixView::dense(x, rows, s.inputs),
            WriteMode::Replace,
        );

        let states = [h, &out[..(s.steps - 1) * s.state()]].concat();
        let mut r_gradient = vec![0.0; s.width() * hidden];
        multiply(
            &mut r_gradient,
            hidden,
            slopes_h.transposed(),
            MatrixView::dense(&states, rows, hidden),
            WriteMode::Replace,
        );
        if matches!(self.0, RecurrentCell::Gru { linear_before_reset: false }) {
            // The candidate is computed from the states after the reset.
            let candidates = MatrixView::strided(&from_x[2 * hidden..], rows, hidden, s.width());
            let to = &mut r_gradient[2 * hidden * hidden..];
            multiply(
                to,
                hidden,
                candidates.transposed(),
                MatrixView::dense(&extra, rows, hidden),
                WriteMode::Replace,
            );
        }
        let mut b_gradient = columns(&from_x, s.width());
        b_gradient.extend(columns(slopes_h.data, s.width()));

        let mut gradients = vec![
            tensor(x_gradient, &[s.steps, s.batch, s.inputs]),
            tensor(w_gradient, &[s.width(), s.inputs]),
            tensor(r_gradient, &[s.width(), hidden]),
            tensor(b_gradient, &[2 * s.width()]),
            tensor(carry, &[s.batch, hidden]),
        ];
        if self.0 == RecurrentCell::Lstm {
            gradients.push(tensor(cell_carry, &[s.batch, hidden]));
        }
        gradients
    }
}

/// Adds the contribution of the previous states to the gates.
fn recur(s: RecurrentSizes, gates: &mut [f32], last: &[f32], r: &[f32]) {
    let states = MatrixView::dense(last, s.batch, s.hidden);
    multiply(
        gates,
        s.width(),
        states,
        MatrixView::dense(r, s.width(), s.hidden).transposed(),
        WriteMode::Add,
    );
}

fn columns(rows: &[f32], width: usize) -> Vec<f32> {
    let mut sums = vec![0.0; width];
    for row in rows.chunks_exact(width) {
        sums.iter_mut().zip(row).for_each(|(sum, value)| *sum += value);
    }
    sums
}

impl<const N: usize> FusedKernel<N> for FusedRecurrent {
    type Saved = SavedRecurrence;

    fn forward(&self, inputs: [FlexTensor; N]) -> (FlexTensor, SavedRecurrence) {
        self.run(inputs.into())
    }

    fn backward(
        &self,
        saved: SavedRecurrence,
        gradient: FlexTensor,
        _: [bool; N],
    ) -> [Option<FlexTensor>; N] {
        let mut gradients = self.differentiate(saved, gradient).into_iter();
        std::array::from_fn(|_| gradients.next())
    }
}
