//! A loaded model: the file, its graph and its trainable parameters.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::error::{ModelError, Result};
use crate::graph::{InputDim, ModelGraph};
use crate::limits::ModelLimits;
use crate::lower;
use crate::order::{self, ChosenParameters, Parameter, ParameterVector};
use crate::personal::ModelPart;
use crate::plan::ExecutionPlan;
use crate::{export, fixed_inputs, pb, personal, proto, quantiles, seed};

/// Options of loading a file.
#[derive(Debug, Clone, Default)]
pub struct LoadOptions {
    /// Limits on the resources the file may use.
    pub limits: ModelLimits,
    /// The parameters to train, by name; all of them if none are listed. Personal ones stay personal.
    pub trainable: Option<Vec<String>>,
}

/// An ONNX model that can be trained, run and written back. Cloning shares it.
#[derive(Debug, Clone)]
pub struct Model {
    pub(crate) inner: Arc<ModelInner>,
}

#[derive(Debug)]
pub(crate) struct ModelInner {
    pub(crate) graph: ModelGraph,
    /// The file without the weights of the parameters.
    pub(crate) stripped: pb::ModelProto,
    pub(crate) limits: ModelLimits,
    shared: ParameterVector,
    personal: ParameterVector,
    digest: [u8; 32],
    metadata: BTreeMap<String, String>,
    input_shape: Vec<Option<usize>>,
    output_shape: Vec<Option<usize>>,
    quantiles: Option<Vec<f32>>,
}

impl Model {
    /// The model of an ONNX file; an error names the first part that is not supported. Nothing is run.
    pub fn load(bytes: &[u8], options: &LoadOptions) -> Result<Model> {
        let limits = &options.limits;
        let mut file = proto::decode(bytes, limits)?;
        seed::materialise(&mut file, limits)?;
        fixed_inputs::separate(&mut file);
        let mut graph = ModelGraph::build(&file, limits)?;
        let metadata: BTreeMap<String, String> =
            file.metadata_props.iter().map(|entry| (entry.key.clone(), entry.value.clone())).collect();
        let ChosenParameters { shared, personal } =
            order::choose(&mut graph, options.trainable.as_deref(), &personal::names(&metadata))?;
        export::strip(&mut file, shared.parameters.iter().chain(&personal.parameters));
        let digest = order::digest(&file, &shared.parameters, &personal.parameters);
        let input_shape: Vec<Option<usize>> = graph.inputs[0].dims.iter().map(InputDim::size).collect();
        let mut inner = ModelInner {
            output_shape: declared(&file),
            graph,
            stripped: file,
            limits: limits.clone(),
            shared,
            personal,
            digest,
            metadata,
            input_shape,
            quantiles: None,
        };
        inner.probe()?;
        inner.quantiles = quantiles::read(&inner.metadata, inner.output_shape.last().copied().flatten())?;
        Ok(Model { inner: Arc::new(inner) })
    }

    /// Number of trainable values that are shared: the length of weights, gradients and updates.
    pub fn dim(&self) -> usize {
        self.inner.shared.initial.len()
    }

    /// The shared trainable tensors in canonical order.
    pub fn parameters(&self) -> &[Parameter] {
        &self.inner.shared.parameters
    }

    /// The shared weights in the file, as one flat vector in canonical order.
    pub fn initial_weights(&self) -> Vec<f32> {
        self.inner.shared.initial.clone()
    }

    /// Number of personal values; see [`PERSONAL`](crate::PERSONAL).
    pub fn personal_dim(&self) -> usize {
        self.inner.personal.initial.len()
    }

    /// The personal tensors in canonical order, with their offsets in the vector of personal weights.
    pub fn personal_parameters(&self) -> &[Parameter] {
        &self.inner.personal.parameters
    }

    /// The personal weights in the file, as one flat vector in canonical order.
    pub fn initial_personal(&self) -> Vec<f32> {
        self.inner.personal.initial.clone()
    }

    /// The digest of the graph and the parameters: two sides may exchange weights if theirs are equal.
    pub fn digest(&self) -> [u8; 32] {
        self.inner.digest
    }

    /// The first input's shape; `None` where any size is accepted.
    pub fn input_shape(&self) -> &[Option<usize>] {
        &self.inner.input_shape
    }

    /// The first output's shape; `None` where it depends on the input.
    pub fn output_shape(&self) -> &[Option<usize>] {
        &self.inner.output_shape
    }

    /// The quantile level of each output column, as the metadata [`QUANTILES`](crate::QUANTILES) name them.
    ///
    /// Without names the pinball loss takes levels that divide (0, 1) evenly.
    pub fn quantiles(&self) -> Option<&[f32]> {
        self.inner.quantiles.as_deref()
    }

    /// The metadata of the file.
    pub fn metadata(&self) -> &BTreeMap<String, String> {
        &self.inner.metadata
    }

