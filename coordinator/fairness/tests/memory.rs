//! The memory of a measurement beside the updates.
#![allow(clippy::unwrap_used, unsafe_code)]

use evenhand_fairness::{ContributionConfig, Utility, contributions};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

static IN_USE: AtomicUsize = AtomicUsize::new(0);
static MOST: AtomicUsize = AtomicUsize::new(0);

/// The system's allocator, counting.
struct FairnessAllocator;

// SAFETY: every call is handed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for FairnessAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let in_use = IN_USE.fetch_add(layout.size(), Relaxed) + layout.size();
        MOST.fetch_max(in_use, Relaxed);
        // SAFETY: the caller's promises are the system's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's promises are the system's.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: FairnessAllocator = FairnessAllocator;

/// Bytes of the updates, and the most that were in use beside them while they were valued.
fn bytes(utility: Utility, nodes: usize, dim: usize) -> (usize, usize) {
    let updates: Vec<Vec<f32>> = (0..nodes).map(|i| vec![1.0 + i as f32; dim]).collect();
    let slices: Vec<&[f32]> = updates.iter().map(Vec::as_slice).collect();
    let weights = vec![1.0 / nodes as f64; nodes];
    let config = ContributionConfig { utility, ..ContributionConfig::default() };
    let before = IN_USE.load(Relaxed);
    MOST.store(before, Relaxed);
    contributions(&slices, &weights, &config, &mut ChaCha8Rng::seed_from_u64(0)).unwrap();
    (size_of::<f32>() * nodes * dim, MOST.load(Relaxed) - before)
}

/// One test, since the count is of the whole process.
#[test]
fn memory_is_bounded_by_the_updates_themselves() {
    let (updates, beside) = bytes(Utility::InnerProduct, 400, 30_000);
    assert!(beside < updates / 50, "inner-product: {beside} bytes beside {updates}");
    // Ten times the dimension takes no more.
    let (_, ten_times) = bytes(Utility::InnerProduct, 40, 300_000);
    assert!(ten_times <= beside, "{ten_times} bytes, not at most {beside}");
    // The Gram matrix comes on top, and its partial sums.
    let (updates, beside) = bytes(Utility::Cosine, 100, 100_000);
    assert!(beside < updates / 2, "cosine: {beside} bytes beside {updates}");
}
