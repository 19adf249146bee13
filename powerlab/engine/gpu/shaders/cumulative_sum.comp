// Sums of all numbers before each along an axis, itself included or not, from either end: a line an invocation.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(constant_id = 1) const bool EXCLUSIVE = false;
layout(constant_id = 2) const bool REVERSE = false;

layout(binding = 0) writeonly buffer Out { T1 made[]; };
layout(binding = 1) readonly buffer X { T1 x[]; };

layout(push_constant) uniform Push { int lines, size, inner; } p;

void main() {
  const int line = flat_index();
  if (line >= p.lines) return;
  const int first = line / p.inner * p.size * p.inner + line % p.inner;
  float sum = 0;
  for (int step = 0; step < p.size; ++step) {
    const int at = first + (REVERSE ? p.size - 1 - step : step) * p.inner;
    const float number = float(x[at]);
    made[at] = T1(EXCLUSIVE ? sum : sum + number);
    sum += number;
  }
}
