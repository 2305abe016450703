//! Attributes of one node by name and type, with unknown ones refused.

use std::cell::RefCell;
use std::ops::RangeInclusive;

use crate::error::{GraphNodeError, NodeResult};
use crate::limits::ModelLimits;
use crate::pb::{self, AttributeType};
use crate::proto::{self, FileTensor};

/// A node of the file while it is parsed; [`finish`](Self::finish) refuses attributes that were not read.
pub(crate) struct NodeReader<'a> {
    proto: &'a pb::NodeProto,
    pub(crate) opset: i64,
    limits: &'a ModelLimits,
    asked: RefCell<Vec<&'static str>>,
}

impl<'a> NodeReader<'a> {
    pub(crate) fn new(proto: &'a pb::NodeProto, opset: i64, limits: &'a ModelLimits) -> Self {
        NodeReader { proto, opset, limits, asked: RefCell::default() }
    }

    pub(crate) fn operator(&self) -> &'a str {
        &self.proto.op_type
    }

    pub(crate) fn inputs(&self) -> usize {
        self.proto.input.len()
    }

    pub(crate) fn outputs(&self) -> usize {
        self.proto.output.len()
    }

    /// Checks how many inputs and outputs there are.
    pub(crate) fn arity(
        &self,
        inputs: RangeInclusive<usize>,
        outputs: RangeInclusive<usize>,
    ) -> NodeResult<()> {
        let check = |what, found, expected: RangeInclusive<usize>| match expected.contains(&found) {
            true => Ok(()),
            false => Err(GraphNodeError::Arity { what, found, expected: format!("{expected:?}") }),
        };
        check("inputs", self.inputs(), inputs)?;
        check("outputs", self.outputs(), outputs)
    }

    fn attribute(
        &self,
        name: &'static str,
        kind: AttributeType,
    ) -> NodeResult<Option<&'a pb::AttributeProto>> {
        self.asked.borrow_mut().push(name);
        let mut found = self.proto.attribute.iter().filter(|a| a.name == name);
        let Some(attribute) = found.next() else { return Ok(None) };
        if found.next().is_some() {
            return Err(GraphNodeError::AttributeValue { name, why: "is given twice".to_owned() });
        }
        if attribute.r#type != kind as i32 || !attribute.ref_attr_name.is_empty() {
            return Err(GraphNodeError::AttributeValue {
                name,
                why: format!("expected type {}", kind.onnx_name()),
            });
        }
        Ok(Some(attribute))
    }

    pub(crate) fn int(&self, name: &'static str) -> NodeResult<Option<i64>> {
        Ok(self.attribute(name, AttributeType::Int)?.map(|a| a.i))
    }

    pub(crate) fn flag(&self, name: &'static str, default: bool) -> NodeResult<bool> {
        match self.int(name)? {
            None => Ok(default),
            Some(0) => Ok(false),
            Some(1) => Ok(true),
            Some(other) => {
                Err(GraphNodeError::AttributeValue { name, why: format!("{other} is neither 0 nor 1") })
            }
        }
    }

    pub(crate) fn float_or_none(&self, name: &'static str) -> NodeResult<Option<f32>> {
        match self.attribute(name, AttributeType::Float)? {
            None => Ok(None),
            Some(a) if a.f.is_finite() => Ok(Some(a.f)),
            Some(a) => Err(GraphNodeError::AttributeValue { name, why: format!("{} is not finite", a.f) }),
        }
    }

    pub(crate) fn float(&self, name: &'static str, default: f32) -> NodeResult<f32> {
        Ok(self.float_or_none(name)?.unwrap_or(default))
    }

    pub(crate) fn ints(&self, name: &'static str) -> NodeResult<Option<&'a [i64]>> {
        Ok(self.attribute(name, AttributeType::Ints)?.map(|a| a.ints.as_slice()))
    }

    pub(crate) fn floats(&self, name: &'static str) -> NodeResult<Option<&'a [f32]>> {
        Ok(self.attribute(name, AttributeType::Floats)?.map(|a| a.floats.as_slice()))
    }

    pub(crate) fn string(&self, name: &'static str) -> NodeResult<Option<&'a str>> {
        let Some(attribute) = self.attribute(name, AttributeType::String)? else { return Ok(None) };
        std::str::from_utf8(&attribute.s).map(Some).map_err(|_| text(name))
    }

    pub(crate) fn strings(&self, name: &'static str) -> NodeResult<Option<Vec<&'a str>>> {
        let Some(attribute) = self.attribute(name, AttributeType::Strings)? else { return Ok(None) };
        let strings = attribute.strings.iter().map(|s| std::str::from_utf8(s));
        strings.collect::<Result<_, _>>().map(Some).map_err(|_| text(name))
    }

    pub(crate) fn tensor(&self, name: &'static str) -> NodeResult<Option<FileTensor>> {
        let Some(attribute) = self.attribute(name, AttributeType::Tensor)? else { return Ok(None) };
        let Some(tensor) = &attribute.t else {
            return Err(GraphNodeError::AttributeValue { name, why: "holds no tensor".to_owned() });
        };
        let tensor = proto::tensor(tensor, self.limits);
        tensor.map(Some).map_err(|error| GraphNodeError::AttributeValue { name, why: error.to_string() })
    }

    /// Refuses attributes that were not read.
    pub(crate) fn finish(&self) -> NodeResult<()> {
        let asked = self.asked.borrow();
        match self.proto.attribute.iter().find(|a| !asked.contains(&a.name.as_str())) {
            None => Ok(()),
            Some(unknown) => Err(GraphNodeError::Attribute {
                name: unknown.name.clone(),
                supported: if asked.is_empty() { "none".to_owned() } else { asked.join(", ") },
            }),
        }
    }
}

fn text(name: &'static str) -> GraphNodeError {
    GraphNodeError::AttributeValue { name, why: "is not text".to_owned() }
}

/// The error of an attribute value that is not supported.
pub(crate) fn refuse<T>(name: &'static str, why: impl Into<String>) -> NodeResult<T> {
    Err(GraphNodeError::AttributeValue { name, why: why.into() })
}

/// Positive numbers no larger than `max`, as many as there are.
pub(crate) fn sizes(name: &'static str, values: &[i64], min: i64, max: i64) -> NodeResult<Vec<usize>> {
    let convert = |&v: &i64| match v {
        v if (min..=max).contains(&v) => Ok(v as usize),
        v => refuse(name, format!("{v} is not within {min} to {max}")),
    };
    values.iter().map(convert).collect()
}
