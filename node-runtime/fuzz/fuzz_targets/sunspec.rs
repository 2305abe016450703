#![no_main]

// Each target runs its own check of these.
#[allow(dead_code)]
#[path = "../checks.rs"]
mod checks;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| checks::sunspec(bytes));