    /// A valid ONNX file with these shared weights; `metadata` is added to the file's. Personal weights are the initial ones.
    pub fn export(&self, weights: &[f32], metadata: &[(&str, &str)]) -> Result<Vec<u8>> {
        self.inner.check_weights(weights)?;
        let values = self.inner.bind(weights, &self.inner.personal.initial);
        Ok(export::write(&self.inner.stripped, values, metadata))
    }
}

impl ModelInner {
    /// All parameters in the order of the plan: the shared ones, then the personal ones.
    #[cfg(feature = "tract")]
    pub(crate) fn parameters(&self) -> impl Iterator<Item = &Parameter> {
        self.shared.parameters.iter().chain(&self.personal.parameters)
    }

    /// All parameters in the order of the plan with their values.
    pub(crate) fn bind<'a>(
        &'a self,
        weights: &'a [f32],
        personal: &'a [f32],
    ) -> impl Iterator<Item = (&'a Parameter, &'a [f32])> {
        self.part(ModelPart::Shared).split(weights).chain(self.part(ModelPart::Personal).split(personal))
    }

    pub(crate) fn part(&self, part: ModelPart) -> &ParameterVector {
        match part {
            ModelPart::Shared => &self.shared,
            ModelPart::Personal => &self.personal,
        }
    }

    pub(crate) fn check_weights(&self, weights: &[f32]) -> Result<()> {
        let (found, expected) = (weights.len(), self.shared.initial.len());
        if found == expected { Ok(()) } else { Err(ModelError::Weights { found, expected }) }
    }

    pub(crate) fn check_personal(&self, personal: &[f32]) -> Result<()> {
        let (found, expected) = (personal.len(), self.personal.initial.len());
        if found == expected { Ok(()) } else { Err(ModelError::PersonalWeights { found, expected }) }
    }

    /// Shapes of all inputs, given the first one's. Other inputs take the sizes of the dimensions they share by name.
    pub(crate) fn input_shapes(&self, shape: &[usize], values: usize) -> Result<Vec<Vec<usize>>> {
        let fail = || ModelError::Inputs { shape: shape.to_vec(), values, expected: self.expected() };
        let dims = &self.graph.inputs[0].dims;
        let fits = shape.len() == dims.len()
            && dims
                .iter()
                .zip(shape)
                .all(|(dim, &size)| size > 0 && dim.size().is_none_or(|fixed| fixed == size));
        if !fits || proto::elements(shape) != Some(values) {
            return Err(fail());
        }
        let mut sizes: BTreeMap<&str, usize> = BTreeMap::new();
        for (dim, &size) in dims.iter().zip(shape) {
            if let InputDim::Free(name) = dim
                && !name.is_empty()
                && *sizes.entry(name).or_insert(size) != size
            {
                return Err(fail());
            }
        }
        let size = |dim: &InputDim| match dim {
            InputDim::Fixed(size) => Ok(*size),
            InputDim::Free(name) => sizes.get(name.as_str()).copied().ok_or_else(fail),
        };
        let others = self.graph.inputs[1..]
            .iter()
            .map(|input| input.dims.iter().map(size).collect::<Result<Vec<_>>>());
        std::iter::once(Ok(shape.to_vec())).chain(others).collect()
    }

    fn expected(&self) -> String {
        let dims = self.input_shape.iter().map(|size| size.map_or("?".to_owned(), |size| size.to_string()));
        format!("[{}]", dims.collect::<Vec<_>>().join(", "))
    }

    pub(crate) fn plan(&self, inputs: &[Vec<usize>], outputs: usize) -> Result<ExecutionPlan> {
        lower::plan(&self.graph, inputs, outputs, &self.limits)
    }

    /// Plans a batch of one where only the batch is free, so that shapes that never fit are found when loading.
    fn probe(&mut self) -> Result<()> {
        let shape: Vec<usize> = self.input_shape.iter().map(|size| size.unwrap_or(1)).collect();
        if self.input_shape.iter().skip(1).any(Option::is_none) {
            return Ok(());
        }
        let Ok(shapes) = self.input_shapes(&shape, shape.iter().product()) else { return Ok(()) };
        let plan = self.plan(&shapes, 1)?;
        let found = &plan.outputs[0].1;
        if self.output_shape.len() != found.len() {
            self.output_shape = found.iter().map(|&size| Some(size).filter(|&size| size != 1)).collect();
        }
        Ok(())
    }
}

/// The first output's declared shape; empty if it declares none.
fn declared(file: &pb::ModelProto) -> Vec<Option<usize>> {
    let output = file.graph.as_ref().and_then(|graph| graph.output.first());
    let shape = output.and_then(pb::ValueInfoProto::tensor_type).and_then(|tensor| tensor.shape.as_ref());
    shape.iter().flat_map(|shape| &shape.dim).map(pb::DimensionProto::size).collect()
}

impl InputDim {
    pub(crate) fn size(&self) -> Option<usize> {
        match self {
            InputDim::Fixed(size) => Some(*size),
            InputDim::Free(_) => None,
        }
    }
}
