//! The blocked symmetric product on all cores.

use super::kernel::Products;
use rayon::prelude::*;
use std::ops::Range;

/// Values of each update that are worked on at a time: long enough to pay for the reduction at its
/// end, short enough for single precision.
const SPAN: usize = 2048;

/// Updates on a side of a tile. The spans of two sides stay in a core's second-level cache, and those
/// of all updates in the last level, so each update is read from memory once.
const TILE: usize = 48;

/// The most groups of spans that are summed apart.
const GROUPS_MAX: usize = 64;

/// The lower triangle of the Gram matrix, tile by tile.
pub(super) struct Tiles {
    sums: Vec<f64>,
}

impl Tiles {
    fn zero(updates: usize) -> Self {
        let tiles = updates.div_ceil(TILE);
        Self { sums: vec![0.0; tiles * (tiles + 1) / 2 * TILE * TILE] }
    }

    /// The sum at row i, column j ≤ i.
    pub(super) fn get(&self, i: usize, j: usize) -> f64 {
        let (row, column) = (i / TILE, j / TILE);
        self.sums[(row * (row + 1) / 2 + column) * TILE * TILE + i % TILE * TILE + j % TILE]
    }

    fn add(mut self, other: Self) -> Self {
        self.sums.iter_mut().zip(other.sums).for_each(|(sum, other)| *sum += other);
        self
    }
}

/// ⟨Δθᵢ, Δθⱼ⟩ for j ≤ i.
///
/// The grouping of the sums depends on the shape of the problem only, so the result is the same to
/// the last bit on any number of cores. The groups' partial sums together take at most a quarter of
/// the memory of the updates.
pub(super) fn lower_triangle(updates: &[&[f32]]) -> Tiles {
    let size = updates.len();
    let dim = updates.first().map_or(0, |update| update.len());
    let spans = dim.div_ceil(SPAN);
    let groups = (dim / (8 * size.max(1))).clamp(1, GROUPS_MAX).min(spans.max(1));
    let parts: Vec<Tiles> = (0..groups)
        .into_par_iter()
        .map(|group| sum_over(updates, dim, spans * group / groups..spans * (group + 1) / groups))
        .collect();
    parts.into_iter().reduce(Tiles::add).unwrap_or_else(|| Tiles::zero(size))
}

/// The part of the products that comes from some spans.
fn sum_over(updates: &[&[f32]], dim: usize, spans: Range<usize>) -> Tiles {
    let processor = pulp::Arch::new();
    let mut tiles = Tiles::zero(updates.len());
    let places: Vec<(usize, usize)> = (0..updates.len().div_ceil(TILE))
        .flat_map(|row| (0..=row).map(move |column| (row, column)))
        .collect();
    for span in spans {
        let span = span * SPAN..dim.min((span + 1) * SPAN);
        let pieces: Vec<&[f32]> = updates.iter().map(|update| &update[span.clone()]).collect();
        let sides: Vec<&[&[f32]]> = pieces.chunks(TILE).collect();
        tiles.sums.par_chunks_mut(TILE * TILE).zip(&places).for_each(|(sums, &(row, column))| {
            processor.dispatch(Products {
                rows: sides[row],
                columns: sides[column],
                sums,
                stride: TILE,
                lower: row == column,
            });
        });
    }
    tiles
}
