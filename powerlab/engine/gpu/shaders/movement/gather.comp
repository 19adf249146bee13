// Picks along one axis: made[outer][place][inner] = x[outer][places[place]][inner]; with EACH every number has a place of
// its own. Places count from the end below 0, and the host has seen that none lies outside.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(constant_id = 1) const bool EACH = false;

layout(binding = 0) writeonly buffer Out { T1 made[]; };
layout(binding = 1) readonly buffer X { T1 x[]; };
layout(binding = 2) readonly buffer Places { int places[]; };

layout(push_constant) uniform Push { int outer, size, picked, inner; } p;

void main() {
  const int i = flat_index();
  if (i >= p.outer * p.picked * p.inner) return;
  const int inner = i % p.inner, outer = i / p.inner / p.picked;
  const int place = places[EACH ? i : i / p.inner % p.picked];
  const int from = place + (place < 0 ? p.size : 0);
  made[i] = x[(outer * p.size + from) * p.inner + inner];
}
