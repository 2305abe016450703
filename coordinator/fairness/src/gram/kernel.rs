//! The inner loop: dot products of a few rows with a few others, in registers.

use pulp::{Simd, WithSimd};

/// Adds ⟨rowᵢ, columnⱼ⟩ to `sums[(i, j)]` for every pair.
///
/// Both operands lie along the dot product, so nothing has to be packed or transposed: a block of
/// `R` rows and `C` columns is kept in `R·C` vector registers while both stream by, R + C loads for
/// R·C multiplications. Single precision within the span, which therefore should be a few
/// thousand values long; double precision between spans.
pub(super) struct Products<'a> {
    pub(super) rows: &'a [&'a [f32]],
    pub(super) columns: &'a [&'a [f32]],
    /// Row by row, `stride` apart.
    pub(super) sums: &'a mut [f64],
    pub(super) stride: usize,
    /// Both operands are the same: only j ≤ i is wanted.
    pub(super) lower: bool,
}

impl WithSimd for Products<'_> {
    type Output = ();

    #[inline(always)]
    fn with_simd<S: Simd>(self, simd: S) {
        // R·C sums and R + 1 operands have to fit into the registers.
        if S::REGISTER_COUNT >= 32 { self.blocks::<S, 4, 6>(simd) } else { self.blocks::<S, 3, 4>(simd) }
    }
}

impl Products<'_> {
    #[inline(always)]
    fn blocks<S: Simd, const R: usize, const C: usize>(self, simd: S) {
        let (m, n) = (self.rows.len(), self.columns.len());
        for i in (0..m).step_by(R) {
            // A block at the edge repeats the last row, and its sums are not used.
            let rows: [&[f32]; R] = std::array::from_fn(|r| self.rows[(i + r).min(m - 1)]);
            let end = if self.lower { n.min(i + R) } else { n };
            for j in (0..end).step_by(C) {
                let columns: [&[f32]; C] = std::array::from_fn(|c| self.columns[(j + c).min(n - 1)]);
                let products = block::<S, R, C>(simd, rows, columns);
                for (r, products) in products.iter().enumerate().take(m - i) {
                    let sums = &mut self.sums[(i + r) * self.stride + j..][..C.min(n - j)];
                    for (sum, product) in sums.iter_mut().zip(products) {
                        *sum += f64::from(*product);
                    }
                }
            }
        }
    }
}

#[inline(always)]
fn block<S: Simd, const R: usize, const C: usize>(
    simd: S,
    rows: [&[f32]; R],
    columns: [&[f32]; C],
) -> [[f32; C]; R] {
    let (heads, tails) = split::<S, R>(simd, rows);
    let (column_heads, column_tails) = split::<S, C>(simd, columns);
    let mut sums = [[simd.splat_f32s(0.0); C]; R];
    multiply_add(simd, tails, column_tails, &mut sums);
    for k in 0..heads[0].len() {
        let (mut row, mut column) = (tails, column_tails);
        for r in 0..R {
            row[r] = heads[r][k];
        }
        for c in 0..C {
            column[c] = column_heads[c][k];
        }
        multiply_add(simd, row, column, &mut sums);
    }
    let mut products = [[0.0; C]; R];
    for r in 0..R {
        for c in 0..C {
            products[r][c] = simd.reduce_sum_f32s(sums[r][c]);
        }
    }
    products
}

#[inline(always)]
fn multiply_add<S: Simd, const R: usize, const C: usize>(
    simd: S,
    row: [S::f32s; R],
    column: [S::f32s; C],
    sums: &mut [[S::f32s; C]; R],
) {
    for r in 0..R {
        for c in 0..C {
            sums[r][c] = simd.mul_add_e_f32s(row[r], column[c], sums[r][c]);
        }
    }
}

/// Whole vectors of each slice, as many for each, and what is left over, padded with zeros.
#[inline(always)]
fn split<S: Simd, const N: usize>(simd: S, slices: [&[f32]; N]) -> ([&[S::f32s]; N], [S::f32s; N]) {
    let mut heads: [&[S::f32s]; N] = [&[]; N];
    let mut tails = [simd.splat_f32s(0.0); N];
    let length = slices[0].len();
    for n in 0..N {
        let (head, tail) = S::as_simd_f32s(&slices[n][..length]);
        heads[n] = head;
        tails[n] = simd.partial_load_f32s(tail);
    }
    (heads, tails)
}
