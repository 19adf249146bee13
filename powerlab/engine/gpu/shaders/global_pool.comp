// Windows that are the whole image: a work group has one block of channels, and its lanes share the pixels. KIND is
// pool.comp's.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(constant_id = 1) const int KIND = 0;

layout(binding = 0) writeonly buffer Out { T4 made[]; };
layout(binding = 1) readonly buffer X { T4 x[]; };

layout(push_constant) uniform Push {
  int planes, pixels;
  float power;
} p;

shared vec4 parts[gl_WorkGroupSize.x];

vec4 joined(vec4 a, vec4 b) { return KIND == 0 ? max(a, b) : a + b; }

void main() {
  const int lane = int(gl_LocalInvocationID.x), lanes = int(gl_WorkGroupSize.x);
  const int wanted = int(gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x), plane = min(wanted, p.planes - 1);
  vec4 own = vec4(KIND == 0 ? -1.0 / 0.0 : 0.0);
  for (int at = lane; at < p.pixels; at += lanes) {
    const vec4 found = vec4(x[plane * p.pixels + at]);
    own = joined(own, KIND == 2 ? pow(abs(found), vec4(p.power)) : found);
  }
  parts[lane] = own;
  for (int half_of = lanes / 2; half_of > 0; half_of /= 2) {
    barrier();
    if (lane < half_of) parts[lane] = joined(parts[lane], parts[lane + half_of]);
  }
  if (lane == 0 && wanted < p.planes) {
    vec4 result = parts[0];
    if (KIND == 1) result /= float(p.pixels);
    if (KIND == 2) result = pow(result, vec4(1.0 / p.power));
    made[plane] = T4(result);
  }
}
