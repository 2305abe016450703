//! Recurrent layers over a sequence, composed of burn's operations.

use burn_backend::tensor::FloatTensor;
use burn_backend::{Backend, Shape, TensorMetadata};

use crate::kernel::RecurrentCell;
use crate::kernel::composed::{slice, unary};

pub(super) struct RecurrentOperands<B: Backend> {
    pub(super) x: FloatTensor<B>,
    pub(super) w: FloatTensor<B>,
    pub(super) r: FloatTensor<B>,
    pub(super) b: FloatTensor<B>,
    pub(super) h: FloatTensor<B>,
    pub(super) c: Option<FloatTensor<B>>,
}

/// The hidden state after every step, `[steps, batch, hidden]`, and after them an LSTM's last cell state.
pub(super) fn run<B: Backend>(cell: RecurrentCell, operands: RecurrentOperands<B>) -> FloatTensor<B> {
    let RecurrentOperands { x, w, r, b, mut h, c } = operands;
    let [steps, batch, inputs] = x.shape().dims();
    let [_, hidden] = h.shape().dims();
    let rows = cell.gates() * hidden;
    let block = |x: FloatTensor<B>, i: usize| slice::<B>(x, 1, i * hidden, (i + 1) * hidden);

    let flat = B::float_reshape(x, Shape::new([steps * batch, inputs]));
    let wb = slice::<B>(b.clone(), 0, 0, rows);
    let rb = B::float_reshape(slice::<B>(b, 0, rows, 2 * rows), Shape::new([1, rows]));
    let all = B::linear(flat, B::float_transpose(w), Some(wb));
    let r = B::float_transpose(r);
    let mut outputs = Vec::with_capacity(steps + 1);
    let mut c = c;
    for step in 0..steps {
        let from_x = slice::<B>(all.clone(), 0, step * batch, (step + 1) * batch);
        h = match cell {
            RecurrentCell::Elman(activation) => {
                let from_h = B::float_add(B::float_matmul(h, r.clone()), rb.clone());
                unary::<B>(activation.into(), B::float_add(from_x, from_h))
            }
            RecurrentCell::Lstm => {
                let gates = B::float_add(B::float_add(B::float_matmul(h, r.clone()), rb.clone()), from_x);
                let [i, o, f, g] = [0, 1, 2, 3].map(|gate| block(gates.clone(), gate));
                let (i, o, f, g) = (B::sigmoid(i), B::sigmoid(o), B::sigmoid(f), B::float_tanh(g));
                let old = c.take().expect("an LSTM is emitted with its cell state");
                let new = B::float_add(B::float_mul(f, old), B::float_mul(i, g));
                c = Some(new.clone());
                B::float_mul(o, B::float_tanh(new))
            }
            RecurrentCell::Gru { linear_before_reset } => {
                let old = h.clone();
                let (zr, n);
                if linear_before_reset {
                    let from_h = B::float_add(B::float_matmul(h, r.clone()), rb.clone());
                    zr = [0, 1].map(|gate| {
                        B::sigmoid(B::float_add(block(from_x.clone(), gate), block(from_h.clone(), gate)))
                    });
                    let reset = B::float_mul(zr[1].clone(), block(from_h, 2));
                    n = B::float_tanh(B::float_add(block(from_x, 2), reset));
                } else {
                    let gate = |i: usize, h: FloatTensor<B>| {
                        let from_h = B::float_matmul(h, block(r.clone(), i));
                        B::float_add(B::float_add(from_h, block(rb.clone(), i)), block(from_x.clone(), i))
                    };
                    zr = [0, 1].map(|i| B::sigmoid(gate(i, h.clone())));
                    n = B::float_tanh(gate(2, B::float_mul(zr[1].clone(), h)));
                }
                // (1 − z)·n + z·h = n + z·(h − n)
                let [z, _] = zr;
                B::float_add(n.clone(), B::float_mul(z, B::float_sub(old, n)))
            }
        };
        outputs.push(h.clone());
    }
    outputs.extend(c);
    let outputs = outputs.into_iter().map(|o| B::float_reshape(o, Shape::new([1, batch, hidden])));
    B::float_cat(outputs.collect(), 0)
}
