// Images in blocks, each pixel repeated a whole number of times.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(binding = 0) writeonly buffer Out { T4 made[]; };
layout(binding = 1) readonly buffer X { T4 x[]; };

layout(push_constant) uniform Push { int planes, in_h, in_w, factor_h, factor_w; } p;

void main() {
  const int i = flat_index(), out_w = p.in_w * p.factor_w, size = out_w * p.in_h * p.factor_h;
  if (i >= p.planes * size) return;
  const int plane = i / size, row = i % size / out_w, column = i % out_w;
  made[i] = x[(plane * p.in_h + row / p.factor_h) * p.in_w + column / p.factor_w];
}
