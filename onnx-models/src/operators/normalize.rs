//! Batch and layer normalisation.

use crate::error::{NodeResult, shapes};
use crate::kernel::{BinaryKernel, UnaryKernel};
use crate::lower::NodeLowering;
use crate::lowered_value::LoweredValue;
use crate::node_reader::{NodeReader, refuse};
use crate::operators::axis;
use crate::operators::broadcast;

/// Batch normalisation with the running statistics of the file, which are constants also while training.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct BatchNormOp {
    epsilon: f32,
}

impl BatchNormOp {
    pub(crate) fn parse(reader: &NodeReader<'_>) -> NodeResult<Self> {
        reader.arity(5..=5, 1..=5)?;
        reader.float("momentum", 0.9)?;
        if reader.flag("training_mode", false)? || (reader.opset >= 14 && reader.outputs() > 1) {
            return refuse(
                "training_mode",
                "1 is not supported: export with the running statistics, training_mode 0",
            );
        }
        Ok(BatchNormOp { epsilon: reader.float("epsilon", 1e-5)? })
    }

    pub(crate) fn lower(&self, node: &mut NodeLowering<'_, '_>) -> NodeResult<Vec<LoweredValue>> {
        let x = node.float(0)?;
        let [scale, bias, mean, variance] = [node.float(1)?, node.float(2)?, node.float(3)?, node.float(4)?];
        let channels = if x.shape.len() > 1 { x.shape[1] } else { 1 };
        if x.shape.len() < 2 || [&scale, &bias, &mean, &variance].iter().any(|v| v.shape != [channels]) {
            return shapes(format!("{:?} with scale {:?}", x.shape, scale.shape));
        }
        // y = x·s + (bias − mean·s) with s = scale / √(variance + ε): two passes over x instead of four.
        let deviation = node.unary(UnaryKernel::AddScalar(self.epsilon), &variance)?;
        let deviation = node.unary(UnaryKernel::Sqrt, &deviation)?;
        let factor = node.binary(BinaryKernel::Div, &scale, &deviation)?;
        let shift = node.binary(BinaryKernel::Mul, &mean, &factor)?;
        let offset = node.binary(BinaryKernel::Sub, &bias, &shift)?;
        let mut shape = vec![1; x.shape.len()];
        shape[1] = channels;
        let (factor, offset) = (node.reshape(&factor, shape.clone())?, node.reshape(&offset, shape)?);
        let scaled = node.binary(BinaryKernel::Mul, &x, &factor)?;
        Ok(vec![node.binary(BinaryKernel::Add, &scaled, &offset)?.into()])
    }
}

/// Normalisation over the last dimensions of each sample.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LayerNormOp {
    axis: i64,
    epsilon: f32,
}

impl LayerNormOp {
    pub(crate) fn parse(reader: &NodeReader<'_>) -> NodeResult<Self> {
        reader.arity(2..=3, 1..=3)?;
        if reader.int("stash_type")?.unwrap_or(1) != 1 {
            return refuse("stash_type", "only 1 (float) is supported");
        }
        Ok(LayerNormOp { axis: reader.int("axis")?.unwrap_or(-1), epsilon: reader.float("epsilon", 1e-5)? })
    }

    pub(crate) fn lower(&self, node: &mut NodeLowering<'_, '_>) -> NodeResult<Vec<LoweredValue>> {
        let (x, scale, bias) = (node.float(0)?, node.float(1)?, node.float_or_none(2)?);
        let axes: Vec<usize> = (axis(self.axis, x.shape.len())?..x.shape.len()).collect();
        for operand in [Some(&scale), bias.as_ref()].into_iter().flatten() {
            if broadcast::shape(&x.shape, &operand.shape).as_ref() != Ok(&x.shape) {
                return shapes(format!("{:?} does not broadcast to {:?}", operand.shape, x.shape));
            }
        }
        let mean = node.mean(&x, &axes)?;
        let centred = node.binary(BinaryKernel::Sub, &x, &mean)?;
        let squares = node.binary(BinaryKernel::Mul, &centred, &centred)?;
        let variance = node.mean(&squares, &axes)?;
        let deviation = node.unary(UnaryKernel::AddScalar(self.epsilon), &variance)?;
        let deviation = node.unary(UnaryKernel::Sqrt, &deviation)?;
        let normal = node.binary(BinaryKernel::Div, &centred, &deviation)?;
        let mut out = node.binary(BinaryKernel::Mul, &normal, &scale)?;
        if let Some(bias) = bias {
            out = node.binary(BinaryKernel::Add, &out, &bias)?;
        }
        Ok(vec![out.into()])
    }
}
