// A convolution of bytes, each channel by itself: weights [block][tap], 4 channels a word.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "bytes.glsl"

layout(constant_id = 1) const bool RESIDUAL = false;

layout(binding = 0) writeonly buffer Out { uint made[]; };
layout(binding = 1) readonly buffer X { uint x[]; };
layout(binding = 2) readonly buffer Weights { int weights[]; };
layout(binding = 3) readonly buffer Begin { ivec4 begin[]; };
layout(binding = 4) readonly buffer Multipliers { vec4 multipliers[]; };
layout(binding = 5) readonly buffer Residual { uint residual[]; };

layout(push_constant) uniform Push {
  float low, high, slope, y_ratio;
  int images, in_h, in_w, out_h, out_w, kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w;
  int blocks, x_zero, y_zero, zero;
} p;

void main() {
  const int i = flat_index(), out_size = p.out_h * p.out_w;
  if (i >= p.images * p.blocks * out_size) return;
  const int plane = i / out_size, pixel = i - plane * out_size, block = plane % p.blocks;
  const int row = pixel / p.out_w * p.stride_h - p.pad_h, column = pixel % p.out_w * p.stride_w - p.pad_w;
  ivec4 sums = begin[block];
  int w = block * p.kernel_h * p.kernel_w;
  for (int tap_row = 0; tap_row < p.kernel_h; ++tap_row) {
    for (int tap_column = 0; tap_column < p.kernel_w; ++tap_column) {
      const int y = row + tap_row * p.dilation_h, at = column + tap_column * p.dilation_w;
      const bool inside = y >= 0 && y < p.in_h && at >= 0 && at < p.in_w;
      const ivec4 found = bytes_of(x[(plane * p.in_h + (inside ? y : 0)) * p.in_w + (inside ? at : 0)]);
      const int weight = weights[w];
      const ivec4 factors = ivec4(weight << 24, weight << 16, weight << 8, weight) >> 24;
      sums += (inside ? found : ivec4(p.x_zero)) * factors;
      ++w;
    }
  }
  precise vec4 steps = vec4(sums) * multipliers[block];
  steps = mix(steps, steps * p.slope, lessThan(steps, vec4(0)));
  if (RESIDUAL) {
    const precise vec4 added = vec4(bytes_of(residual[i]) - p.y_zero) * p.y_ratio;
    steps += added;
  }
  made[i] = to_bytes(steps, p.low, p.high, p.zero);
}
