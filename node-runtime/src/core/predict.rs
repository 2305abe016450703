//! Forecasts: of one value by lags, or of the next day by lead rows.

use std::sync::Arc;

use super::effect::{NodeEffect, Prediction};
use super::forecasts::Forecast;
use super::graph::GraphState;
use super::input::PredictedOutputs;
use super::node::Node;
use crate::forecast::{INPUTS, ModelOutputs, PreparedForecast};
use crate::window::{DataWindow, ForecastQuery};

impl Node {
    /// Requests a forecast, unless one was made of the same data with these weights.
    pub(super) fn predict(&mut self, effects: &mut Vec<NodeEffect>) {
        if !self.settings.forecasts {
            return;
        }
        if let DataWindow::DayAhead(_) = &self.window {
            return self.predict_day(effects);
        }
        if let (GraphState::Ready { sample, .. }, Some(mut query)) = (&self.graph, self.window.query()) {
            query.shape = std::iter::once(1).chain(sample.iter().copied()).collect();
            self.request(query, effects);
        }
    }

    /// Requests the corrections of a day-ahead forecast; without a model it is naive and made at once.
    fn predict_day(&mut self, effects: &mut Vec<NodeEffect>) {
        let Some(window) = self.window.day_ahead() else { return };
        let Some(prepared) = window.forecaster().prepare() else {
            self.prepared = None;
            return;
        };
        let for_ms = window.forecaster().history().end_ms(prepared.origin + 1);
        let query =
            ForecastQuery { inputs: prepared.inputs.clone(), shape: vec![prepared.leads(), INPUTS], for_ms };
        if matches!(self.graph, GraphState::Ready { .. }) && self.held.is_some() {
            if self.request(query, effects) {
                self.prepared = Some(prepared);
            }
        } else if self.vector.as_ref().is_none_or(|vector| vector.for_ms(0) != for_ms) {
            self.issue_day(&prepared, None, effects);
        }
    }

    /// Asks the driver for the model's outputs; false if it was asked before, or if there is no model.
    fn request(&mut self, query: ForecastQuery, effects: &mut Vec<NodeEffect>) -> bool {
        let (GraphState::Ready { info, .. }, Some(held)) = (&self.graph, &self.held) else { return false };
        let requested = Some((query.for_ms, held.digest));
        if self.predicted == requested {
            return false;
        }
        self.predicted = requested;
        let personal = self.personal_weights(info.digest).map(<[f32]>::to_vec);
        self.predictions += 1;
        let prediction = Prediction {
            id: self.predictions,
            graph: info.digest,
            weights: Arc::clone(&held.weights),
            personal,
            query,
        };
        effects.push(NodeEffect::Predict(Box::new(prediction)));
        true
    }

    /// Issues the forecast of the model's outputs; where there are none, that of the next day is naive.
    pub(super) fn forecast_made(
        &mut self,
        id: u64,
        for_ms: i64,
        outputs: Option<&PredictedOutputs>,
        effects: &mut Vec<NodeEffect>,
    ) {
        if let Some(window) = self.window.day_ahead() {
            let newest = window.forecaster().history().newest();
            if let Some(prepared) = self.prepared.take_if(|_| id == self.predictions)
                && newest == Some(prepared.origin)
            {
                self.issue_day(&prepared, outputs, effects);
            }
        } else if let (Some(series), Some(value)) =
            (self.window.series(), outputs.and_then(|outputs| outputs.shared.first()))
            && value.is_finite()
        {
            let value = series.normaliser().restore(*value);
            self.add_forecast(Forecast { for_ms, value }, effects);
        }
    }

    fn issue_day(
        &mut self,
        prepared: &PreparedForecast,
        outputs: Option<&PredictedOutputs>,
        effects: &mut Vec<NodeEffect>,
    ) {
        let staleness = self.account.as_ref().map_or(0, |account| account.staleness);
        let outputs = ModelOutputs {
            shared: outputs.map(|outputs| outputs.shared.as_slice()),
            personal: outputs.and_then(|outputs| outputs.personal.as_deref()),
            staleness: Some(staleness),
        };
        let DataWindow::DayAhead(window) = &mut self.window else { return };
        let vector = window.forecaster_mut().issue(prepared, outputs);
        let next =
            vector.medians().next().map(|value| Forecast { for_ms: vector.for_ms(0), value: value.into() });
        self.vector = Some(vector);
        if let Some(next) = next {
            self.add_forecast(next, effects);
        }
    }

    fn add_forecast(&mut self, forecast: Forecast, effects: &mut Vec<NodeEffect>) {
        self.forecasts.add(forecast);
        self.forecasts.evaluate(&self.window);
        effects.push(NodeEffect::Forecast(forecast));
    }
}
