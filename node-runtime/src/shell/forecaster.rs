//! Forecasts with the model at hand, prepared once for each set of weights.

use std::sync::Arc;

use evenhand_models::{Model, Predictor};

use crate::core::{Input, Prediction};

/// Keeps what was prepared for the last weights.
#[derive(Default)]
pub(super) struct Forecaster {
    ready: Option<(Arc<[f32]>, Predictor)>,
}

impl Forecaster {
    /// The forecast, or why there is none.
    pub(super) fn forecast(&mut self, prediction: &Prediction, model: &Model) -> Result<Input, String> {
        let outputs = self.predict(prediction, model).map_err(|error| error.to_string())?;
        let value = *outputs.first().ok_or("the model has no output")?;
        Ok(Input::Predicted { for_ms: prediction.query.for_ms, value })
    }

    fn predict(
        &mut self,
        prediction: &Prediction,
        model: &Model,
    ) -> Result<Vec<f32>, evenhand_models::ModelError> {
        let query = &prediction.query;
        if let Some((weights, predictor)) = &mut self.ready
            && Arc::ptr_eq(weights, &prediction.weights)
        {
            return predictor.predict(&query.inputs, &query.shape);
        }
        let mut predictor = Predictor::new(model, &prediction.weights)?;
        let outputs = predictor.predict(&query.inputs, &query.shape);
        self.ready = Some((Arc::clone(&prediction.weights), predictor));
        outputs
    }
}
