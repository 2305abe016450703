//! Architectures without weights: a file whose parameters are inputs without a default and whose metadata name a seed.
//!
//! Such a file is a thousand bytes instead of megabytes, and every side that reads it starts with the same weights.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

use crate::error::{ModelError, Result, TensorError};
use crate::limits::ModelLimits;
use crate::pb;
use crate::proto::elements;

/// The metadata key that asks for seeded weights.
pub const SEED: &str = "evenhand.seed";

/// Gives every input but the first a default drawn from the seed, if the file names one.
///
/// Uniform on ±1/√fan_in like PyTorch's layers; the fan-in of a vector is that of the tensor before it, its weight.
pub(crate) fn materialise(file: &mut pb::ModelProto, limits: &ModelLimits) -> Result<()> {
    let Some(entry) = file.metadata_props.iter().find(|entry| entry.key == SEED) else { return Ok(()) };
    let fail = |name: &str, cause| ModelError::Tensor { name: name.to_owned(), cause };
    let seed: u64 = entry
        .value
        .parse()
        .map_err(|_| fail(SEED, TensorError::Type("a seed that is no number".to_owned())))?;
    let Some(graph) = file.graph.as_mut() else { return Ok(()) };
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut fan_in = 1;
    let mut total = 0usize;
    for input in graph.input.iter().skip(1) {
        if graph.initializer.iter().any(|tensor| tensor.name == input.name) {
            continue;
        }
        let dims = fixed(input);
        let Some(count) = dims.as_ref().and_then(|dims| elements(dims)) else {
            return Err(fail(&input.name, TensorError::Shape(vec![])));
        };
        let dims = dims.unwrap_or_default();
        total = total.saturating_add(count);
        ModelLimits::check("the seeded weights", total, limits.tensor_elements_max, "tensor_elements_max")?;
        if dims.len() > 1 {
            fan_in = dims[1..].iter().product::<usize>().max(1);
        }
        let bound = 1.0 / (fan_in as f64).sqrt();
        let uniform = |bits: u32| (f64::from(bits) / f64::from(u32::MAX) * 2.0 - 1.0) * bound;
        let data = (0..count).flat_map(|_| (uniform(random.next_u32()) as f32).to_le_bytes()).collect();
        graph.initializer.push(pb::TensorProto {
            dims: dims.iter().map(|&d| d as i64).collect(),
            data_type: pb::DataType::Float as i32,
            name: input.name.clone(),
            raw_data: data,
            ..Default::default()
        });
    }
    // They are ordinary parameters now: an exported file contains them.
    let first = graph.input.first().map(|input| input.name.clone());
    let initializers = &graph.initializer;
    graph.input.retain(|input| {
        Some(&input.name) == first.as_ref() || !initializers.iter().any(|tensor| tensor.name == input.name)
    });
    Ok(())
}

/// The sizes of an input that declares all of them.
fn fixed(input: &pb::ValueInfoProto) -> Option<Vec<usize>> {
    input.tensor_type()?.shape.as_ref()?.dim.iter().map(pb::DimensionProto::size).collect()
}
