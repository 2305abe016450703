//! Decoding of ONNX's protobuf structures within limits.
//!
//! A few bytes of protobuf can decode into hundreds (an empty node takes two bytes in the file and over two hundred in
//! memory), so the wire format is walked first and the memory that decoding will take is added up.

use std::mem::size_of;

use prost::Message;

use crate::error::{GraphError, ModelError, Result, TensorError};
use crate::limits::ModelLimits;
use crate::pb::{self, DataType};

/// Decodes a model after bounding the memory it takes.
pub(crate) fn decode(bytes: &[u8], limits: &ModelLimits) -> Result<pb::ModelProto> {
    ModelLimits::check("the file", bytes.len(), limits.file_bytes_max, "file_bytes_max")?;
    let mut budget = DecodeBudget { left: limits.decoded_bytes_max, limits };
    budget.message(bytes, &MODEL)?;
    pb::ModelProto::decode(bytes).map_err(|error| ModelError::Decode(error.to_string()))
}

/// The memory that decoding a field takes.
enum FieldCost {
    /// Bytes or text.
    Bytes,
    /// Numbers of this size, packed or one by one.
    Numbers(usize),
    /// A nested message.
    Message(&'static MessageSchema),
    /// A part of ONNX that is refused before it is decoded.
    Refused(&'static str),
}

struct MessageSchema {
    bytes: usize,
    fields: &'static [(u64, FieldCost)],
}

use FieldCost::{Bytes, Message as Nested, Numbers, Refused};

static MODEL: MessageSchema = MessageSchema {
    bytes: size_of::<pb::ModelProto>(),
    fields: &[
        (2, Bytes),
        (3, Bytes),
        (4, Bytes),
        (6, Bytes),
        (7, Nested(&GRAPH)),
        (8, Nested(&OPSET)),
        (14, Nested(&ENTRY)),
        (20, Refused("training graphs")),
        (25, Refused("local functions")),
    ],
};
static OPSET: MessageSchema =
    MessageSchema { bytes: size_of::<pb::OperatorSetIdProto>(), fields: &[(1, Bytes)] };
static ENTRY: MessageSchema =
    MessageSchema { bytes: size_of::<pb::StringStringEntryProto>(), fields: &[(1, Bytes), (2, Bytes)] };
static GRAPH: MessageSchema = MessageSchema {
    bytes: size_of::<pb::GraphProto>(),
    fields: &[
        (1, Nested(&NODE)),
        (2, Bytes),
        (5, Nested(&TENSOR)),
        (10, Bytes),
        (11, Nested(&VALUE_INFO)),
        (12, Nested(&VALUE_INFO)),
        (13, Nested(&VALUE_INFO)),
        (14, Refused("quantised graphs")),
        (15, Refused("sparse initializers")),
    ],
};
static NODE: MessageSchema = MessageSchema {
    bytes: size_of::<pb::NodeProto>(),
    fields: &[
        (1, Bytes),
        (2, Bytes),
        (3, Bytes),
        (4, Bytes),
        (5, Nested(&ATTRIBUTE)),
        (6, Bytes),
        (7, Bytes),
    ],
};
static ATTRIBUTE: MessageSchema = MessageSchema {
    bytes: size_of::<pb::AttributeProto>(),
    fields: &[
        (1, Bytes),
        (4, Bytes),
        (5, Nested(&TENSOR)),
        (6, Refused("subgraphs")),
        (7, Numbers(4)),
        (8, Numbers(8)),
        (9, Bytes),
        (10, Nested(&TENSOR)),
        (11, Refused("subgraphs")),
        (13, Bytes),
        (15, Refused("type attributes")),
        (21, Bytes),
        (22, Refused("sparse tensors")),
        (23, Refused("sparse tensors")),
    ],
};
static TENSOR: MessageSchema = MessageSchema {
    bytes: size_of::<pb::TensorProto>(),
    fields: &[
        (1, Numbers(8)),
        (3, Refused("tensor segments")),
        (4, Numbers(4)),
        (5, Numbers(4)),
        (6, Bytes),
        (7, Numbers(8)),
        (8, Bytes),
        (9, Bytes),
        (10, Numbers(8)),
        (11, Numbers(8)),
        (12, Bytes),
        (13, Nested(&ENTRY)),
    ],
};
static VALUE_INFO: MessageSchema = MessageSchema {
    bytes: size_of::<pb::ValueInfoProto>(),
    fields: &[(1, Bytes), (2, Nested(&TYPE)), (3, Bytes)],
};
static TYPE: MessageSchema =
    MessageSchema { bytes: size_of::<pb::TypeProto>(), fields: &[(1, Nested(&TENSOR_TYPE)), (6, Bytes)] };
static TENSOR_TYPE: MessageSchema =
    MessageSchema { bytes: size_of::<pb::TensorTypeProto>(), fields: &[(2, Nested(&TENSOR_SHAPE))] };
static TENSOR_SHAPE: MessageSchema =
    MessageSchema { bytes: size_of::<pb::TensorShapeProto>(), fields: &[(1, Nested(&DIMENSION))] };
static DIMENSION: MessageSchema =
    MessageSchema { bytes: size_of::<pb::DimensionProto>(), fields: &[(2, Bytes), (3, Bytes)] };

struct DecodeBudget<'a> {
    left: usize,
    limits: &'a ModelLimits,
}

impl DecodeBudget<'_> {
    /// Vectors grow by doubling and copy while they grow, hence up to three times the size.
    fn spend(&mut self, bytes: usize) -> Result<()> {
        match self.left.checked_sub(bytes.saturating_mul(3)) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => Err(ModelError::Limit {
                what: "decoding the file".to_owned(),
                found: (self.limits.decoded_bytes_max - self.left).saturating_add(bytes.saturating_mul(3))
                    as u64,
                limit: self.limits.decoded_bytes_max as u64,
                name: "decoded_bytes_max",
            }),
        }
    }

    fn message(&mut self, mut bytes: &[u8], schema: &MessageSchema) -> Result<()> {
        self.spend(schema.bytes)?;
        while !bytes.is_empty() {
            let key = varint(&mut bytes)?;
            let field = schema.fields.iter().find(|(tag, _)| *tag == key >> 3).map(|(_, field)| field);
            if let Some(Refused(what)) = field {
                return Err(ModelError::Graph(GraphError::Unsupported(what)));
            }
            match key & 7 {
                0 => {
                    varint(&mut bytes)?;
                }
                1 => {
                    take(&mut bytes, 8)?;
                }
                5 => {
                    take(&mut bytes, 4)?;
                }
                2 => {
                    let length = varint(&mut bytes)?;
                    let body = take(&mut bytes, usize::try_from(length).unwrap_or(usize::MAX))?;
                    match field {
                        Some(Nested(schema)) => self.message(body, schema)?,
                        // Packed integers take at least a byte each in the file, floats four.
                        Some(Numbers(4)) => self.spend(body.len() * 4)?,
                        Some(Numbers(_)) => self.spend(body.len() * 8)?,
                        Some(Bytes) => self.spend(size_of::<String>() + body.len() / 3)?,
                        _ => {}
                    }
                    continue;
                }
                _ => return Err(ModelError::Decode("a field of unknown wire type".to_owned())),
            }
            if let Some(Numbers(size)) = field {
                self.spend(*size)?;
            }
        }
        Ok(())
    }
}

