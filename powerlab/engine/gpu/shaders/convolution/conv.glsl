// A convolution, and with images of one pixel a matrix product: images [n][channel block][pixel] of 4 channels a block.
//
// Lanes are pixels, which lie side by side; every lane of a work group needs the same weights. With BROADCAST each of 8
// lanes loads one for all: a processor that stands in for a GPU loads the same one for each lane otherwise, three times
// as slow. Each lane computes PIXELS pixels of BLOCKS blocks. Weights: [group][tile of BLOCKS][tap][in block][4][BLOCKS].
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_ballot : require
#include "finish.glsl"
#include "window.glsl"
#include "taps.glsl"

layout(constant_id = 2) const int BLOCKS = 4;
layout(constant_id = 3) const int PIXELS = 1;
layout(constant_id = 4) const bool RESIDUAL = false;
layout(constant_id = 5) const bool BROADCAST = false;

layout(binding = 0) writeonly buffer Out { T4 made[]; };
layout(binding = 1) readonly buffer X { T4 x[]; };
layout(binding = 2) readonly buffer Weights { T4 weights[]; };
layout(binding = 3) readonly buffer Bias { vec4 bias[]; };
layout(binding = 4) readonly buffer Residual { T4 residual[]; };

layout(push_constant) uniform Push {
  FINISH_NUMBERS;
  WINDOW_NUMBERS;
} p;

// The weight that lane k has loaded, times what it belongs to.
#define USE_LANE(k)                                                                          \
  if (part + k < 4 * BLOCKS) {                                                               \
    const vec4 weight = subgroupBroadcast(loaded, k);                                        \
    [[unroll]] for (int i = 0; i < PIXELS; ++i) {                                            \
      sums[i * BLOCKS + (part + k) % BLOCKS] += values[i][(part + k) / BLOCKS] * weight;     \
    }                                                                                        \
  }

void main() {
  const int lanes = int(gl_WorkGroupSize.x), tiles = (p.out_blocks + BLOCKS - 1) / BLOCKS;
  const int tile = int(gl_WorkGroupID.y) % tiles, group = int(gl_WorkGroupID.y) / tiles;
  const int first = (int(gl_WorkGroupID.x + gl_WorkGroupID.z * gl_NumWorkGroups.x)) * lanes * PIXELS;
  const int out_size = OUT_SIZE, in_size = IN_SIZE, count = p.images * out_size;

  DECLARE_PIXELS
  vec4 sums[PIXELS * BLOCKS];
  [[unroll]] for (int i = 0; i < PIXELS; ++i) {
    FIND_PIXEL(i)
    [[unroll]] for (int b = 0; b < BLOCKS; ++b) {
      sums[i * BLOCKS + b] = bias[group * tiles * BLOCKS + tile * BLOCKS + b];
    }
  }

  int w = (group * tiles + tile) * TAPS * p.in_blocks * 4 * BLOCKS;
  EACH_TAP_ROW {
    for (int tap_column = 0; tap_column < p.kernel_w; ++tap_column) {
      int at[PIXELS];
      bool inside[PIXELS];
      [[unroll]] for (int i = 0; i < PIXELS; ++i) {
        FIND_TAP(i)
      }
      for (int block = 0; block < p.in_blocks; ++block) {
        vec4 values[PIXELS];
        [[unroll]] for (int i = 0; i < PIXELS; ++i) {
          const vec4 found = vec4(x[at[i]]);
          values[i] = inside[i] ? found : vec4(0);
          at[i] += in_size;
        }
        if (BROADCAST) {
          const int own = int(gl_SubgroupInvocationID) & 7;
          [[unroll]] for (int part = 0; part < 4 * BLOCKS; part += 8) {
            const vec4 loaded = vec4(weights[w + min(part + own, 4 * BLOCKS - 1)]);
            USE_LANE(0) USE_LANE(1) USE_LANE(2) USE_LANE(3) USE_LANE(4) USE_LANE(5) USE_LANE(6) USE_LANE(7)
          }
        } else {
          [[unroll]] for (int lane = 0; lane < 4; ++lane) {
            [[unroll]] for (int b = 0; b < BLOCKS; ++b) {
              const vec4 weight = vec4(weights[w + lane * BLOCKS + b]);
              [[unroll]] for (int i = 0; i < PIXELS; ++i) sums[i * BLOCKS + b] += values[i][lane] * weight;
            }
          }
        }
        w += 4 * BLOCKS;
      }
    }
  }

  [[unroll]] for (int i = 0; i < PIXELS; ++i) {
    const bool real = first + i * lanes + int(gl_LocalInvocationID.x) < count;
    [[unroll]] for (int b = 0; b < BLOCKS; ++b) {
      const int block = tile * BLOCKS + b;
      if (real && block < p.out_blocks) {
        const int to = ((image[i] * p.groups + group) * p.out_blocks + block) * out_size + pixel[i];
        vec4 v = sums[i * BLOCKS + b];
        if (RESIDUAL) v += vec4(residual[to]);
        made[to] = T4(finish(v, p.low, p.high, p.slope, p.alpha, p.beta));
      }
    }
  }
}
