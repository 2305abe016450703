//! Inference: predictions of a model, by tract or by the engine that trains.

#[cfg(feature = "tract")]
mod tract;
mod training_backend;

use crate::error::{ModelError, Result};
use crate::model::{Model, ModelInner};
use crate::order::Parameter;
use crate::personal::ModelPart;
use crate::plan::ExecutionPlan;

#[cfg(feature = "tract")]
pub use tract::Tract;

#[cfg(not(feature = "tract"))]
use crate::train::DefaultBackend as SelectedInference;
#[cfg(feature = "tract")]
use Tract as SelectedInference;

/// The engine that this build predicts with: tract, or without feature `tract` the backend that it trains on.
pub type DefaultInference = SelectedInference;

/// Prepared models cached, one for each of the latest input shapes.
const SHAPES_MAX: usize = 8;

/// An engine that models can be run on: [`Tract`](crate::backend::Tract), or a backend that also trains them.
///
/// Outputs of all engines agree within 10⁻⁵ of the largest one.
#[allow(private_interfaces)]
pub trait InferenceEngine: Sized + 'static {
    /// A name for logs and reports.
    const NAME: &'static str;

    /// The values of one parameter.
    #[doc(hidden)]
    type Weight: Clone + Send;

    /// A model prepared for inputs of one shape.
    #[doc(hidden)]
    type Prepared: Send;

    #[doc(hidden)]
    fn weight(parameter: &Parameter, values: &[f32]) -> Result<Self::Weight>;

    /// The model prepared for the inputs and outputs of a plan. `weights` are those it starts with; if they are to be
    /// folded, they are treated as constants.
    #[doc(hidden)]
    fn prepare(
        model: &ModelInner,
        plan: ExecutionPlan,
        weights: &[Self::Weight],
        folds_weights: bool,
    ) -> Result<Self::Prepared>;

    /// Clears what was computed from weights that have changed; false if the model has to be prepared again.
    #[doc(hidden)]
    fn clear(prepared: &mut Self::Prepared) -> bool;

    /// The outputs for these inputs, each with its shape.
    #[doc(hidden)]
    fn run(
        prepared: &mut Self::Prepared,
        inputs: &[(&[f32], &[usize])],
        weights: &[Self::Weight],
    ) -> Result<Vec<Vec<f32>>>;
}

/// Predictions of a model with the weights that were set last.
///
/// The engine prepares the model once for each input shape, with the weights as inputs, so one predictor serves a graph
/// for as long as it is used: [`set_weights`](Self::set_weights) copies the weights, nothing is prepared again, and the
/// outputs equal those of a new predictor bit for bit. Personal weights are those of the file until
/// [`set_personal`](Self::set_personal) swaps them in the same way.
///
/// ```
/// use evenhand_models::{LoadOptions, Model, Predictor, shipped};
///
/// let model = Model::load(shipped::ELECTRICITY_RNN, &LoadOptions::default())?;
/// let first = model.initial_weights();
/// let second: Vec<f32> = first.iter().map(|weight| weight * 0.5).collect();
/// let mut predictor = Predictor::new(&model, &first)?;
/// predictor.predict(&[0.5; 8 * 5], &[1, 8, 5])?;
/// predictor.set_weights(&second)?;
/// let swapped = predictor.predict(&[0.5; 8 * 5], &[1, 8, 5])?;
/// assert_eq!(swapped, Predictor::new(&model, &second)?.predict(&[0.5; 8 * 5], &[1, 8, 5])?);
/// # Ok::<(), evenhand_models::ModelError>(())
/// ```
pub struct Predictor<E: InferenceEngine = DefaultInference> {
    model: Model,
    /// The values of all parameters in the order of the plan: the shared ones, then the personal ones.
    weights: Vec<E::Weight>,
    prepared: Vec<PreparedShape<E>>,
    folds_weights: bool,
}

struct PreparedShape<E: InferenceEngine> {
    shape: Vec<usize>,
    prepared: E::Prepared,
}

impl Predictor<DefaultInference> {
    /// A predictor with these weights on this build's engine.
    pub fn new(model: &Model, weights: &[f32]) -> Result<Self> {
        Predictor::on(model, weights)
    }

    /// A predictor in whose plans tract holds the weights as constants, so that it optimises the model again after every
    /// swap: for many predictions between few swaps. The same as [`new`](Self::new) on another engine.
    pub fn folding(model: &Model, weights: &[f32]) -> Result<Self> {
        Predictor::build(model, weights, true)
    }
}