fn varint(bytes: &mut &[u8]) -> Result<u64> {
    let mut value = 0u64;
    for shift in (0..70).step_by(7) {
        let (&byte, rest) = bytes.split_first().ok_or_else(truncated)?;
        *bytes = rest;
        if shift < 64 {
            value |= u64::from(byte & 0x7f) << shift;
        }
        if byte & 0x80 == 0 {
            return Ok(value);
        }
    }
    Err(ModelError::Decode("a number longer than ten bytes".to_owned()))
}

fn take<'a>(bytes: &mut &'a [u8], length: usize) -> Result<&'a [u8]> {
    let (body, rest) = bytes.split_at_checked(length).ok_or_else(truncated)?;
    *bytes = rest;
    Ok(body)
}

fn truncated() -> ModelError {
    ModelError::Decode("it ends in the middle of a field".to_owned())
}

/// A tensor of the file: floats, or integers (which also stand for booleans).
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct FileTensor {
    pub(crate) shape: Vec<usize>,
    pub(crate) data: TensorValues,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum TensorValues {
    Float(Vec<f32>),
    Int(Vec<i64>),
}

/// Reads a tensor, checking that its data fill its shape.
pub(crate) fn tensor(proto: &pb::TensorProto, limits: &ModelLimits) -> Result<FileTensor> {
    let fail = |cause| ModelError::Tensor { name: proto.name.clone(), cause };
    if proto.data_location.unwrap_or(0) != 0 || !proto.external_data.is_empty() {
        return Err(fail(TensorError::External));
    }
    let shape = shape(&proto.dims).ok_or_else(|| fail(TensorError::Shape(proto.dims.clone())))?;
    ModelLimits::check(&format!("tensor `{}`", proto.name), shape.len(), limits.rank_max, "rank_max")?;
    let elements = elements(&shape).ok_or_else(|| fail(TensorError::Shape(proto.dims.clone())))?;
    ModelLimits::check(
        &format!("tensor `{}`", proto.name),
        elements,
        limits.tensor_elements_max,
        "tensor_elements_max",
    )?;

    let raw = &proto.raw_data;
    let data = match DataType::try_from(proto.data_type) {
        Ok(DataType::Float) => TensorValues::Float(if raw.is_empty() {
            proto.float_data.clone()
        } else {
            words(raw).map(f32::from_le_bytes).collect()
        }),
        Ok(DataType::Int64) => TensorValues::Int(if raw.is_empty() {
            proto.int64_data.clone()
        } else {
            words(raw).map(i64::from_le_bytes).collect()
        }),
        Ok(DataType::Int32) => TensorValues::Int(if raw.is_empty() {
            proto.int32_data.iter().map(|&v| i64::from(v)).collect()
        } else {
            words(raw).map(|word| i64::from(i32::from_le_bytes(word))).collect()
        }),
        Ok(DataType::Bool) => TensorValues::Int(if raw.is_empty() {
            proto.int32_data.iter().map(|&v| i64::from(v != 0)).collect()
        } else {
            raw.iter().map(|&v| i64::from(v != 0)).collect()
        }),
        _ => return Err(fail(TensorError::Type(DataType::onnx_name(proto.data_type)))),
    };
    let (found, width) = match (&data, DataType::try_from(proto.data_type)) {
        (TensorValues::Float(values), _) => (values.len(), 4),
        (TensorValues::Int(values), Ok(DataType::Int64)) => (values.len(), 8),
        (TensorValues::Int(values), Ok(DataType::Int32)) => (values.len(), 4),
        (TensorValues::Int(values), _) => (values.len(), 1),
    };
    if found != elements || !raw.len().is_multiple_of(width) {
        return Err(fail(TensorError::Length { found, expected: elements }));
    }
    Ok(FileTensor { shape, data })
}

fn words<const N: usize>(raw: &[u8]) -> impl Iterator<Item = [u8; N]> + '_ {
    raw.as_chunks::<N>().0.iter().copied()
}

fn shape(dims: &[i64]) -> Option<Vec<usize>> {
    dims.iter().map(|&d| usize::try_from(d).ok()).collect()
}

/// The number of elements, unless it overflows.
pub(crate) fn elements(shape: &[usize]) -> Option<usize> {
    // A zero anywhere empties the tensor, but the product of the others must not overflow either.
    shape.iter().filter(|&&d| d != 0).try_fold(1usize, |n, &d| n.checked_mul(d))?;
    Some(shape.iter().product())
}
