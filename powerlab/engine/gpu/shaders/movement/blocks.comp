// Copies whole blocks of channels between images in blocks.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(binding = 0) writeonly buffer Out { T4 made[]; };
layout(binding = 1) readonly buffer X { T4 x[]; };

layout(push_constant) uniform Push { int images, pixels, x_blocks, out_blocks, from, to, count; } p;

void main() {
  const int i = flat_index(), size = p.count * p.pixels;
  if (i >= p.images * size) return;
  const int image = i / size, within = i - image * size;
  made[(image * p.out_blocks + p.to) * p.pixels + within] = x[(image * p.x_blocks + p.from) * p.pixels + within];
}
