//! Recurrent layers, forward in time.

use crate::error::{GraphNodeError, NodeResult, shapes};
use crate::kernel::{CellActivation, Kernel, RecurrentCell, UnaryKernel};
use crate::lower::NodeLowering;
use crate::lowered_value::{LoweredFloat, LoweredValue};
use crate::node_reader::{NodeReader, refuse};

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RecurrentOp {
    cell: RecurrentCell,
    hidden: Option<usize>,
    /// The batch comes first in X, Y and the states (operator set 14 and on).
    batch_first: bool,
}

impl RecurrentOp {
    pub(crate) fn parse(reader: &NodeReader<'_>) -> NodeResult<Self> {
        let (inputs, outputs) = if reader.operator() == "LSTM" { (8, 3) } else { (6, 2) };
        reader.arity(3..=inputs, 1..=outputs)?;
        match reader.string("direction")?.unwrap_or("forward") {
            "forward" => {}
            other => return refuse("direction", format!("`{other}`; only forward is supported")),
        }
        for name in ["activation_alpha", "activation_beta"] {
            if reader.floats(name)?.is_some_and(|values| !values.is_empty()) {
                return refuse(name, "is not supported; leave it out");
            }
        }
        if reader.float("clip", 0.0)? != 0.0 {
            return refuse("clip", "is not supported; leave it out");
        }
        let activations = reader.strings("activations")?;
        let activations = activations.as_deref();
        let standard = |expected: &[&str]| match activations {
            Some(found) if found != expected => {
                refuse("activations", format!("{found:?}; only {expected:?} are supported"))
            }
            _ => Ok(()),
        };
        let cell = match reader.operator() {
            "RNN" => RecurrentCell::Elman(match activations {
                None | Some(["Tanh"]) => CellActivation::Tanh,
                Some(["Relu"]) => CellActivation::Relu,
                Some(["Sigmoid"]) => CellActivation::Sigmoid,
                Some(found) => {
                    return refuse("activations", format!("{found:?}; Tanh, Relu and Sigmoid are supported"));
                }
            }),
            "GRU" => {
                standard(&["Sigmoid", "Tanh"])?;
                RecurrentCell::Gru { linear_before_reset: reader.flag("linear_before_reset", false)? }
            }
            _ => {
                standard(&["Sigmoid", "Tanh", "Tanh"])?;
                if reader.flag("input_forget", false)? {
                    return refuse("input_forget", "1 is not supported");
                }
                RecurrentCell::Lstm
            }
        };
        let hidden = match reader.int("hidden_size")? {
            Some(hidden) => Some(crate::node_reader::sizes("hidden_size", &[hidden], 1, 1 << 20)?[0]),
            None => None,
        };
        Ok(RecurrentOp { cell, hidden, batch_first: reader.opset >= 14 && reader.flag("layout", false)? })
    }

    pub(crate) fn lower(&self, node: &mut NodeLowering<'_, '_>) -> NodeResult<Vec<LoweredValue>> {
        for (index, what) in [(4, "sequence lengths"), (7, "peepholes")] {
            if node.float_or_none(index).ok().flatten().is_some()
                || node.ints_or_none(index).ok().flatten().is_some()
            {
                return Err(GraphNodeError::Input { index, why: format!("{what} are not supported") });
            }
        }
        let (mut x, w, r, b) = (node.float(0)?, node.float(1)?, node.float(2)?, node.float_or_none(3)?);
        if self.batch_first && x.shape.len() == 3 {
            x = node.permute(&x, vec![1, 0, 2])?;
        }
        let gates = self.cell.gates();
        let (&[steps, batch, inputs], &[1, rows, _]) = (x.shape.as_slice(), w.shape.as_slice()) else {
            return shapes(format!("X {:?} with W {:?}", x.shape, w.shape));
        };
        let hidden = self.hidden.unwrap_or(rows / gates);
        let fits = w.shape == [1, gates * hidden, inputs]
            && r.shape == [1, gates * hidden, hidden]
            && b.as_ref().is_none_or(|b| b.shape == [1, 2 * gates * hidden]);
        if !fits {
            return shapes(format!(
                "X {:?}, W {:?}, R {:?} with {hidden} hidden units",
                x.shape, w.shape, r.shape
            ));
        }
        let w = node.reshape(&w, vec![gates * hidden, inputs])?;
        let r = node.reshape(&r, vec![gates * hidden, hidden])?;
        let b = match b {
            Some(b) => node.reshape(&b, vec![2 * gates * hidden])?,
            None => node.filled(vec![2 * gates * hidden], 0.0)?,
        };
        let h = self.state(node, 5, batch, hidden)?;
        let mut operands = vec![&x, &w, &r, &b, &h];
        let c;
        if self.cell == RecurrentCell::Lstm {
            c = self.state(node, 6, batch, hidden)?;
            operands.push(&c);
        }
        // One tensor holds the hidden state after every step, and after it the last cell state if there is one.
        let blocks = steps + usize::from(self.cell == RecurrentCell::Lstm);
        let all: LoweredValue =
            node.emit(Kernel::Recurrent(self.cell), &operands, vec![blocks, batch, hidden])?.into();

        let mut outputs = Vec::new();
        if node.wants(0) {
            let y = node.range(&all, 0, 0, steps)?;
            let y = node.reshape(y.as_float().ok_or_else(float)?, vec![steps, 1, batch, hidden])?;
            outputs.push(if self.batch_first {
                node.permute(&y, vec![2, 0, 1, 3])?.into()
            } else {
                y.into()
            });
        } else {
            outputs.push(all.clone());
        }
        for (output, block) in [(1, steps - 1), (2, steps)] {
            if !node.wants(output) || block >= blocks {
                outputs.push(all.clone());
                continue;
            }
            let state = node.range(&all, 0, block, block + 1)?;
            let state = state.as_float().ok_or_else(float)?.clone();
            outputs.push(match self.batch_first {
                true => node.permute(&state, vec![1, 0, 2])?.into(),
                false => state.into(),
            });
        }
        Ok(outputs)
    }

    /// An initial state as `[batch, hidden]`; zeros if none is given.
    fn state(
        &self,
        node: &mut NodeLowering<'_, '_>,
        index: usize,
        batch: usize,
        hidden: usize,
    ) -> NodeResult<LoweredFloat> {
        let Some(state) = node.float_or_none(index)? else { return node.filled(vec![batch, hidden], 0.0) };
        let expected = if self.batch_first { [batch, 1, hidden] } else { [1, batch, hidden] };
        if state.shape != expected {
            return shapes(format!("initial state {:?}, expected {expected:?}", state.shape));
        }
        node.reshape(&state, vec![batch, hidden])
    }
}

fn float() -> GraphNodeError {
    GraphNodeError::Shapes("expected floats".to_owned())
}

/// The gate's nonlinearity as an element-wise kernel.
impl From<CellActivation> for UnaryKernel {
    fn from(activation: CellActivation) -> Self {
        match activation {
            CellActivation::Tanh => UnaryKernel::Tanh,
            CellActivation::Relu => UnaryKernel::Relu,
            CellActivation::Sigmoid => UnaryKernel::Sigmoid,
        }
    }
}
