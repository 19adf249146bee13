// A fully connected layer for few rows: a lane computes a block of 4 outputs from one of SLICES slices of the inputs, whose
// sums are added in shared memory. Neighbouring lanes are neighbouring blocks of outputs, whose weights lie side by side;
// the rows' numbers are the same for all of them. Weights: [in block][out block][4 inputs], each the weights of 4 outputs.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "common.glsl"
#include "finish.glsl"

layout(constant_id = 2) const int ROWS = 1;
layout(constant_id = 3) const int SLICES = 1;

layout(binding = 0) restrict writeonly buffer Out { T4 made[]; };
layout(binding = 1) restrict readonly buffer X { T4 x[]; };
layout(binding = 2) restrict readonly buffer Weights { T4 weights[]; };
layout(binding = 3) restrict readonly buffer Bias { vec4 bias[]; };

layout(push_constant) uniform Push {
  FINISH_NUMBERS;
  int rows, in_blocks, out_blocks, first_block, made_blocks;  // of all blocks of the result, those made here
} p;

const int BLOCKS = int(gl_WorkGroupSize.x) / SLICES, AHEAD = SLICES > 1 ? 4 : 1;
shared vec4 parts[SLICES > 1 ? ROWS * int(gl_WorkGroupSize.x) : 1];

void main() {
  const int lane = int(gl_LocalInvocationID.x), slice = lane / BLOCKS, first = int(gl_WorkGroupID.y) * ROWS;
  const int wanted = int(gl_WorkGroupID.x) * BLOCKS + lane % BLOCKS, own = min(wanted, p.made_blocks - 1);
  vec4 sums[ROWS];
  [[unroll]] for (int r = 0; r < ROWS; ++r) sums[r] = vec4(0);
  for (int k = slice; k < p.in_blocks; k += SLICES * AHEAD) {
    [[unroll]] for (int a = 0; a < AHEAD; ++a) {
      const int at = k + a * SLICES, there = min(at, p.in_blocks - 1), w = (there * p.made_blocks + own) * 4;
      const vec4 w0 = vec4(weights[w]), w1 = vec4(weights[w + 1]), w2 = vec4(weights[w + 2]), w3 = vec4(weights[w + 3]);
      [[unroll]] for (int r = 0; r < ROWS; ++r) {
        const vec4 found = vec4(x[min(first + r, p.rows - 1) * p.in_blocks + there]);
        const vec4 v = at < p.in_blocks ? found : vec4(0);
        sums[r] += v.x * w0 + v.y * w1 + v.z * w2 + v.w * w3;
      }
    }
  }
  if (SLICES > 1) {
    [[unroll]] for (int r = 0; r < ROWS; ++r) parts[r * int(gl_WorkGroupSize.x) + lane] = sums[r];
    [[unroll]] for (int half_of = SLICES / 2; half_of > 0; half_of /= 2) {
      barrier();
      if (slice < half_of) {
        [[unroll]] for (int r = 0; r < ROWS; ++r) {
          sums[r] += parts[r * int(gl_WorkGroupSize.x) + lane + half_of * BLOCKS];
          parts[r * int(gl_WorkGroupSize.x) + lane] = sums[r];
        }
      }
    }
  }
  if (slice == 0 && wanted < p.made_blocks) {
    [[unroll]] for (int r = 0; r < ROWS; ++r) {
      const vec4 sum = sums[r] + bias[p.first_block + own];
      if (first + r < p.rows) {
        made[(first + r) * p.out_blocks + p.first_block + own] = T4(finish(sum, p.low, p.high, p.slope, p.alpha, p.beta));
      }
    }
  }
}
