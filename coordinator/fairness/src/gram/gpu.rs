//! The product on a GPU: one compute shader on plain wgpu.
//!
//! Departs from the design, which names burn-wgpu: all that is needed is one symmetric product, for
//! which burn's whole GPU stack takes tens of minutes to compile and brings a tensor library along. A
//! shader of some fifty lines does it, and it alone can leave out the upper triangle and hand back
//! partial sums, which are added up in double precision here as they are for the processor.

use super::Gram;
use crate::FairnessError;
use std::future::Future;
use std::pin::pin;
use std::sync::{OnceLock, mpsc};
use std::task::{Context, Poll, Waker};
use wgpu::{BufferUsages, util::DeviceExt};

/// Updates on a side of a tile, as in the shader.
const TILE: usize = 32;
/// Values summed in single precision; a multiple of the shader's step.
const SPLIT: usize = 1024;
/// The most a buffer takes, whatever the device allows.
const BUFFER_BYTES_MAX: usize = 1 << 27;

struct Gpu {
    name: String,
    device: wgpu::Device,
    queue: wgpu::Queue,
    pipeline: wgpu::ComputePipeline,
    buffer_bytes_max: usize,
}

/// The device, opened the first time it is asked for.
fn gpu() -> Result<&'static Gpu, FairnessError> {
    static GPU: OnceLock<Result<Gpu, String>> = OnceLock::new();
    GPU.get_or_init(open).as_ref().map_err(|error| FairnessError::Gpu(error.clone()))
}

fn open() -> Result<Gpu, String> {
    let mut wanted = wgpu::InstanceDescriptor::new_without_display_handle();
    wanted.backends = wgpu::Backends::VULKAN;
    let instance = wgpu::Instance::new(wanted);
    let best = wgpu::RequestAdapterOptions {
        power_preference: wgpu::PowerPreference::HighPerformance,
        ..Default::default()
    };
    let adapter = wait(instance.request_adapter(&best)).map_err(|error| {
        format!("no Vulkan adapter ({error}); install a driver (mesa-vulkan-drivers has one in software) or use device = cpu")
    })?;
    let limits = adapter.limits();
    let wanted = wgpu::DeviceDescriptor { required_limits: limits.clone(), ..Default::default() };
    let (device, queue) = wait(adapter.request_device(&wanted)).map_err(|error| error.to_string())?;
    let shader = device.create_shader_module(wgpu::include_wgsl!("gram.wgsl"));
    let pipeline = device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
        label: None,
        layout: None,
        module: &shader,
        entry_point: None,
        compilation_options: Default::default(),
        cache: None,
    });
    let allowed = limits.max_storage_buffer_binding_size.min(limits.max_buffer_size);
    let buffer_bytes_max = usize::try_from(allowed).unwrap_or(usize::MAX).min(BUFFER_BYTES_MAX);
    Ok(Gpu { name: adapter.get_info().name, device, queue, pipeline, buffer_bytes_max })
}

/// wgpu's futures are ready at once outside of browsers.
fn wait<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(value) => return value,
            Poll::Pending => std::thread::yield_now(),
        }
    }
}

/// The name that the driver gives the device.
pub(super) fn name() -> Result<&'static str, FairnessError> {
    Ok(&gpu()?.name)
}

/// The Gram matrix of updates of one dimension.
pub(super) fn gram(updates: &[&[f32]]) -> Result<Gram, FairnessError> {
    let gpu = gpu()?;
    let dim = updates.first().map_or(0, |update| update.len());
    let rows = updates.len().next_multiple_of(TILE);
    // A pass takes as many splits as fit into a buffer, updates on the one side, products on the other.
    let split_bytes = size_of::<f32>() * rows * SPLIT.max(rows);
    let splits = gpu.buffer_bytes_max / split_bytes.max(1);
    if splits == 0 {
        let nodes = updates.len();
        return Err(FairnessError::Gpu(format!(
            "{nodes} nodes are too many for the buffers of {}",
            gpu.name
        )));
    }
    let mut sums = vec![0.0; rows * rows];
    let mut padded = Vec::new();
    for start in (0..dim).step_by(splits * SPLIT) {
        let end = dim.min(start + splits * SPLIT);
        let length = (end - start).next_multiple_of(SPLIT);
        padded.clear();
        padded.resize(rows * length, 0.0);
        for (row, update) in padded.chunks_exact_mut(length).zip(updates) {
            row[..end - start].copy_from_slice(&update[start..end]);
        }
        for part in gpu.multiply(&padded, rows, length)?.chunks_exact(rows * rows) {
            sums.iter_mut().zip(part).for_each(|(sum, part)| *sum += f64::from(*part));
        }
    }
    Ok(Gram::from_lower(updates.len(), |i, j| sums[i * rows + j]))
}

impl Gpu {
    /// The products of `rows` rows of `length` values, a matrix for each split; above the diagonal
    /// anything.
    fn multiply(&self, values: &[f32], rows: usize, length: usize) -> Result<Vec<f32>, FairnessError> {
        let splits = length / SPLIT;
        let (device, bytes) = (&self.device, (size_of::<f32>() * splits * rows * rows) as u64);
        let input = |contents: &[u8], usage| {
            device.create_buffer_init(&wgpu::util::BufferInitDescriptor { label: None, contents, usage })
        };
        let output = |usage| {
            device.create_buffer(&wgpu::BufferDescriptor {
                label: None,
                size: bytes,
                usage,
                mapped_at_creation: false,
            })
        };
        let updates = input(bytemuck::cast_slice(values), BufferUsages::STORAGE);
        let shape = [rows as u32, length as u32, SPLIT as u32, 0];
        let shape = input(bytemuck::cast_slice(&shape), BufferUsages::UNIFORM);
        let products = output(BufferUsages::STORAGE | BufferUsages::COPY_SRC);
        let answer = output(BufferUsages::COPY_DST | BufferUsages::MAP_READ);

        let bound = [&updates, &products, &shape].map(wgpu::Buffer::as_entire_binding);
        let entry = |(binding, resource)| wgpu::BindGroupEntry { binding, resource };
        let entries: Vec<wgpu::BindGroupEntry<'_>> = (0..).zip(bound).map(entry).collect();
        let group = device.create_bind_group(&wgpu::BindGroupDescriptor {
            label: None,
            layout: &self.pipeline.get_bind_group_layout(0),
            entries: &entries,
        });
        let mut commands = device.create_command_encoder(&Default::default());
        {
            let mut pass = commands.begin_compute_pass(&Default::default());
            pass.set_pipeline(&self.pipeline);
            pass.set_bind_group(0, &group, &[]);
            let tiles = (rows / TILE) as u32;
            pass.dispatch_workgroups(tiles, tiles, splits as u32);
        }
        commands.copy_buffer_to_buffer(&products, 0, &answer, 0, bytes);
        self.queue.submit([commands.finish()]);

        let (sender, receiver) = mpsc::channel();
        // The receiver outlives the wait below, so that the answer to it always arrives.
        answer.map_async(wgpu::MapMode::Read, .., move |mapped| drop(sender.send(mapped)));
        let failed = |error: &dyn std::fmt::Display| FairnessError::Gpu(format!("{}: {error}", self.name));
        device.poll(wgpu::PollType::wait_indefinitely()).map_err(|error| failed(&error))?;
        receiver.recv().map_err(|error| failed(&error))?.map_err(|error| failed(&error))?;
        let view = answer.get_mapped_range(..).map_err(|error| failed(&error))?;
        Ok(bytemuck::cast_slice(&view).to_vec())
    }
}
