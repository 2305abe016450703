//! Matrix products of operands in several segments of memory, without copying them first.

use super::lanes::{LANES_MAX, Lanes};

/// Floats of the second factor for one pass over the rows, so that they stay in the processor's first cache.
pub(super) const PASS_FLOATS: usize = 8 << 10;

/// For every row and column: out[row.to + column] = Σ a[row.from + segment.a + k·a_step] · b[segment.b + k·b_step +
/// column], over all segments and all k below their length.
pub(super) struct Product<'a> {
    pub(super) a: &'a [f32],
    pub(super) a_step: usize,
    /// Readable up to the next multiple of [`LANES_MAX`] columns.
    pub(super) b: &'a [f32],
    pub(super) b_step: usize,
    pub(super) columns: usize,
    pub(super) length: usize,
    pub(super) segments: &'a [ProductSegment],
}

/// Beginning of a stretch of the sum in both factors.
#[derive(Clone, Copy)]
pub(super) struct ProductSegment {
    pub(super) a: usize,
    pub(super) b: usize,
}

/// Beginnings of a row of the first factor and of the row of the result.
#[derive(Clone, Copy)]
pub(super) struct ProductRow {
    pub(super) from: usize,
    pub(super) to: usize,
}

/// The initial value of the sums.
#[derive(Clone, Copy)]
pub(super) enum InitialSums<'a> {
    /// One value for each column, padded like the second factor.
    Each(&'a [f32]),
    /// The current values of the output.
    Out,
}

impl Product<'_> {
    /// Rows of the result may overlap where they are added to what is there.
    pub(super) fn run(&self, rows: &[ProductRow], start: InitialSums<'_>, out: &mut [f32]) {
        let best = InstructionSet::available().next().unwrap_or(InstructionSet::Baseline);
        self.run_with(best, rows, start, out);
    }

    fn run_with(
        &self,
        instructions: InstructionSet,
        rows: &[ProductRow],
        start: InitialSums<'_>,
        out: &mut [f32],
    ) {
        let Product { a, b, .. } = *self;
        if rows.is_empty() || self.columns == 0 {
            return;
        }
        assert!(self.length > 0 && !self.segments.is_empty(), "there is something to sum");
        let most = |values: &mut dyn Iterator<Item = usize>| values.fold(0, usize::max);
        let padded = self.columns.next_multiple_of(LANES_MAX);
        let last = self.length - 1;
        let reach_a = most(&mut rows.iter().map(|row| row.from))
            + most(&mut self.segments.iter().map(|segment| segment.a))
            + last * self.a_step;
        assert!(reach_a < a.len(), "the first factor is in its slice");
        let reach_b = most(&mut self.segments.iter().map(|segment| segment.b)) + last * self.b_step + padded;
        assert!(reach_b <= b.len(), "the second factor is in its slice");
        let reach = most(&mut rows.iter().map(|row| row.to)) + self.columns;
        assert!(reach <= out.len(), "the result is in its slice");
        assert!(
            !matches!(start, InitialSums::Each(values) if values.len() < padded),
            "a value for each column"
        );
        let out = out.as_mut_ptr();

        #[allow(unsafe_code)]
        // SAFETY: the assertions keep every access within its slice, `out` is borrowed mutably, and instructions are
        // available where they are chosen.
        unsafe {
            match instructions {
                #[cfg(target_arch = "x86_64")]
                InstructionSet::Avx512 => avx512(self, rows, start, out),
                #[cfg(target_arch = "x86_64")]
                InstructionSet::Avx2 => avx2(self, rows, start, out),
                #[cfg(target_arch = "aarch64")]
                InstructionSet::Baseline => {
                    drive::<std::arch::aarch64::float32x4_t, 8>(self, rows, start, out)
                }
                #[cfg(not(target_arch = "aarch64"))]
                InstructionSet::Baseline => drive::<[f32; 4], 2>(self, rows, start, out),
            }
        }
    }
}

/// The instruction sets a product is compiled for.
#[derive(Debug, Clone, Copy, PartialEq)]
enum InstructionSet {
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// The instructions of every processor of the architecture.
    Baseline,
}

