// Adds what a slice of the batch made to what those before it did.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(binding = 0) buffer Sums { vec4 sums[]; };
layout(binding = 1) readonly buffer X { vec4 x[]; };

layout(push_constant) uniform Push { int count; } p;

void main() {
  const int i = flat_index();
  if (i < p.count) sums[i] += x[i];
}
