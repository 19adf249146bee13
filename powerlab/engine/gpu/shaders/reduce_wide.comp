// What reduce.comp computes, with the same operands: a work group has one result, and its lanes share what is reduced.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(constant_id = 1) const int FUNCTION = 0;

layout(binding = 0) writeonly buffer Out { T1 made[]; };
layout(binding = 1) readonly buffer X { T1 x[]; };

layout(push_constant) uniform Push { int kept[3], kept_strides[3], reduced[3], reduced_strides[3], count; } p;

shared float parts[gl_WorkGroupSize.x];

float joined(float a, float b) {
  if (FUNCTION == 2) return max(a, b);
  if (FUNCTION == 3) return min(a, b);
  return FUNCTION == 4 ? a * b : a + b;
}

void main() {
  const int lane = int(gl_LocalInvocationID.x), lanes = int(gl_WorkGroupSize.x);
  const int wanted = int(gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x);
  int left = min(wanted, p.count - 1), from = 0;
  for (int axis = 2; axis >= 0; --axis) {
    from += left % p.kept[axis] * p.kept_strides[axis];
    left /= p.kept[axis];
  }
  const int size = p.reduced[0] * p.reduced[1] * p.reduced[2];
  float own = FUNCTION == 2 ? -1.0 / 0.0 : FUNCTION == 3 ? 1.0 / 0.0 : FUNCTION == 4 ? 1.0 : 0.0;
  for (int at = lane; at < size; at += lanes) {
    const int column = at % p.reduced[2], row = at / p.reduced[2] % p.reduced[1], plane = at / p.reduced[2] / p.reduced[1];
    const float v = float(
        x[from + plane * p.reduced_strides[0] + row * p.reduced_strides[1] + column * p.reduced_strides[2]]);
    own = joined(own, FUNCTION == 5 ? v * v : v);
  }
  parts[lane] = own;
  for (int half_of = lanes / 2; half_of > 0; half_of /= 2) {
    barrier();
    if (lane < half_of) parts[lane] = joined(parts[lane], parts[lane + half_of]);
  }
  if (lane == 0 && wanted < p.count) {
    float result = parts[0];
    if (FUNCTION == 1) result /= float(size);
    if (FUNCTION == 5) result = sqrt(result);
    made[wanted] = T1(result);
  }
}
