//! Memory layouts of tensors: row-major, and images with channels last.
//!
//! Images whose channels come last in memory look to burn like any other tensor of shape `[batch, channels, height,
//! width]`, with other strides, so operations that are not fused take them as they are.

use burn_backend::{Bytes, DType, Shape};
use burn_flex::{FlexTensor, Layout};

/// A tensor of these values in row-major order.
pub(super) fn tensor(data: Vec<f32>, shape: &[usize]) -> FlexTensor {
    FlexTensor::new(Bytes::from_elems(data), Layout::contiguous(Shape::from(shape.to_vec())), DType::F32)
}

/// Images of these values, channel by channel for each pixel.
pub(super) fn planes_last(data: Vec<f32>, shape: [usize; 4]) -> FlexTensor {
    let layout = Layout::new(Shape::from(shape.to_vec()), last_strides(shape).to_vec(), 0);
    FlexTensor::new(Bytes::from_elems(data), layout, DType::F32)
}

fn last_strides([_, channels, height, width]: [usize; 4]) -> [isize; 4] {
    [height * width * channels, 1, width * channels, channels].map(|stride| stride as isize)
}

pub(super) fn shape<const D: usize>(x: &FlexTensor) -> [usize; D] {
    x.layout().shape().dims()
}

/// The same tensor with its values in row-major order without gaps.
pub(super) fn dense(x: FlexTensor) -> FlexTensor {
    match x.as_slice::<f32>() {
        Some(_) => x,
        None => x.to_contiguous(),
    }
}

/// The same images with their channels last in memory, and nothing else there.
pub(super) fn channels_last(x: FlexTensor) -> FlexTensor {
    let shape @ [batch, channels, height, width] = shape(&x);
    if fills(&x) && x.layout().strides() == last_strides(shape) {
        return x;
    }
    let x = dense(x);
    let area = height * width;
    let mut data = vec![0.0; batch * channels * area];
    for (planes, pixels) in
        values(&x).chunks_exact(channels * area).zip(data.chunks_exact_mut(channels * area))
    {
        for (place, pixel) in pixels.chunks_exact_mut(channels).enumerate() {
            pixel.iter_mut().enumerate().for_each(|(channel, to)| *to = planes[channel * area + place]);
        }
    }
    planes_last(data, shape)
}

/// True if the tensor is all there is in its storage.
fn fills(x: &FlexTensor) -> bool {
    x.layout().start_offset() == 0 && x.layout().num_elements() * 4 == x.bytes().len()
}

/// The same tensor as all there is in its storage, in row-major order or with channels last.
pub(super) fn whole(x: FlexTensor) -> FlexTensor {
    let last = x.layout().shape().num_dims() == 4 && x.layout().strides() == last_strides(shape(&x));
    if fills(&x) && (last || x.is_contiguous()) {
        return x;
    }
    let x = dense(x);
    match fills(&x) {
        true => x,
        false => {
            let shape = x.layout().shape().to_vec();
            tensor(values(&x).to_vec(), &shape)
        }
    }
}

/// The same tensor as all there is in its storage, its values in the same order as those of another one.
pub(super) fn whole_like(x: FlexTensor, other: &FlexTensor) -> FlexTensor {
    let x = whole(x);
    match x.layout().strides() == other.layout().strides() {
        true => x,
        false if other.is_contiguous() => whole(dense(x)),
        false => channels_last(x),
    }
}

/// The values in the order they are stored, of a tensor that was brought into order.
pub(super) fn values(x: &FlexTensor) -> &[f32] {
    match x.as_slice() {
        Some(values) => values,
        None => x.storage(),
    }
}