impl InstructionSet {
    /// The instruction sets of this processor, the best first.
    fn available() -> impl Iterator<Item = InstructionSet> {
        let all = [
            #[cfg(target_arch = "x86_64")]
            (InstructionSet::Avx512, super::lanes::has_avx512()),
            #[cfg(target_arch = "x86_64")]
            (
                InstructionSet::Avx2,
                std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma"),
            ),
            (InstructionSet::Baseline, true),
        ];
        all.into_iter().filter(|(_, has)| *has).map(|(instructions, _)| instructions)
    }
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")]
unsafe fn avx512(p: &Product<'_>, rows: &[ProductRow], start: InitialSums<'_>, out: *mut f32) {
    // SAFETY: the caller has checked the bounds of every access.
    unsafe { drive::<std::arch::x86_64::__m512, 8>(p, rows, start, out) }
}

#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
#[target_feature(enable = "avx2,fma")]
unsafe fn avx2(p: &Product<'_>, rows: &[ProductRow], start: InitialSums<'_>, out: *mut f32) {
    // SAFETY: the caller has checked the bounds of every access.
    unsafe { drive::<std::arch::x86_64::__m256, 4>(p, rows, start, out) }
}

/// All blocks of `M` rows by up to three registers of columns; one such block of sums stays in registers.
#[allow(unsafe_code)]
#[inline(always)]
unsafe fn drive<V: Lanes, const M: usize>(
    p: &Product<'_>,
    rows: &[ProductRow],
    start: InitialSums<'_>,
    out: *mut f32,
) {
    let registers = p.columns.div_ceil(V::COUNT);
    let mut done = 0;
    while done < registers {
        let take = match registers - done {
            4 => 2,
            left => left.min(3),
        };
        let column = done * V::COUNT;
        for rows in rows.chunks(M) {
            // SAFETY: the caller has checked the bounds of every access.
            unsafe {
                match (take, rows.len() <= 2) {
                    (1, false) => block::<V, M, 1>(p, rows, start, column, out),
                    (2, false) => block::<V, M, 2>(p, rows, start, column, out),
                    (_, false) => block::<V, M, 3>(p, rows, start, column, out),
                    (1, true) => block::<V, 2, 1>(p, rows, start, column, out),
                    (2, true) => block::<V, 2, 2>(p, rows, start, column, out),
                    (_, true) => block::<V, 2, 3>(p, rows, start, column, out),
                }
            }
        }
        done += take;
    }
}

#[allow(unsafe_code)]
#[allow(clippy::needless_range_loop, reason = "loops over registers read as their indices")]
#[inline(always)]
unsafe fn block<V: Lanes, const M: usize, const N: usize>(
    p: &Product<'_>,
    rows: &[ProductRow],
    start: InitialSums<'_>,
    column: usize,
    out: *mut f32,
) {
    // SAFETY: the caller has checked the bounds of every access.
    unsafe {
        let mut sums = [[V::splat(0.0); N]; M];
        if let InitialSums::Each(values) = start {
            for n in 0..N {
                let value = V::load(values.as_ptr().add(column + n * V::COUNT));
                for sums in &mut sums {
                    sums[n] = value;
                }
            }
        }
        // Rows that are missing at the end repeat the last one, and are not written.
        let mut begin = [p.a.as_ptr(); M];
        for (i, begin) in begin.iter_mut().enumerate() {
            *begin = begin.add(rows[i.min(rows.len() - 1)].from);
        }
        for segment in p.segments {
            let mut b = p.b.as_ptr().add(segment.b + column);
            let mut k = segment.a;
            for _ in 0..p.length {
                let mut factors = [V::splat(0.0); N];
                for (n, factor) in factors.iter_mut().enumerate() {
                    *factor = V::load(b.add(n * V::COUNT));
                }
                for i in 0..M {
                    let a = V::splat(*begin[i].add(k));
                    for n in 0..N {
                        sums[i][n] = sums[i][n].add_product(a, factors[n]);
                    }
                }
                k += p.a_step;
                b = b.add(p.b_step);
            }
        }
        let width = p.columns - column;
        for i in 0..M {
            if i >= rows.len() {
                continue;
            }
            let to = out.add(rows[i].to + column);
            if width >= N * V::COUNT {
                for n in 0..N {
                    let to = to.add(n * V::COUNT);
                    let sum = if matches!(start, InitialSums::Out) {
                        V::load(to).add(sums[i][n])
                    } else {
                        sums[i][n]
                    };
                    sum.store(to);
                }
            } else {
                let mut buffer = [0.0f32; 3 * LANES_MAX];
                for n in 0..N {
                    sums[i][n].store(buffer.as_mut_ptr().add(n * V::COUNT));
                }
                for (j, value) in buffer[..width].iter().enumerate() {
                    let to = to.add(j);
                    *to = if matches!(start, InitialSums::Out) { *to + value } else { *value };
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::lanes::LANES_MAX;
    use super::{InitialSums, InstructionSet, Product, ProductRow, ProductSegment};

    /// With all instructions at hand; whole numbers, so that every order of summing gives the same.
    #[test]
    fn sums_are_those_of_the_definition() {
        let value = |i: usize| ((i * 7919) % 13) as f32 - 6.0;
        for (rows, columns, length, segments) in
            [(1, 1, 1, 1), (2, 16, 3, 2), (8, 33, 4, 1), (9, 48, 5, 3), (11, 64, 2, 2), (17, 100, 7, 1)]
        {
            let (a_step, b_step) = (2, columns + 3);
            let a: Vec<f32> = (0..rows * 3 + segments * 5 + length * a_step).map(value).collect();
            let b: Vec<f32> = (0..segments * 4 + length * b_step + columns.next_multiple_of(LANES_MAX))
                .map(value)
                .collect();
            let segments: Vec<ProductSegment> =
                (0..segments).map(|s| ProductSegment { a: 5 * s, b: 4 * s }).collect();
            let each: Vec<f32> = (0..columns.next_multiple_of(LANES_MAX)).map(value).collect();
            let product = Product { a: &a, a_step, b: &b, b_step, columns, length, segments: &segments };
            for start in [InitialSums::Each(&each), InitialSums::Out] {
                // Sums that are added overlap, as windows of an image do.
                let apart = if matches!(start, InitialSums::Out) { 5 } else { columns + 1 };
                let rows: Vec<ProductRow> =
                    (0..rows).map(|i| ProductRow { from: 3 * i, to: i * apart }).collect();
                let before = vec![1.0; rows.len() * apart + columns];
                let mut expected = before.clone();
                for row in &rows {
                    for j in 0..columns {
                        let sum: f32 = segments
                            .iter()
                            .flat_map(|s| {
                                let (a, b) = (&a, &b);
                                (0..length)
                                    .map(move |k| a[row.from + s.a + k * a_step] * b[s.b + k * b_step + j])
                            })
                            .sum();
                        let to = &mut expected[row.to + j];
                        *to = match start {
                            InitialSums::Each(_) => each[j] + sum,
                            InitialSums::Out => *to + sum,
                        };
                    }
                }
                for instructions in InstructionSet::available() {
                    let mut found = before.clone();
                    product.run_with(instructions, &rows, start, &mut found);
                    assert_eq!(found, expected, "{instructions:?}: {} rows, {columns} columns", rows.len());
                }
            }
        }
    }
}
