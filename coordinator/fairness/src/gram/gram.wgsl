// Scalar products of all pairs of rows, for the tiles on and below the diagonal. A workgroup sums one
// tile over one split of the rows; a thread holds two by two products of it.

struct Shape {
    rows: u32,
    length: u32,
    split: u32,
}

@group(0) @binding(0) var<storage, read> values: array<f32>;
@group(0) @binding(1) var<storage, read_write> products: array<f32>;
@group(0) @binding(2) var<uniform> shape: Shape;

const TILE = 32u;
const HALF = 16u;
const STEP = 16u;

var<workgroup> left: array<array<f32, STEP>, TILE>;
var<workgroup> right: array<array<f32, STEP>, TILE>;

@compute @workgroup_size(16, 16)
fn gram(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_id) thread: vec3<u32>) {
    if (group.x > group.y) {
        return;
    }
    let left_rows = group.y * TILE;
    let right_rows = group.x * TILE;
    let start = group.z * shape.split;
    var sums = array<f32, 4>(0.0, 0.0, 0.0, 0.0);
    for (var at = start; at < start + shape.split; at += STEP) {
        for (var half = 0u; half < TILE; half += HALF) {
            let row = thread.y + half;
            left[row][thread.x] = values[(left_rows + row) * shape.length + at + thread.x];
            right[row][thread.x] = values[(right_rows + row) * shape.length + at + thread.x];
        }
        workgroupBarrier();
        for (var step = 0u; step < STEP; step += 1u) {
            let a = vec2(left[thread.y][step], left[thread.y + HALF][step]);
            let b = vec2(right[thread.x][step], right[thread.x + HALF][step]);
            sums[0] += a.x * b.x;
            sums[1] += a.x * b.y;
            sums[2] += a.y * b.x;
            sums[3] += a.y * b.y;
        }
        workgroupBarrier();
    }
    let row = left_rows + thread.y;
    let column = right_rows + thread.x;
    let out = group.z * shape.rows * shape.rows;
    products[out + row * shape.rows + column] = sums[0];
    products[out + row * shape.rows + column + HALF] = sums[1];
    products[out + (row + HALF) * shape.rows + column] = sums[2];
    products[out + (row + HALF) * shape.rows + column + HALF] = sums[3];
}
