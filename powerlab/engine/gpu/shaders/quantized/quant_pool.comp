// Windows over images of bytes: maxima keep their scale, averages are round(sum of steps * (ratio / pixels counted)).
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "bytes.glsl"

layout(constant_id = 1) const bool AVERAGE = false;
layout(constant_id = 2) const bool COUNTS_PADDING = false;

layout(binding = 0) writeonly buffer Out { uint made[]; };
layout(binding = 1) readonly buffer X { uint x[]; };

layout(push_constant) uniform Push {
  float low, high, x_ratio;
  int x_zero, zero;
  int planes, in_h, in_w, out_h, out_w, kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w;
} p;

void main() {
  const int i = flat_index(), out_size = p.out_h * p.out_w;
  if (i >= p.planes * out_size) return;
  const int plane = i / out_size, pixel = i - plane * out_size, row = pixel / p.out_w, column = pixel - row * p.out_w;
  const int top = row * p.stride_h - p.pad_h, left = column * p.stride_w - p.pad_w;
  ivec4 most = ivec4(0), sums = ivec4(0);
  int counted = 0;
  for (int y = max(top, 0); y < min(top + p.kernel_h, p.in_h); ++y) {
    for (int at = max(left, 0); at < min(left + p.kernel_w, p.in_w); ++at) {
      const ivec4 found = bytes_of(x[(plane * p.in_h + y) * p.in_w + at]);
      most = max(most, found);
      sums += found - p.x_zero;
      ++counted;
    }
  }
  const float divisor = float(COUNTS_PADDING ? p.kernel_h * p.kernel_w : counted);
  const precise float factor = p.x_ratio / divisor;
  const precise vec4 steps = vec4(sums) * factor;
  made[i] = AVERAGE ? to_bytes(steps, p.low, p.high, p.zero) : word_of(most);
}
