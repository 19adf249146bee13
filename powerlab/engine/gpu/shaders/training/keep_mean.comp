// Lets running statistics be the mean of what all slices made of them.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "finite.glsl"

layout(binding = 0) writeonly buffer Kept { vec4 kept[]; };
layout(binding = 1) readonly buffer Sums { vec4 sums[]; };
layout(binding = 2) readonly buffer Loss { float loss[]; };

layout(push_constant) uniform Push {
  int count;
  float share_of_sum;
} p;

void main() {
  const int i = flat_index();
  if (i < p.count && is_finite(loss[0])) kept[i] = sums[i] * p.share_of_sum;
}
