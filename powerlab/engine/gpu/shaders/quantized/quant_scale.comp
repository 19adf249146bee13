// Bytes times a factor of their channel, and a shift of it, become bytes.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "bytes.glsl"

layout(binding = 0) writeonly buffer Out { uint made[]; };
layout(binding = 1) readonly buffer X { uint x[]; };
layout(binding = 2) readonly buffer Factors { vec4 factors[]; };
layout(binding = 3) readonly buffer Shifts { vec4 shifts[]; };

layout(push_constant) uniform Push {
  float low, high;
  int zero, count, pixels, blocks;
} p;

void main() {
  const int i = flat_index(), block = i / p.pixels % p.blocks;
  if (i >= p.count) return;
  precise vec4 steps = vec4(bytes_of(x[i])) * factors[block];
  steps += shifts[block];
  made[i] = to_bytes(steps, p.low, p.high, p.zero);
}
