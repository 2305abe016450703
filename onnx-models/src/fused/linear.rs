//! x·W + b, and x·Wᵀ + b without moving W.

use burn_flex::FlexTensor;

use super::Fused;
use super::gemm::{Into, Matrix, multiply};
use super::layout::{dense, shape, tensor, values};

#[derive(Debug, Clone)]
pub(super) struct Linear {
    pub(super) transposed: bool,
}

impl Linear {
    fn weight<'a>(&self, w: &'a FlexTensor) -> Matrix<'a> {
        let [rows, columns] = shape(w);
        let w = Matrix::dense(values(w), rows, columns);
        if self.transposed { w.transposed() } else { w }
    }
}

impl Fused<3> for Linear {
    type Saved = [FlexTensor; 2];

    fn forward(&self, [x, w, b]: [FlexTensor; 3]) -> (FlexTensor, Self::Saved) {
        let (x, w, b) = (dense(x), dense(w), dense(b));
        let [rows, inputs] = shape(&x);
        let weight = self.weight(&w);
        let mut out = values(&b).repeat(rows);
        multiply(&mut out, weight.columns, Matrix::dense(values(&x), rows, inputs), weight, Into::Add);
        let out = tensor(out, &[rows, weight.columns]);
        (out, [x, w])
    }

    fn backward(
        &self,
        [x, w]: Self::Saved,
        gradient: FlexTensor,
        wanted: [bool; 3],
    ) -> [Option<FlexTensor>; 3] {
        let gradient = dense(gradient);
        let [rows, inputs] = shape(&x);
        let weight = self.weight(&w);
        let outputs = weight.columns;
        let slopes = Matrix::dense(values(&gradient), rows, outputs);
        let x_gradient = wanted[0].then(|| {
            let mut out = vec![0.0; rows * inputs];
            multiply(&mut out, inputs, slopes, weight.transposed(), Into::Replace);
            tensor(out, &[rows, inputs])
        });
        let w_gradient = wanted[1].then(|| {
            let mut out = vec![0.0; inputs * outputs];
            let x = Matrix::dense(values(&x), rows, inputs);
            if self.transposed {
                multiply(&mut out, inputs, slopes.transposed(), x, Into::Replace);
                tensor(out, &[outputs, inputs])
            } else {
                multiply(&mut out, outputs, x.transposed(), slopes, Into::Replace);
                tensor(out, &[inputs, outputs])
            }
        });
        let b_gradient = wanted[2].then(|| {
            let mut out = vec![0.0; outputs];
            for row in values(&gradient).chunks(outputs) {
                out.iter_mut().zip(row).for_each(|(sum, slope)| *sum += slope);
            }
            tensor(out, &[outputs])
        });
        [x_gradient, w_gradient, b_gradient]
    }
}
