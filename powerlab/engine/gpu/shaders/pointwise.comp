// Each number by itself, 4 at a time, wherever both operands lie alike. OPERATION 0 takes x, 1 x + y, 2 x * y; 3 x * y with
// one y a channel of each image; 4 x * y + z with one y and z a channel of all.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "finish.glsl"

layout(constant_id = 2) const int OPERATION = 0;

layout(binding = 0) writeonly buffer Out { T4 made[]; };
layout(binding = 1) readonly buffer X { T4 x[]; };
layout(binding = 2) readonly buffer Y { T4 y[]; };
layout(binding = 3) readonly buffer Scale { vec4 scale[]; };
layout(binding = 4) readonly buffer Shift { vec4 shift[]; };

layout(push_constant) uniform Push {
  FINISH_NUMBERS;
  int count, pixels, blocks;
} p;

void main() {
  const int i = flat_index();
  if (i >= p.count) return;
  vec4 v = vec4(x[i]);
  if (OPERATION == 1) v += vec4(y[i]);
  if (OPERATION == 2) v *= vec4(y[i]);
  if (OPERATION == 3) v *= vec4(y[i / p.pixels]);
  if (OPERATION == 4) v = v * scale[i / p.pixels % p.blocks] + shift[i / p.pixels % p.blocks];
  made[i] = T4(finish(v, p.low, p.high, p.slope, p.alpha, p.beta));
}
