// Bytes become numbers of the network in blocks: (byte - zero point) * step.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "bytes.glsl"

layout(binding = 0) writeonly buffer Out { T4 made[]; };
layout(binding = 1) readonly buffer X { uint x[]; };

layout(push_constant) uniform Push {
  float step;
  int zero, count;
} p;

void main() {
  const int i = flat_index();
  if (i < p.count) made[i] = T4(vec4(bytes_of(x[i]) - p.zero) * p.step);
}
