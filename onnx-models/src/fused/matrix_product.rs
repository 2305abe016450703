//! Products of strided matrices, with the bounds checked here once so that the rest is safe code.

/// A matrix in a slice.
#[derive(Clone, Copy)]
pub(crate) struct MatrixView<'a> {
    pub(crate) data: &'a [f32],
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) row_stride: usize,
    pub(crate) column_stride: usize,
}

impl<'a> MatrixView<'a> {
    /// Row-major, without gaps.
    pub(crate) fn dense(data: &'a [f32], rows: usize, columns: usize) -> Self {
        MatrixView { data, rows, columns, row_stride: columns, column_stride: 1 }
    }

    /// Row-major, with rows `row_stride` apart.
    pub(crate) fn strided(data: &'a [f32], rows: usize, columns: usize, row_stride: usize) -> Self {
        MatrixView { data, rows, columns, row_stride, column_stride: 1 }
    }

    pub(crate) fn transposed(self) -> Self {
        MatrixView {
            rows: self.columns,
            columns: self.rows,
            row_stride: self.column_stride,
            column_stride: self.row_stride,
            ..self
        }
    }
}

/// The treatment of the current values of the output.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum WriteMode {
    Replace,
    Add,
}

/// Writes the product of `a` and `b` to rows of `out` that are `row_stride` apart.
pub(crate) fn multiply(
    out: &mut [f32],
    row_stride: usize,
    a: MatrixView<'_>,
    b: MatrixView<'_>,
    into: WriteMode,
) {
    assert_eq!(a.columns, b.rows, "the factors fit");
    let reach = |rows: usize, columns: usize, row_stride: usize, column_stride: usize| {
        if rows == 0 || columns == 0 {
            0
        } else {
            (rows - 1) * row_stride + (columns - 1) * column_stride + 1
        }
    };
    assert!(
        reach(a.rows, a.columns, a.row_stride, a.column_stride) <= a.data.len(),
        "the first factor is in its slice"
    );
    assert!(
        reach(b.rows, b.columns, b.row_stride, b.column_stride) <= b.data.len(),
        "the second factor is in its slice"
    );
    assert!(reach(a.rows, b.columns, row_stride, 1) <= out.len(), "the product is in its slice");
    assert!(a.rows <= 1 || row_stride >= b.columns, "rows of the product do not overlap");
    #[allow(unsafe_code)]
    // SAFETY: the assertions above keep every access within its slice, and `out` is borrowed mutably, so it overlaps
    // neither factor nor itself.
    unsafe {
        gemm::gemm(
            a.rows,
            b.columns,
            a.columns,
            out.as_mut_ptr(),
            1,
            row_stride as isize,
            into == WriteMode::Add,
            a.data.as_ptr(),
            a.column_stride as isize,
            a.row_stride as isize,
            b.data.as_ptr(),
            b.column_stride as isize,
            b.row_stride as isize,
            1.0,
            1.0,
            false,
            false,
            false,
            gemm::Parallelism::None,
        );
    }
}
