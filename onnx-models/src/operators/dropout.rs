//! Dropout.

use crate::error::{GraphNodeError, NodeResult};
use crate::kernel::Kernel;
use crate::lower::NodeLowering;
use crate::lowered_value::LoweredValue;
use crate::node_reader::{NodeReader, refuse};

/// Drops values at random where the node asks for it (`training_mode` true, operator set 12 and on) and the model is
/// being trained; everywhere else it is the identity.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct DropoutOp {
    /// Of the attribute, before operator set 12.
    ratio: Option<f32>,
}

impl DropoutOp {
    pub(crate) fn parse(reader: &NodeReader<'_>) -> NodeResult<Self> {
        if reader.opset < 12 {
            reader.arity(1..=1, 1..=2)?;
            let ratio = reader.float("ratio", 0.5)?;
            if !(0.0..1.0).contains(&ratio) {
                return refuse("ratio", format!("{ratio} is not within 0 to 1"));
            }
            return Ok(DropoutOp { ratio: Some(ratio) });
        }
        reader.arity(1..=3, 1..=2)?;
        reader.int("seed")?;
        Ok(DropoutOp { ratio: None })
    }

    pub(crate) fn lower(&self, node: &mut NodeLowering<'_, '_>) -> NodeResult<Vec<LoweredValue>> {
        let x = node.float(0)?;
        let training = match node.ints_or_none(2)? {
            Some(flag) => flag.data.first().is_some_and(|&v| v != 0),
            None => false,
        };
        // Before operator set 12 nodes carry no mode: they are inference nodes.
        if self.ratio.is_some() || !training {
            return Ok(vec![x.into()]);
        }
        let ratio = match node.float_or_none(1)? {
            None => 0.5,
            Some(ratio) => match ratio.constant.as_deref() {
                Some(&[ratio]) if (0.0..1.0).contains(&ratio) => ratio,
                _ => {
                    return Err(GraphNodeError::Input {
                        index: 1,
                        why: "must be a constant within 0 to 1".to_owned(),
                    });
                }
            },
        };
        Ok(vec![node.emit(Kernel::Dropout(ratio), &[&x], x.shape.clone())?.into()])
    }
}
