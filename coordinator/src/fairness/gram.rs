//! The Gram matrix of a round's updates.

use rayon::prelude::*;

/// ⟨Δθᵢ, Δθⱼ⟩ for every pair of updates.
#[derive(Debug, Clone, PartialEq)]
pub struct Gram {
    size: usize,
    products: Vec<f64>,
}

impl Gram {
    /// The Gram matrix of updates of one dimension.
    pub fn of(updates: &[&[f32]]) -> Self {
        let size = updates.len();
        let products = (0..size * size)
            .into_par_iter()
            .map(|at| {
                let (i, j) = (at / size, at % size);
                updates[i].iter().zip(updates[j]).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
            })
            .collect();
        Self { size, products }
    }

    /// How many updates there are.
    pub fn size(&self) -> usize {
        self.size
    }

    /// ⟨Δθᵢ, Δθⱼ⟩.
    pub fn get(&self, i: usize, j: usize) -> f64 {
        self.products[i * self.size + j]
    }
}
