// Adds the parts of a product whose depth was cut (see parts.glsl), and finishes it: lanes are blocks of outputs.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "common.glsl"
#include "finish.glsl"

const int AHEAD = 4;  // loads at the same time

layout(constant_id = 2) const bool RESIDUAL = false;

layout(binding = 0) restrict writeonly buffer Out { T4 made[]; };
layout(binding = 1) restrict readonly buffer Parts { vec4 parts[]; };
layout(binding = 2) restrict readonly buffer Bias { vec4 bias[]; };
layout(binding = 3) restrict readonly buffer Residual { T4 residual[]; };

layout(push_constant) uniform Push {
  FINISH_NUMBERS;
  int all, parts_count, pixels, blocks;  // vectors of a part, pixels of an image, blocks of all groups
} p;

void main() {
  const int i = flat_index();
  if (i >= p.all) return;
  vec4 sum = bias[i / p.pixels % p.blocks];
  for (int part = 0; part < p.parts_count; part += AHEAD) {
    [[unroll]] for (int a = 0; a < AHEAD; ++a) {
      const vec4 found = parts[min(part + a, p.parts_count - 1) * p.all + i];
      sum += part + a < p.parts_count ? found : vec4(0);
    }
  }
  if (RESIDUAL) sum += vec4(residual[i]);
  made[i] = T4(finish(sum, p.low, p.high, p.slope, p.alpha, p.beta));
}
