//! Vector registers of floats.

/// A register. Its functions may be called where the processor has the instructions for it, and nowhere else.
#[allow(unsafe_code)]
pub(super) trait Lanes: Copy {
    /// Floats in it; at most [`LANES_MAX`].
    const COUNT: usize;

    unsafe fn load(from: *const f32) -> Self;
    unsafe fn store(self, to: *mut f32);
    unsafe fn splat(value: f32) -> Self;
    unsafe fn add(self, other: Self) -> Self;
    /// self + a·b
    unsafe fn add_product(self, a: Self, b: Self) -> Self;
}

/// Floats in the largest register; columns are padded to a multiple of it.
pub(super) const LANES_MAX: usize = 16;

/// Implements [`Lanes`] by five instructions, the last of which takes its operands in the order `$fma` says.
#[allow(unused_macros, reason = "not every processor has registers to implement it for")]
macro_rules! lanes {
    ($register:ty, $count:literal, $load:path, $store:path, $splat:path, $add:path, |$sum:ident, $a:ident, $b:ident| $fma:expr) => {
        #[allow(unsafe_code)]
        #[allow(unused_unsafe, reason = "some are safe where every processor of the kind has them")]
        impl Lanes for $register {
            const COUNT: usize = $count;

            #[inline(always)]
            unsafe fn load(from: *const f32) -> Self {
                // SAFETY: the caller has these instructions and hands in a pointer to as many floats.
                unsafe { $load(from) }
            }

            #[inline(always)]
            unsafe fn store(self, to: *mut f32) {
                // SAFETY: as above.
                unsafe { $store(to, self) }
            }

            #[inline(always)]
            unsafe fn splat(value: f32) -> Self {
                // SAFETY: the caller has these instructions.
                unsafe { $splat(value) }
            }

            #[inline(always)]
            unsafe fn add(self, other: Self) -> Self {
                // SAFETY: the caller has these instructions.
                unsafe { $add(self, other) }
            }

            #[inline(always)]
            unsafe fn add_product(self, $a: Self, $b: Self) -> Self {
                let $sum = self;
                // SAFETY: the caller has these instructions.
                unsafe { $fma }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::Lanes;

    lanes!(__m512, 16, _mm512_loadu_ps, _mm512_storeu_ps, _mm512_set1_ps, _mm512_add_ps, |sum, a, b| {
        _mm512_fmadd_ps(a, b, sum)
    });
    lanes!(__m256, 8, _mm256_loadu_ps, _mm256_storeu_ps, _mm256_set1_ps, _mm256_add_ps, |sum, a, b| {
        _mm256_fmadd_ps(a, b, sum)
    });
}

#[cfg(target_arch = "aarch64")]
mod arm {
    use std::arch::aarch64::*;

    use super::Lanes;

    lanes!(float32x4_t, 4, vld1q_f32, vst1q_f32, vdupq_n_f32, vaddq_f32, |sum, a, b| vfmaq_f32(sum, a, b));
}

/// Any processor.
#[allow(unsafe_code)]
impl Lanes for [f32; 4] {
    const COUNT: usize = 4;

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: the caller hands in a pointer to as many floats.
        unsafe { from.cast::<[f32; 4]>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: the caller hands in a pointer to as many floats.
        unsafe { to.cast::<[f32; 4]>().write_unaligned(self) }
    }

    #[inline(always)]
    unsafe fn splat(value: f32) -> Self {
        [value; 4]
    }

    #[inline(always)]
    unsafe fn add(self, other: Self) -> Self {
        [self[0] + other[0], self[1] + other[1], self[2] + other[2], self[3] + other[3]]
    }

    #[inline(always)]
    unsafe fn add_product(self, a: Self, b: Self) -> Self {
        [self[0] + a[0] * b[0], self[1] + a[1] * b[1], self[2] + a[2] * b[2], self[3] + a[3] * b[3]]
    }
}

/// Runs a loop compiled for the best instructions this processor has; the loop must be inlined to gain from it.
pub(super) fn best<R>(work: impl FnOnce() -> R) -> R {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq,avx2,fma")]
        fn wide<R>(work: impl FnOnce() -> R) -> R {
            work()
        }
        if has_avx512() {
            #[allow(unsafe_code)]
            // SAFETY: the processor has these instructions.
            return unsafe { wide(work) };
        }
    }
    pulp::Arch::new().dispatch(work)
}

#[cfg(target_arch = "x86_64")]
pub(super) fn has_avx512() -> bool {
    use std::is_x86_feature_detected as has;
    has!("avx512f") && has!("avx512vl") && has!("avx512bw") && has!("avx512dq") && has!("avx2") && has!("fma")
}
