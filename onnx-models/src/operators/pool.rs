//! Pooling windows.

use std::sync::Arc;

use crate::error::{NodeResult, shapes};
use crate::kernel::{self, Kernel};
use crate::lower::NodeLowering;
use crate::lowered_value::{LoweredFloat, LoweredValue};
use crate::node_reader::{NodeReader, refuse};
use crate::operators::conv::{WindowAttributes, WindowAxis};

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PoolOp {
    window: WindowAttributes,
    kernel: Vec<usize>,
    ceil: bool,
    average: Option<CountPadding>,
}

/// Role of the padding in an average.
type CountPadding = bool;

impl PoolOp {
    pub(crate) fn parse(reader: &NodeReader<'_>) -> NodeResult<Self> {
        let average = match reader.operator() {
            "AveragePool" => {
                reader.arity(1..=1, 1..=1)?;
                Some(reader.flag("count_include_pad", false)?)
            }
            _ => {
                reader.arity(1..=1, 1..=2)?;
                reader.int("storage_order")?;
                None
            }
        };
        let window = WindowAttributes::parse(reader)?;
        let Some(kernel) = window.kernel.clone() else { return refuse("kernel_shape", "is missing") };
        if average.is_some() && window.dilated() {
            return refuse("dilations", "are supported in MaxPool only");
        }
        Ok(PoolOp { window, kernel, ceil: reader.flag("ceil_mode", false)?, average })
    }

    pub(crate) fn lower(&self, node: &mut NodeLowering<'_, '_>) -> NodeResult<Vec<LoweredValue>> {
        let x = node.float(0)?;
        if !(3..=4).contains(&x.shape.len()) {
            return shapes(format!("{:?}; supported are 1-D and 2-D pools", x.shape));
        }
        let mut axes = self.window.resolve(&x.shape[2..], &self.kernel, self.ceil)?;
        if let Some(axis) = axes.iter().find(|a| a.begin.max(a.end) > a.dilation * (a.kernel - 1)) {
            return shapes(format!(
                "padding by {} and {} leaves windows without input",
                axis.begin, axis.end
            ));
        }
        let mut shape = x.shape[..2].to_vec();
        shape.extend(axes.iter().map(|axis| axis.output));
        let x = node.planar(&x, &mut axes)?;
        let [rows, columns] = [axes[0], axes[1]];
        let planar = vec![shape[0], shape[1], rows.output, columns.output];
        let window = kernel::PoolWindow {
            kernel: [rows.kernel, columns.kernel],
            stride: [rows.stride, columns.stride],
            dilation: [rows.dilation, columns.dilation],
        };
        // Padded explicitly, so that the result does not depend on how a backend pads and rounds.
        let size = [x.shape[2], x.shape[3]];
        let padding = [(rows.begin, out(rows, size[0])), (columns.begin, out(columns, size[1]))];
        let out = match self.average {
            None => {
                let x = node.pad(&x, padding, f32::NEG_INFINITY)?;
                node.emit(Kernel::MaxPool(window), &[&x], planar)?
            }
            Some(count_padding) => {
                let padded = node.pad(&x, padding, 0.0)?;
                let mean = node.emit(Kernel::AveragePool(window), &[&padded], planar)?;
                match correction(&axes, size, count_padding) {
                    None => mean,
                    Some(factors) => {
                        let factors = node.constant(vec![1, 1, rows.output, columns.output], factors)?;
                        node.binary(kernel::BinaryKernel::Mul, &mean, &factors)?
                    }
                }
            }
        };
        Ok(vec![node.reshape(&out, shape)?.into()])
    }
}

/// The number of values by which the last window exceeds the input.
fn out(axis: WindowAxis, size: usize) -> usize {
    let reach = (axis.output - 1) * axis.stride + axis.dilation * (axis.kernel - 1) + 1;
    reach.saturating_sub(axis.begin + size)
}

/// Window size over number of values that count, for each output; none if that is one everywhere.
fn correction(axes: &[WindowAxis], size: [usize; 2], count_padding: bool) -> Option<Arc<[f32]>> {
    let counts = |axis: WindowAxis, size: usize| -> Vec<usize> {
        let (low, high) = match count_padding {
            true => (0, axis.begin + size + axis.end),
            false => (axis.begin, axis.begin + size),
        };
        let start = |o| o * axis.stride;
        (0..axis.output).map(|o| (start(o) + axis.kernel).min(high) - start(o).max(low)).collect()
    };
    let (rows, columns) = (counts(axes[0], size[0]), counts(axes[1], size[1]));
    let full = axes[0].kernel * axes[1].kernel;
    let factors = rows.iter().flat_map(|r| columns.iter().map(move |c| full as f32 / (r * c) as f32));
    let factors: Arc<[f32]> = factors.collect();
    factors.iter().any(|&f| f != 1.0).then_some(factors)
}

impl NodeLowering<'_, '_> {
    /// Images with a border of one value.
    fn pad(
        &mut self,
        x: &LoweredFloat,
        padding: [(usize, usize); 2],
        value: f32,
    ) -> NodeResult<LoweredFloat> {
        if padding == [(0, 0); 2] {
            return Ok(x.clone());
        }
        let mut shape = x.shape.clone();
        for (dimension, (begin, end)) in shape[2..].iter_mut().zip(padding) {
            *dimension += begin + end;
        }
        self.emit(Kernel::Pad { padding, value }, &[x], shape)
    }
}

/// The mean over everything but batch and channel.
pub(crate) fn global_average(node: &mut NodeLowering<'_, '_>) -> NodeResult<Vec<LoweredValue>> {
    let x = node.float(0)?;
    if x.shape.len() < 3 {
        return shapes(format!("{:?} has no spatial dimensions", x.shape));
    }
    let axes: Vec<usize> = (2..x.shape.len()).collect();
    Ok(vec![node.mean(&x, &axes)?.into()])
}
