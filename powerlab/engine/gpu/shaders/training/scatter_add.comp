// Adds slices at places along one axis: made[outer][at][inner] = x[outer][at][inner] + sum over k of y[outer][k][inner] where
// places[k] is ``at``. Places count from the end below 0. Each result is one lane's, so that nobody races.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(binding = 0) writeonly buffer Out { float made[]; };
layout(binding = 1) readonly buffer X { float x[]; };
layout(binding = 2) readonly buffer Places { int places[]; };
layout(binding = 3) readonly buffer Y { float y[]; };

layout(push_constant) uniform Push { int outer, size, picked, inner; } p;

void main() {
  const int i = flat_index();
  if (i >= p.outer * p.size * p.inner) return;
  const int inner = i % p.inner, at = i / p.inner % p.size, outer = i / p.inner / p.size;
  float sum = x[i];
  for (int k = 0; k < p.picked; ++k) {
    const bool here = places[k] == at || places[k] + p.size == at;
    sum += here ? y[(outer * p.picked + k) * p.inner + inner] : 0.0;
  }
  made[i] = sum;
}
