// Reductions over up to 3 axes of a general tensor of up to 3 others: FUNCTION is its place in reductions.py.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(constant_id = 1) const int FUNCTION = 0;

layout(binding = 0) writeonly buffer Out { T1 made[]; };
layout(binding = 1) readonly buffer X { T1 x[]; };

layout(push_constant) uniform Push { int kept[3], kept_strides[3], reduced[3], reduced_strides[3], count; } p;

void main() {
  const int i = flat_index();
  if (i >= p.count) return;
  int left = i, from = 0;
  for (int axis = 2; axis >= 0; --axis) {
    from += left % p.kept[axis] * p.kept_strides[axis];
    left /= p.kept[axis];
  }
  const int size = p.reduced[0] * p.reduced[1] * p.reduced[2];
  float most = -1.0 / 0.0, least = 1.0 / 0.0, sum = 0, product = 1;
  for (int a = 0; a < p.reduced[0]; ++a) {
    for (int b = 0; b < p.reduced[1]; ++b) {
      for (int c = 0; c < p.reduced[2]; ++c) {
        const int at = from + a * p.reduced_strides[0] + b * p.reduced_strides[1] + c * p.reduced_strides[2];
        const float v = float(x[at]);
        if (FUNCTION == 0 || FUNCTION == 1) sum += v;
        if (FUNCTION == 2) most = max(most, v);
        if (FUNCTION == 3) least = min(least, v);
        if (FUNCTION == 4) product *= v;
        if (FUNCTION == 5) sum += v * v;
      }
    }
  }
  float result = sum;
  if (FUNCTION == 1) result = sum / float(size);
  if (FUNCTION == 2) result = most;
  if (FUNCTION == 3) result = least;
  if (FUNCTION == 4) result = product;
  if (FUNCTION == 5) result = sqrt(sum);
  made[i] = T1(result);
}
