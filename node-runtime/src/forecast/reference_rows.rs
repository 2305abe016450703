//! Rows by which a household's data are measured, not trained on.

use super::{INPUTS, LeadRows, QUANTILES};

/// Place of the slot median among the inputs: the load is this and the correction of the median.
const SLOT_MEDIAN: usize = 0;
/// Least deviation of an input: what varies less is next to constant.
const DEVIATION_MIN: f32 = 0.05;
/// Least deviation of the loads: below it a meter is stuck, and what is left of the loads is rounding.
const LOAD_DEVIATION_MIN: f32 = 1e-3;

impl LeadRows {
    /// The same rows for a reference gradient of the squared error: loads in place of corrections, loads and inputs less their
    /// means over the rows, and inputs in units of their deviation.
    ///
    /// Corrections of a profile's quantiles would rank noise above data. Of loads at random the past quantiles are those of
    /// the future, up to what few days distort in the same way everywhere: such a node agrees with all others, always. What a
    /// node has to contribute is how loads follow from inputs, and of that a load at random has nothing.
    ///
    /// # Formula
    ///
    /// zᵢ = yᵢ − ȳ for every column, with y the load in units of the scale, and x̃ᵢ = (xᵢ − x̄)/σ(x). At weights whose output is
    /// zero the gradient of the last layer is −(2/n)·Σ zᵢ·h(x̃ᵢ): the covariance of load and hidden features.
    #[must_use]
    pub fn for_reference(mut self) -> Self {
        let rows = self.len();
        let count = rows.max(1) as f32;
        let corrections = self.targets.chunks_exact(QUANTILES.len()).map(|row| row[QUANTILES.len() / 2]);
        let loads: Vec<f32> = self
            .inputs
            .chunks_exact(INPUTS)
            .zip(corrections)
            .map(|(inputs, correction)| inputs[SLOT_MEDIAN] + correction)
            .collect();
        let mean = loads.iter().sum::<f32>() / count;
        let variance = loads.iter().map(|load| (load - mean).powi(2)).sum::<f32>() / count;
        let is_stuck = variance.sqrt() < LOAD_DEVIATION_MIN;
        for (row, load) in self.targets.chunks_exact_mut(QUANTILES.len()).zip(loads) {
            row.fill(if is_stuck { 0.0 } else { load - mean });
        }
        for column in 0..INPUTS {
            let of_column = || self.inputs.iter().skip(column).step_by(INPUTS);
            let mean = of_column().sum::<f32>() / count;
            let variance = of_column().map(|input| (input - mean).powi(2)).sum::<f32>() / count;
            let deviation = variance.sqrt().max(DEVIATION_MIN);
            let inputs = self.inputs.iter_mut().skip(column).step_by(INPUTS);
            inputs.for_each(|input| *input = (*input - mean) / deviation);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loads_and_inputs_lose_their_means_and_inputs_their_scale() {
        let row = |first: f32, second: f32| {
            let mut inputs = vec![0.5; INPUTS];
            (inputs[0], inputs[1]) = (first, second);
            inputs
        };
        let inputs = [row(1.0, 4.0), row(2.0, -4.0)].concat();
        let rows = LeadRows { inputs, targets: vec![9.0, 0.5, -9.0, 9.0, 1.5, -9.0] }.for_reference();
        assert_eq!(rows.targets, [-1.0, -1.0, -1.0, 1.0, 1.0, 1.0], "of loads 1.5 and 3.5");
        assert_eq!(rows.inputs[..3], [-1.0, 1.0, 0.0]);
        assert_eq!(rows.inputs[INPUTS..INPUTS + 3], [1.0, -1.0, 0.0]);
        assert_eq!(LeadRows::default().for_reference(), LeadRows::default());
    }

    #[test]
    fn rows_of_a_stuck_meter_say_nothing() {
        // A load that binary fractions do not have: its mean over 192 rows is rounded.
        let inputs = |row: usize| {
            let mut inputs = vec![row as f32 / 192.0; INPUTS];
            inputs[0] = 0.3;
            inputs
        };
        let rows = LeadRows {
            inputs: (0..192).flat_map(inputs).collect(),
            targets: vec![0.0; 192 * QUANTILES.len()],
        };
        let measured = rows.for_reference();
        assert!(measured.targets.iter().all(|target| *target == 0.0), "{:?}", &measured.targets[..3]);
        assert!(measured.inputs.iter().any(|input| *input != 0.0));
    }
}
