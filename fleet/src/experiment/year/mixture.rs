//! Bernstein online aggregation (Wintenberger, 2017) of experts, by group of leads and quantile.

/// Aggregation of `experts` forecasts of one quantile.
#[derive(Debug, Clone)]
pub(super) struct Aggregation {
    regrets: Vec<f32>,
    squares: Vec<f32>,
    largest: Vec<f32>,
}

impl Aggregation {
    pub(super) fn new(experts: usize) -> Self {
        Self { regrets: vec![0.0; experts], squares: vec![0.0; experts], largest: vec![0.0; experts] }
    }

    fn rate(&self, expert: usize) -> f32 {
        let prior = (self.regrets.len() as f32).ln();
        let (square, largest) = (self.squares[expert], self.largest[expert]);
        if square == 0.0 {
            return 1.0;
        }
        (prior / square).sqrt().min(0.5 / largest)
    }

    /// Weights of the experts that are `awake`; they sum to 1.
    pub(super) fn weights(&self, awake: &[bool]) -> Vec<f32> {
        let score = |expert: usize| {
            if !awake[expert] {
                return f32::NEG_INFINITY;
            }
            let rate = self.rate(expert);
            rate.ln() + rate * self.regrets[expert]
        };
        let scores: Vec<f32> = (0..awake.len()).map(score).collect();
        let most = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let mut weights: Vec<f32> = scores.iter().map(|score| (score - most).exp()).collect();
        let sum: f32 = weights.iter().sum();
        weights.iter_mut().for_each(|weight| *weight /= sum);
        weights
    }

    /// Learns from the regret against each expert: the loss of the mixture less that of the expert, linearised.
    pub(super) fn learn(&mut self, awake: &[bool], regrets: &[f32]) {
        for expert in (0..awake.len()).filter(|expert| awake[*expert]) {
            let regret = regrets[expert];
            self.squares[expert] += regret * regret;
            self.largest[expert] = self.largest[expert].max(regret.abs());
            let rate = self.rate(expert);
            self.regrets[expert] += regret - rate * regret * regret;
        }
    }
}
