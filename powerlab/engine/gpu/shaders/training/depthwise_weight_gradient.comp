// Gradients of weights a channel each: a work group has one tap of one block of channels, and its lanes share the pixels.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "window.glsl"

layout(binding = 0) writeonly buffer Out { float made[]; };  // [channel][tap]
layout(binding = 1) readonly buffer X { vec4 x[]; };
layout(binding = 2) readonly buffer Y { vec4 y[]; };

layout(push_constant) uniform Push {
  WINDOW_NUMBERS;
  int channels;
} p;

shared vec4 sums[gl_WorkGroupSize.x];

void main() {
  const int lane = int(gl_LocalInvocationID.x), lanes = int(gl_WorkGroupSize.x);
  const int tap = int(gl_WorkGroupID.x), block = int(gl_WorkGroupID.y);
  const int out_size = p.out_h * p.out_w, in_size = p.in_h * p.in_w;
  const int down = tap / p.kernel_w * p.dilation_h - p.pad_h, across = tap % p.kernel_w * p.dilation_w - p.pad_w;
  vec4 own = vec4(0);
  for (int at = lane; at < p.images * out_size; at += lanes) {
    const int image = at / out_size, pixel = at - image * out_size, plane = image * p.in_blocks + block;
    const int row = pixel / p.out_w * p.stride_h + down, column = pixel % p.out_w * p.stride_w + across;
    const bool inside = row >= 0 && row < p.in_h && column >= 0 && column < p.in_w;
    const vec4 found = x[plane * in_size + (inside ? row * p.in_w + column : 0)];
    own += y[plane * out_size + pixel] * (inside ? found : vec4(0));
  }
  sums[lane] = own;
  for (int half_of = lanes / 2; half_of > 0; half_of /= 2) {
    barrier();
    if (lane < half_of) sums[lane] += sums[lane + half_of];
  }
  if (lane == 0) {
    for (int c = 0; c < 4; ++c) {
      const int channel = 4 * block + c;
      if (channel < p.channels) made[channel * p.kernel_h * p.kernel_w + tap] = sums[0][c];
    }
  }
}