impl<E: InferenceEngine> Predictor<E> {
    /// A predictor with these weights on a given engine.
    pub fn on(model: &Model, weights: &[f32]) -> Result<Self> {
        Predictor::build(model, weights, false)
    }

    fn build(model: &Model, weights: &[f32], folds_weights: bool) -> Result<Self> {
        model.inner.check_weights(weights)?;
        let personal = model.initial_personal();
        let values = model.inner.bind(weights, &personal);
        let weights =
            values.map(|(parameter, values)| E::weight(parameter, values)).collect::<Result<_>>()?;
        Ok(Predictor { model: model.clone(), weights, prepared: vec![], folds_weights })
    }

    /// The model that is run.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Sets the shared weights of all later predictions; after an error the previous ones stay.
    pub fn set_weights(&mut self, weights: &[f32]) -> Result<()> {
        self.model.inner.check_weights(weights)?;
        self.swap(ModelPart::Shared, 0, weights)
    }

    /// Sets the personal weights of all later predictions; after an error the previous ones stay.
    pub fn set_personal(&mut self, personal: &[f32]) -> Result<()> {
        self.model.inner.check_personal(personal)?;
        self.swap(ModelPart::Personal, self.model.parameters().len(), personal)
    }

    /// Replaces the parameters from `first` on; what was computed from the old ones is cleared.
    fn swap(&mut self, part: ModelPart, first: usize, values: &[f32]) -> Result<()> {
        let values = self.model.inner.part(part).split(values);
        let new: Vec<_> =
            values.map(|(parameter, values)| E::weight(parameter, values)).collect::<Result<_>>()?;
        self.weights.splice(first..first + new.len(), new);
        self.prepared.retain_mut(|shape| E::clear(&mut shape.prepared));
        Ok(())
    }

    /// The first output for these inputs. Hidden states that the model takes as further inputs are zero.
    pub fn predict(&mut self, inputs: &[f32], shape: &[usize]) -> Result<Vec<f32>> {
        self.predict_from(inputs, shape, &mut vec![])
    }

    /// The first output for these inputs and hidden states: the model's further inputs, empty for zeros. They are
    /// replaced by its further outputs, so that a stream can be predicted in parts.
    pub fn predict_from(
        &mut self,
        inputs: &[f32],
        shape: &[usize],
        states: &mut Vec<Vec<f32>>,
    ) -> Result<Vec<f32>> {
        let shapes = self.model.inner.input_shapes(shape, inputs.len())?;
        if states.is_empty() {
            states.extend(shapes[1..].iter().map(|shape| vec![0.0; shape.iter().product()]));
        }
        let fit = states.len() + 1 == shapes.len()
            && states
                .iter()
                .zip(&shapes[1..])
                .all(|(state, shape)| state.len() == shape.iter().product::<usize>());
        if !fit {
            let sizes = states.iter().map(Vec::len).collect();
            return Err(ModelError::States { found: sizes, expected: shapes[1..].to_vec() });
        }
        let place = self.prepare(shape, &shapes)?;
        let given = std::iter::once(inputs).chain(states.iter().map(Vec::as_slice));
        let given: Vec<(&[f32], &[usize])> = given.zip(shapes.iter().map(Vec::as_slice)).collect();
        let mut outputs = E::run(&mut self.prepared[place].prepared, &given, &self.weights)?.into_iter();
        let first = outputs.next().unwrap_or_default();
        if outputs.len() == states.len() {
            *states = outputs.collect();
        }
        Ok(first)
    }

    /// The index of the model prepared for inputs of this shape.
    fn prepare(&mut self, shape: &[usize], shapes: &[Vec<usize>]) -> Result<usize> {
        if let Some(place) = self.prepared.iter().position(|prepared| prepared.shape == shape) {
            return Ok(place);
        }
        let inner = &self.model.inner;
        let plan = inner.plan(shapes, self.outputs())?;
        let prepared = E::prepare(inner, plan, &self.weights, self.folds_weights)?;
        if self.prepared.len() == SHAPES_MAX {
            self.prepared.remove(0);
        }
        self.prepared.push(PreparedShape { shape: shape.to_vec(), prepared });
        Ok(self.prepared.len() - 1)
    }

    /// All outputs if they can be the next states, otherwise the first.
    fn outputs(&self) -> usize {
        let graph = &self.model.inner.graph;
        if graph.inputs.len() > 1 && graph.outputs.len() == graph.inputs.len() {
            graph.outputs.len()
        } else {
            1
        }
    }
}
