// Makes places of whole numbers that were computed as floats.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(binding = 0) writeonly buffer Places { int places[]; };
layout(binding = 1) readonly buffer X { T1 x[]; };

layout(push_constant) uniform Push { int count; } p;

void main() {
  const int i = flat_index();
  if (i < p.count) places[i] = int(round(float(x[i])));
}
