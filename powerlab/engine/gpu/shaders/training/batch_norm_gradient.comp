// The gradient of a batch norm's images, in blocks, by the numbers that batch_norm_gradient_end.comp made.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(binding = 0) writeonly buffer Out { vec4 made[]; };
layout(binding = 1) readonly buffer X { vec4 x[]; };
layout(binding = 2) readonly buffer Y { vec4 y[]; };
layout(binding = 3) readonly buffer Numbers { vec4 numbers[]; };  // [steep, bent, level, mean][block]

layout(push_constant) uniform Push { int count, pixels, blocks; } p;

void main() {
  const int i = flat_index();
  if (i >= p.count) return;
  const int block = i / p.pixels % p.blocks;
  const vec4 apart = x[i] - numbers[3 * p.blocks + block];
  made[i] = y[i] * numbers[block] + (apart * numbers[p.blocks + block] + numbers[2 * p.blocks + block]);
}
