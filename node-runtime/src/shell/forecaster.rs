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
    pub(super) fn forecast(&mut self, prediction: &Prediction, model: &Model) -> Option<Input> {
        let outputs = self.predict(prediction, model);
        match outputs {
            Ok(outputs) => {
                Some(Input::Predicted { for_ms: prediction.query.for_ms, value: *outputs.first()? })
            }
            Err(error) => {
                tracing::warn!(%error, "cannot forecast");
                None
            }
        }
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
