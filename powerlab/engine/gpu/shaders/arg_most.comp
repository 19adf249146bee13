// Where along an axis the largest or the smallest number is, the first or the last of several: a line an invocation.
// Not-a-number is the largest and the smallest.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(constant_id = 1) const bool LAST = false;
layout(constant_id = 2) const bool LARGEST = true;

layout(binding = 0) writeonly buffer Out { T1 made[]; };
layout(binding = 1) readonly buffer X { T1 x[]; };

layout(push_constant) uniform Push { int lines, size, inner; } p;

bool is_none(float number) { return (floatBitsToUint(number) & 0x7fffffffu) > 0x7f800000u; }

void main() {
  const int line = flat_index();
  if (line >= p.lines) return;
  const int first = line / p.inner * p.size * p.inner + line % p.inner;
  int best = 0;
  float known = float(x[first]);
  for (int step = 1; step < p.size; ++step) {
    const float number = float(x[first + step * p.inner]);
    const bool none = is_none(number), known_is_none = is_none(known);
    const bool better = !none && !known_is_none && (LARGEST ? number > known : number < known);
    const bool alike = none ? known_is_none : !known_is_none && number == known;
    if (better || (none && !known_is_none) || (LAST && alike)) {
      best = step;
      known = number;
    }
  }
  made[line] = T1(float(best));
}
