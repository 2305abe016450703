//! Memory of long training: constant after the first steps.
#![allow(clippy::unwrap_used)]

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicIsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use evenhand_models::{DefaultBackend, Engine};
use support::{batch, on_every_backend, shipped_model, trainer};

on_every_backend!(ten_thousand_steps_of_the_rnn_leak_nothing, many_input_shapes_retain_only_the_latest_plans);

/// Counts the live bytes of the process: burn's tape may free on one thread what another one allocated.
struct LiveBytesAllocator;

static HELD: AtomicIsize = AtomicIsize::new(0);

#[allow(unsafe_code)]
// SAFETY: every call is handed to the system's allocator unchanged; only a counter is updated.
unsafe impl GlobalAlloc for LiveBytesAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.fetch_add(layout.size() as isize, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.fetch_sub(layout.size() as isize, Ordering::Relaxed);
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: LiveBytesAllocator = LiveBytesAllocator;

/// Serialises the tests, so that the count belongs to one of them.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn held() -> isize {
    HELD.load(Ordering::Relaxed)
}

/// The tape's maps may differ by a rehash, and the harness takes some too; four bytes leaked in each of ten thousand
/// steps would be more.
const SLACK_BYTES: isize = 16 << 10;

fn assert_steady<B: Engine>(name: &str, samples: usize, early: usize, late: usize) {
    let _turn = alone();
    let model = shipped_model(name);
    let mut weights = model.initial_weights();
    let mut trainer = trainer::<B>(&model);
    let (batch, loss) = batch(&model, samples, 8, &mut 3);
    let mut steps = |count: usize| {
        for _ in 0..count {
            let step = trainer.gradient(&weights, &batch, loss).unwrap();
            weights.iter_mut().zip(&step.gradient).for_each(|(w, g)| *w -= 0.01 * g);
        }
        held()
    };
    let before = steps(early);
    let grown = steps(late - early) - before;
    assert!(grown <= SLACK_BYTES, "{name}: {grown} bytes more after {late} steps than after {early}");
}

fn ten_thousand_steps_of_the_rnn_leak_nothing<B: Engine>() {
    assert_steady::<B>("electricity-rnn", 4, 100, 10_000);
}

/// Ten thousand steps too in a release build; here, and on the other backend, they would take minutes.
#[test]
fn many_steps_of_the_cnn_leak_nothing() {
    assert_steady::<DefaultBackend>("mnist-cnn", 1, 20, if cfg!(debug_assertions) { 500 } else { 10_000 });
}

fn many_input_shapes_retain_only_the_latest_plans<B: Engine>() {
    let _turn = alone();
    let model = shipped_model("electricity-rnn");
    let weights = model.initial_weights();
    let mut trainer = trainer::<B>(&model);
    let mut rounds = |lags: std::ops::Range<usize>| {
        for lags in lags {
            let (batch, loss) = batch(&model, 2, lags, &mut 5);
            trainer.gradient(&weights, &batch, loss).unwrap();
        }
        held()
    };
    let early = rounds(1..40);
    let late = rounds(1..40).max(rounds(1..40));
    assert!(late - early <= SLACK_BYTES, "{} bytes more", late - early);
}
