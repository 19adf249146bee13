// Numbers of the network in blocks become bytes: zero point + round(x / step), what is not a number being 0.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "bytes.glsl"

layout(binding = 0) writeonly buffer Out { uint made[]; };
layout(binding = 1) readonly buffer X { T4 x[]; };

layout(push_constant) uniform Push {
  float step, low, high;
  int zero, count;
} p;

void main() {
  const int i = flat_index();
  if (i >= p.count) return;
  const vec4 found = vec4(x[i]);
  const bvec4 odd = greaterThan(floatBitsToUint(found) & 0x7fffffffu, uvec4(0x7f800000u));
  const vec4 steps = found / p.step;
  made[i] = to_bytes(mix(steps, vec4(0), odd), p.low, p.high, p.zero);
}
