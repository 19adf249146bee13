// What a clamp gives back: the gradient y where its result x lies inside the bounds, times the slope below 0.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(binding = 0) writeonly buffer Out { vec4 made[]; };
layout(binding = 1) readonly buffer X { vec4 x[]; };
layout(binding = 2) readonly buffer Y { vec4 y[]; };

layout(push_constant) uniform Push {
  int count;
  float low, high, slope;
} p;

void main() {
  const int i = flat_index();
  if (i >= p.count) return;
  const vec4 sloped = mix(y[i], y[i] * p.slope, lessThan(x[i], vec4(0)));
  vec4 v = vec4(0);
  for (int c = 0; c < 4; ++c) v[c] = x[i][c] > p.low && x[i][c] < p.high ? sloped[c] : 0.0;
  made[i] = v;
}
