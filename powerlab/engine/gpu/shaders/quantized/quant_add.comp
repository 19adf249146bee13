// Bytes of one scale become bytes of another, and those of a second tensor are added, if there is one: blocks FROM on of
// the result are made.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "bytes.glsl"

layout(constant_id = 1) const bool SECOND = false;

layout(binding = 0) writeonly buffer Out { uint made[]; };
layout(binding = 1) readonly buffer X { uint x[]; };
layout(binding = 2) readonly buffer Y { uint y[]; };

layout(push_constant) uniform Push {
  float low, high, x_ratio, y_ratio;
  int x_zero, y_zero, zero;
  int images, pixels, blocks, out_blocks, from;
} p;

void main() {
  const int i = flat_index(), size = p.blocks * p.pixels;
  if (i >= p.images * size) return;
  precise vec4 steps = vec4(bytes_of(x[i]) - p.x_zero) * p.x_ratio;
  if (SECOND) {
    const precise vec4 added = vec4(bytes_of(y[i]) - p.y_zero) * p.y_ratio;
    steps += added;
  }
  const int image = i / size;
  made[(image * p.out_blocks + p.from) * p.pixels + i - image * size] = to_bytes(steps, p.low, p.high, p.zero);
}
