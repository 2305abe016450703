//! The cost of a round's contributions: `cargo bench -p evenhand-fairness`, and side by side with
//! OpenBLAS in the same run by adding `--features openblas`.

use divan::{Bencher, black_box, counter::BytesCount};
use evenhand_fairness::{
    ContributionConfig, Estimator, Gram, Utility, contributions, game::CosineGame, shapley,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The parameters of the paper's MNIST model.
const DIM: usize = 104_242;

fn main() {
    divan::main();
}

fn updates(nodes: usize) -> Vec<f32> {
    let mut rng = ChaCha8Rng::seed_from_u64(nodes as u64);
    (0..nodes * DIM).map(|_| rng.random::<f32>() - 0.4).collect()
}

/// One round of a utility.
fn round(bencher: Bencher<'_, '_>, nodes: usize, utility: Utility, estimator: Estimator) {
    let updates = updates(nodes);
    let slices: Vec<&[f32]> = updates.chunks(DIM).collect();
    let weights = vec![1.0 / nodes as f64; nodes];
    let config = ContributionConfig { utility, estimator, ..ContributionConfig::default() };
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    bencher
        .counter(BytesCount::of_slice(&updates))
        .bench_local(|| contributions(&slices, &weights, &config, &mut rng));
}

#[divan::bench(args = [10, 30, 100, 300])]
fn cosine_stratified(bencher: Bencher<'_, '_>, nodes: usize) {
    round(bencher, nodes, Utility::Cosine, Estimator::Stratified);
}

#[divan::bench(args = [10, 30, 100, 300])]
fn cosine_permutation(bencher: Bencher<'_, '_>, nodes: usize) {
    round(bencher, nodes, Utility::Cosine, Estimator::Permutation);
}

#[divan::bench(args = [10, 16, 20])]
fn cosine_exact(bencher: Bencher<'_, '_>, nodes: usize) {
    round(bencher, nodes, Utility::Cosine, Estimator::Exact);
}

#[divan::bench(args = [10, 30, 100, 300])]
fn inner_product(bencher: Bencher<'_, '_>, nodes: usize) {
    round(bencher, nodes, Utility::InnerProduct, Estimator::Stratified);
}

/// A sample of each estimator once the Gram matrix is there: what coalitions cost.
#[divan::bench(args = [10, 30, 100, 300])]
fn coalitions_of_a_pair(bencher: Bencher<'_, '_>, nodes: usize) {
    let updates = updates(nodes);
    let slices: Vec<&[f32]> = updates.chunks(DIM).collect();
    let weights = vec![1.0 / nodes as f64; nodes];
    let mut game = CosineGame::new(&Gram::of(&slices), &weights, &weights);
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let effort = shapley::Effort { samples: 2, standard_error: None };
    bencher.bench_local(|| shapley::stratified(&mut game, effort, &mut rng));
}

/// The same as the published code draws them.
#[divan::bench(args = [10, 30, 100])]
fn coalitions_one_by_one(bencher: Bencher<'_, '_>, nodes: usize) {
    let updates = updates(nodes);
    let slices: Vec<&[f32]> = updates.chunks(DIM).collect();
    let weights = vec![1.0 / nodes as f64; nodes];
    let mut game = CosineGame::new(&Gram::of(&slices), &weights, &weights);
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let effort = shapley::Effort { samples: 1, standard_error: None };
    bencher.bench_local(|| shapley::stratified_independent(&mut game, effort, &mut rng));
}

mod gram {
    use super::*;

    #[divan::bench(args = [10, 30, 100, 300])]
    fn ours(bencher: Bencher<'_, '_>, nodes: usize) {
        let updates = updates(nodes);
        let slices: Vec<&[f32]> = updates.chunks(DIM).collect();
        bencher.bench_local(|| Gram::of(black_box(&slices)));
    }

    #[cfg(feature = "openblas")]
    #[divan::bench(args = [10, 30, 100, 300])]
    fn openblas_ssyrk(bencher: Bencher<'_, '_>, nodes: usize) {
        let (updates, mut products) = (updates(nodes), vec![0.0; nodes * nodes]);
        bencher.bench_local(|| super::openblas::ssyrk(black_box(&updates), DIM, &mut products));
    }

    #[cfg(feature = "openblas")]
    #[divan::bench(args = [10, 30, 100, 300])]
    fn openblas_sgemm(bencher: Bencher<'_, '_>, nodes: usize) {
        let (updates, mut products) = (updates(nodes), vec![0.0; nodes * nodes]);
        bencher.bench_local(|| super::openblas::sgemm(black_box(&updates), DIM, &mut products));
    }
}

/// The two routines of OpenBLAS that can build a Gram matrix, on all cores.
#[cfg(feature = "openblas")]
#[allow(unsafe_code)]
mod openblas {
    const ROW_MAJOR: i32 = 101;
    const NO_TRANSPOSE: i32 = 111;
    const TRANSPOSE: i32 = 112;
    const LOWER: i32 = 122;

    #[link(name = "openblas")]
    unsafe extern "C" {
        #[rustfmt::skip]
        fn cblas_ssyrk(
            order: i32,
            uplo: i32,
            trans: i32,
            n: i32,
            k: i32,
            alpha: f32,
            a: *const f32,
            lda: i32,
            beta: f32,
            c: *mut f32,
            ldc: i32,
        );
        #[rustfmt::skip]
        fn cblas_sgemm(
            order: i32,
            ta: i32,
            tb: i32,
            m: i32,
            n: i32,
            k: i32,
            alpha: f32,
            a: *const f32,
            lda: i32,
            b: *const f32,
            ldb: i32,
            beta: f32,
            c: *mut f32,
            ldc: i32,
        );
    }

    pub(super) fn ssyrk(rows: &[f32], dim: usize, products: &mut [f32]) {
        let (n, k, a) = ((rows.len() / dim) as i32, dim as i32, rows.as_ptr());
        assert_eq!(products.len(), (n * n) as usize);
        // SAFETY: n rows of k values are read, and n × n products written, as the lengths above say.
        unsafe { cblas_ssyrk(ROW_MAJOR, LOWER, NO_TRANSPOSE, n, k, 1.0, a, k, 0.0, products.as_mut_ptr(), n) }
    }

    pub(super) fn sgemm(rows: &[f32], dim: usize, products: &mut [f32]) {
        let (n, k, a) = ((rows.len() / dim) as i32, dim as i32, rows.as_ptr());
        assert_eq!(products.len(), (n * n) as usize);
        let c = products.as_mut_ptr();
        // SAFETY: as above, the rows being read as both operands.
        unsafe { cblas_sgemm(ROW_MAJOR, NO_TRANSPOSE, TRANSPOSE, n, n, k, 1.0, a, k, a, k, 0.0, c, n) }
    }
}
