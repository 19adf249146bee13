// A fully connected layer for few rows: lanes are blocks of 4 outputs, and the rows' numbers are the same for all of them.
// Weights: [in block][out block][4 inputs], each the weights of 4 outputs.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "finish.glsl"

layout(constant_id = 2) const int ROWS = 1;

layout(binding = 0) writeonly buffer Out { T4 made[]; };
layout(binding = 1) readonly buffer X { T4 x[]; };
layout(binding = 2) readonly buffer Weights { T4 weights[]; };
layout(binding = 3) readonly buffer Bias { vec4 bias[]; };

layout(push_constant) uniform Push {
  FINISH_NUMBERS;
  int rows, in_blocks, out_blocks, first_block, made_blocks;  // of all blocks of the result, those made here
} p;

void main() {
  const int wanted = int(gl_GlobalInvocationID.x), own = min(wanted, p.made_blocks - 1), first = int(gl_WorkGroupID.y) * ROWS;
  vec4 sums[ROWS];
  for (int r = 0; r < ROWS; ++r) sums[r] = bias[p.first_block + own];
  for (int k = 0; k < p.in_blocks; ++k) {
    const int w = (k * p.made_blocks + own) * 4;
    const vec4 w0 = vec4(weights[w]), w1 = vec4(weights[w + 1]), w2 = vec4(weights[w + 2]), w3 = vec4(weights[w + 3]);
    for (int r = 0; r < ROWS; ++r) {
      const vec4 v = vec4(x[min(first + r, p.rows - 1) * p.in_blocks + k]);
      sums[r] += v.x * w0 + v.y * w1 + v.z * w2 + v.w * w3;
    }
  }
  for (int r = 0; r < ROWS; ++r) {
    if (wanted < p.made_blocks && first + r < p.rows) {
      made[(first + r) * p.out_blocks + p.first_block + own] = T4(finish(sums[r], p.low, p.high, p.slope, p.alpha, p.beta));
    }
  }
}
