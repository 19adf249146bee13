// Picks along one axis: made[outer][place][inner] = x[outer][places[place]][inner]; places count from the end below 0, and
// the host has seen that none lies outside.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(binding = 0) writeonly buffer Out { T1 made[]; };
layout(binding = 1) readonly buffer X { T1 x[]; };
layout(binding = 2) readonly buffer Places { int places[]; };

layout(push_constant) uniform Push { int outer, size, picked, inner; } p;

void main() {
  const int i = flat_index();
  if (i >= p.outer * p.picked * p.inner) return;
  const int inner = i % p.inner, place = i / p.inner % p.picked, outer = i / p.inner / p.picked;
  const int from = places[place] + (places[place] < 0 ? p.size : 0);
  made[i] = x[(outer * p.size + from) * p.inner + inner];
}
