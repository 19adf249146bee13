// Gradients of the weights of a convolution as a product over pixels: outputs by taps and input channels. A work group takes
// DOWN * ROWS blocks of outputs and ACROSS * COLUMNS of taps and inputs, and PIXELS pixels at a time in shared memory; the
// pixels of a batch are cut into parts, which weight_gradient_end.comp adds up in their order.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "common.glsl"
#include "window.glsl"

layout(constant_id = 1) const int ROWS = 2;
layout(constant_id = 2) const int COLUMNS = 2;
layout(constant_id = 3) const int DOWN = 8;
layout(constant_id = 4) const int ACROSS = 8;
layout(constant_id = 5) const int PIXELS = 16;

const int TILE_ROWS = DOWN * ROWS, TILE_COLUMNS = ACROSS * COLUMNS, STRIDE = PIXELS + 1;

layout(binding = 0) restrict writeonly buffer Parts { vec4 parts[]; };  // [part][group][out block][tap][in block][input]
layout(binding = 1) restrict readonly buffer X { vec4 x[]; };
layout(binding = 2) restrict readonly buffer Y { vec4 y[]; };  // the gradient of what the convolution made

layout(push_constant) uniform Push {
  WINDOW_NUMBERS;
  int parts;
} p;

shared vec4 left[TILE_ROWS * STRIDE];      // [out block][pixel]
shared vec4 right[TILE_COLUMNS * STRIDE];  // [tap and in block][pixel]

void main() {
  const int lane = int(gl_LocalInvocationID.x), lanes = int(gl_WorkGroupSize.x);
  const int own_row = lane / ACROSS, own_column = lane % ACROSS;
  const int out_size = p.out_h * p.out_w, in_size = p.in_h * p.in_w, count = p.images * out_size;
  const int columns = p.kernel_h * p.kernel_w * p.in_blocks;
  const int row_tiles = (p.out_blocks + TILE_ROWS - 1) / TILE_ROWS;
  const int first_column = int(gl_WorkGroupID.x) * TILE_COLUMNS;
  const int first_row = int(gl_WorkGroupID.y) % row_tiles * TILE_ROWS, group = int(gl_WorkGroupID.y) / row_tiles;
  const int part = int(gl_WorkGroupID.z), steps = (count + PIXELS - 1) / PIXELS, each = (steps + p.parts - 1) / p.parts;
  const int end = min((part + 1) * each * PIXELS, count);

  mat4 sums[ROWS * COLUMNS];
  [[unroll]] for (int s = 0; s < ROWS * COLUMNS; ++s) sums[s] = mat4(0);
  for (int k = part * each * PIXELS; k < end; k += PIXELS) {
    for (int e = lane; e < TILE_ROWS * PIXELS; e += lanes) {
      const int at = k + e % PIXELS, image = at / out_size, block = first_row + e / PIXELS;
      const bool inside = at < end && block < p.out_blocks;
      const int from = ((image * p.groups + group) * p.out_blocks + block) * out_size + at % out_size;
      left[e / PIXELS * STRIDE + e % PIXELS] = inside ? y[inside ? from : 0] : vec4(0);
    }
    for (int e = lane; e < TILE_COLUMNS * PIXELS; e += lanes) {
      const int at = k + e % PIXELS, image = at / out_size, pixel = at % out_size, column = first_column + e / PIXELS;
      const int tap = column / p.in_blocks, block = column % p.in_blocks;
      const int row = pixel / p.out_w * p.stride_h - p.pad_h + tap / p.kernel_w * p.dilation_h;
      const int x_at = pixel % p.out_w * p.stride_w - p.pad_w + tap % p.kernel_w * p.dilation_w;
      const bool inside =
          at < end && column < columns && row >= 0 && row < p.in_h && x_at >= 0 && x_at < p.in_w;
      const int from = ((image * p.groups + group) * p.in_blocks + block) * in_size + row * p.in_w + x_at;
      right[e / PIXELS * STRIDE + e % PIXELS] = inside ? x[inside ? from : 0] : vec4(0);
    }
    barrier();
    for (int q = 0; q < PIXELS; ++q) {
      vec4 given[ROWS];
      [[unroll]] for (int r = 0; r < ROWS; ++r) given[r] = left[(r * DOWN + own_row) * STRIDE + q];
      [[unroll]] for (int c = 0; c < COLUMNS; ++c) {
        const vec4 read = right[(c * ACROSS + own_column) * STRIDE + q];
        [[unroll]] for (int r = 0; r < ROWS; ++r) {
          [[unroll]] for (int i = 0; i < 4; ++i) sums[r * COLUMNS + c][i] += given[r] * read[i];
        }
      }
    }
    barrier();
  }
  [[unroll]] for (int r = 0; r < ROWS; ++r) {
    [[unroll]] for (int c = 0; c < COLUMNS; ++c) {
      const int block = first_row + r * DOWN + own_row, column = first_column + c * ACROSS + own_column;
      if (block < p.out_blocks && column < columns) {
        const int to = (((part * p.groups + group) * p.out_blocks + block) * columns + column) * 4;
        [[unroll]] for (int i = 0; i < 4; ++i) parts[to + i] = sums[r * COLUMNS + c][i];
      }
    }
  }
}
