//! Dense layers: x·W + b, and x·Wᵀ + b without transposing W in memory.

use std::borrow::Cow;

use burn_flex::FlexTensor;

use super::lanes::LANES_MAX;
use super::matrix_product::{MatrixView, WriteMode, multiply};
use super::memory_layout::{dense, shape, tensor, values};
use super::segment_product::{InitialSums, PASS_FLOATS, Product, ProductRow, ProductSegment};
use super::{FusedKernel, InputAndWeight};

#[derive(Debug, Clone)]
pub(super) struct FusedLinear {
    pub(super) transposed: bool,
}

impl FusedLinear {
    fn weight<'a>(&self, w: &'a FlexTensor) -> MatrixView<'a> {
        let [rows, columns] = shape(w);
        let w = MatrixView::dense(values(w), rows, columns);
        if self.transposed { w.transposed() } else { w }
    }
}

/// The product of `a` and a row-major matrix of so many columns, which is readable a register beyond its end.
fn wide(out: &mut [f32], a: MatrixView<'_>, b: &[f32], columns: usize) {
    let rows: Vec<ProductRow> =
        (0..a.rows).map(|i| ProductRow { from: i * a.row_stride, to: i * columns }).collect();
    let zeros = vec![0.0; columns.next_multiple_of(LANES_MAX)];
    // Three registers of columns are summed at a time.
    let pass = PASS_FLOATS / columns.clamp(LANES_MAX, 3 * LANES_MAX);
    for begin in (0..a.columns).step_by(pass) {
        let product = Product {
            a: &a.data[begin * a.column_stride..],
            a_step: a.column_stride,
            b: &b[begin * columns..],
            b_step: columns,
            columns,
            length: pass.min(a.columns - begin),
            segments: &[ProductSegment { a: 0, b: 0 }],
        };
        let start = if begin == 0 { InitialSums::Each(&zeros) } else { InitialSums::Out };
        product.run(&rows, start, out);
    }
}

/// A row-major matrix of so many columns, readable a register beyond its end if its rows do not fill registers.
fn readable(matrix: &[f32], columns: usize) -> Cow<'_, [f32]> {
    let mut matrix = Cow::Borrowed(matrix);
    if !columns.is_multiple_of(LANES_MAX) {
        matrix.to_mut().extend([0.0; LANES_MAX]);
    }
    matrix
}

impl FusedKernel<3> for FusedLinear {
    type Saved = InputAndWeight;

    fn forward(&self, [x, w, b]: [FlexTensor; 3]) -> (FlexTensor, Self::Saved) {
        let (x, w, b) = (dense(x), dense(w), dense(b));
        let [rows, inputs] = shape(&x);
        let weight = self.weight(&w);
        let mut out = values(&b).repeat(rows);
        multiply(
            &mut out,
            weight.columns,
            MatrixView::dense(values(&x), rows, inputs),
            weight,
            WriteMode::Add,
        );
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
        let slopes = MatrixView::dense(values(&gradient), rows, outputs);
        let x_gradient = wanted[0].then(|| {
            let mut out = vec![0.0; rows * inputs];
            match self.transposed {
                true => wide(&mut out, slopes, &readable(values(&w), inputs), inputs),
                false => multiply(&mut out, inputs, slopes, weight.transposed(), WriteMode::Replace),
            }
            tensor(out, &[rows, inputs])
        });
        let w_gradient = wanted[1].then(|| {
            let mut out = vec![0.0; inputs * outputs];
            let x = MatrixView::dense(values(&x), rows, inputs);
            if self.transposed {
                wide(&mut out, slopes.transposed(), &readable(x.data, inputs), inputs);
                tensor(out, &[outputs, inputs])
            } else {
                wide(&mut out, x.transposed(), &readable(slopes.data, outputs), outputs);
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
