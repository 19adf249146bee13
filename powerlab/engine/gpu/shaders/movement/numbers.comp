// Makes floats of places that a run gives; those too large for one become something that is still larger than the rest.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(binding = 0) writeonly buffer Out { T1 made[]; };
layout(binding = 1) readonly buffer Places { int places[]; };

layout(push_constant) uniform Push { int count; } p;

void main() {
  const int i = flat_index();
  if (i < p.count) made[i] = T1(float(places[i]));
}
