// A convolution of each channel by itself: a work group has pixels of one block of channels, whose weights all lanes need.
// Weights: [block][tap].
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "common.glsl"
#include "finish.glsl"

layout(constant_id = 2) const bool RESIDUAL = false;
layout(constant_id = 3) const int KERNEL_H = 3;  // known here, so that many loads are under way at a time
layout(constant_id = 4) const int KERNEL_W = 3;

const int MOST_UNROLLED = 7;

layout(binding = 0) writeonly buffer Out { T4 made[]; };
layout(binding = 1) readonly buffer X { T4 x[]; };
layout(binding = 2) readonly buffer Weights { T4 weights[]; };
layout(binding = 3) readonly buffer Bias { vec4 bias[]; };
layout(binding = 4) readonly buffer Residual { T4 residual[]; };

layout(push_constant) uniform Push {
  FINISH_NUMBERS;
  int images, in_h, in_w, out_h, out_w, kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w;
  int blocks;
} p;

// Pixels and weights of a row of taps.
vec4 row_of(int from, int y, int column, int w) {
  vec4 sum = vec4(0);
  [[unroll]] for (int tap = 0; tap < KERNEL_W; ++tap) {
    const int x_at = column + tap * p.dilation_w;
    const bool inside = y >= 0 && y < p.in_h && x_at >= 0 && x_at < p.in_w;
    const vec4 found = vec4(x[from + (inside ? y * p.in_w + x_at : 0)]);
    sum += (inside ? found : vec4(0)) * vec4(weights[w + tap]);
  }
  return sum;
}

void main() {
  const int out_size = p.out_h * p.out_w, in_size = p.in_h * p.in_w, block = int(gl_WorkGroupID.y);
  const int wanted = int((gl_WorkGroupID.x + gl_WorkGroupID.z * gl_NumWorkGroups.x) * gl_WorkGroupSize.x +
                         gl_LocalInvocationID.x);
  const int flat_pixel = min(wanted, p.images * out_size - 1);
  const int image = flat_pixel / out_size, pixel = flat_pixel - image * out_size;
  const int row = pixel / p.out_w * p.stride_h - p.pad_h, column = pixel % p.out_w * p.stride_w - p.pad_w;
  const int from = (image * p.blocks + block) * in_size;
  vec4 sum = bias[block];
  const int w = block * KERNEL_H * KERNEL_W;
  if (KERNEL_H <= MOST_UNROLLED) {
    [[unroll]] for (int tap = 0; tap < min(KERNEL_H, MOST_UNROLLED); ++tap) {
      sum += row_of(from, row + tap * p.dilation_h, column, w + tap * KERNEL_W);
    }
  } else {
    for (int tap = 0; tap < KERNEL_H; ++tap) sum += row_of(from, row + tap * p.dilation_h, column, w + tap * KERNEL_W);
  }
  if (wanted < p.images * out_size) {
    const int to = (image * p.blocks + block) * out_size + pixel;
    if (RESIDUAL) sum += vec4(residual[to]);
    made[to] = T4(finish(sum, p.low, p.high, p.slope, p.alpha, p.beta));
  }
}
