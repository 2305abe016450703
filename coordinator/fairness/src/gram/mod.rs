//! The Gram matrix of a round's updates, on which the cosine game is computed.

mod cpu;
mod device;
#[cfg(feature = "gpu")]
mod gpu;
mod kernel;

use super::FairnessError;
pub use device::Device;

/// ⟨Δθᵢ, Δθⱼ⟩ for every pair of updates.
#[derive(Debug, Clone, PartialEq)]
pub struct Gram {
    size: usize,
    products: Vec<f64>,
}

impl Gram {
    /// The Gram matrix of updates of one dimension, on the processor's cores.
    pub fn of(updates: &[&[f32]]) -> Self {
        let lower = cpu::lower_triangle(updates);
        Self::from_lower(updates.len(), |i, j| lower.get(i, j))
    }

    /// The same on a device of choice; the GPU's figures agree to 10⁻⁵ of ‖Δθᵢ‖‖Δθⱼ‖.
    ///
    /// # Errors
    /// [`FairnessError::Gpu`] if the GPU cannot be used.
    pub fn on(device: Device, updates: &[&[f32]]) -> Result<Self, FairnessError> {
        match device {
            Device::Cpu => Ok(Self::of(updates)),
            #[cfg(feature = "gpu")]
            Device::Gpu => gpu::gram(updates),
            #[cfg(not(feature = "gpu"))]
            Device::Gpu => Err(FairnessError::Gpu(WITHOUT_GPU.into())),
        }
    }

    /// Mirrors a lower triangle, `lower(i, j)` for j ≤ i.
    fn from_lower(size: usize, lower: impl Fn(usize, usize) -> f64) -> Self {
        let mut products = vec![0.0; size * size];
        for i in 0..size {
            for j in 0..=i {
                let product = lower(i, j);
                products[i * size + j] = product;
                products[j * size + i] = product;
            }
        }
        Self { size, products }
    }

    /// The number of updates.
    pub fn size(&self) -> usize {
        self.size
    }

    /// ⟨Δθᵢ, Δθⱼ⟩.
    pub fn get(&self, i: usize, j: usize) -> f64 {
        self.products[i * self.size + j]
    }

    /// ⟨Δθᵢ, Δθⱼ⟩ for every j.
    pub fn row(&self, i: usize) -> &[f64] {
        &self.products[i * self.size..][..self.size]
    }
}

#[cfg(not(feature = "gpu"))]
const WITHOUT_GPU: &str = "this program was built without the cargo feature `gpu`";

impl Device {
    /// The device by the name that its driver gives it.
    ///
    /// # Errors
    /// [`FairnessError::Gpu`] if there is none, or if the cargo feature `gpu` is missing.
    pub fn driver_name(self) -> Result<&'static str, FairnessError> {
        match self {
            Self::Cpu => Ok("cpu"),
            #[cfg(feature = "gpu")]
            Self::Gpu => gpu::name(),
            #[cfg(not(feature = "gpu"))]
            Self::Gpu => Err(FairnessError::Gpu(WITHOUT_GPU.into())),
        }
    }
}
