// A convolution of bytes through the caches. Lanes are pixels; each computes PIXELS pixels of 2 blocks. Weights: [group]
// [tile of 2 blocks][tap][in block][8 outputs], 4 inputs a word. With BROADCAST 8 lanes load those of 8 outputs for each
// other: see conv.comp.
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_ballot : require
#include "byte_conv.glsl"
#include "taps.glsl"

layout(constant_id = 4) const int PIXELS = 4;
layout(constant_id = 5) const bool BROADCAST = false;

#define USE_WEIGHT(o)                                                                                        \
  {                                                                                                          \
    const uint weight = BROADCAST ? subgroupBroadcast(loaded, o) : weights[w + o];                           \
    [[unroll]] for (int i = 0; i < PIXELS; ++i) sums[2 * i + o / 4][o % 4] += dot_bytes(weight, values[i]);  \
  }

void main() {
  const int lanes = int(gl_WorkGroupSize.x), tiles = (p.out_blocks + 1) / 2;
  const int tile = int(gl_WorkGroupID.y) % tiles, group = int(gl_WorkGroupID.y) / tiles;
  const int first = int(gl_WorkGroupID.x + gl_WorkGroupID.z * gl_NumWorkGroups.x) * lanes * PIXELS;
  const int out_size = OUT_SIZE, in_size = IN_SIZE, count = p.images * out_size;
  const uint outside = uint(p.x_zero) * 0x01010101u;

  DECLARE_PIXELS
  ivec4 sums[2 * PIXELS];
  [[unroll]] for (int i = 0; i < PIXELS; ++i) {
    FIND_PIXEL(i)
    [[unroll]] for (int b = 0; b < 2; ++b) sums[2 * i + b] = begin[(group * tiles + tile) * 2 + b];
  }

  int w = (group * tiles + tile) * TAPS * p.in_blocks * 8;
  EACH_TAP_ROW {
    for (int tap_column = 0; tap_column < p.kernel_w; ++tap_column) {
      int at[PIXELS];
      bool inside[PIXELS];
      [[unroll]] for (int i = 0; i < PIXELS; ++i) {
        FIND_TAP(i)
      }
      for (int block = 0; block < p.in_blocks; ++block) {
        uint values[PIXELS];
        [[unroll]] for (int i = 0; i < PIXELS; ++i) {
          const uint found = x[at[i]];
          values[i] = inside[i] ? found : outside;
          at[i] += in_size;
        }
        uint loaded = 0;
        if (BROADCAST) loaded = weights[w + (int(gl_SubgroupInvocationID) & 7)];
        USE_WEIGHT(0) USE_WEIGHT(1) USE_WEIGHT(2) USE_WEIGHT(3) USE_WEIGHT(4) USE_WEIGHT(5) USE_WEIGHT(6) USE_WEIGHT(7)
        w += 8;
      }
    }
  }

  [[unroll]] for (int i = 0; i < PIXELS; ++i) {
    const bool real = first + i * lanes + int(gl_LocalInvocationID.x) < count;
    [[unroll]] for (int b = 0; b < 2; ++b) {
      const int block = tile * 2 + b;
      if (real && block < p.out_blocks) {
        const int to = ((image[i] * p.groups + group) * p.out_blocks + block) * out_size + pixel[i];
        put(to, (group * tiles + tile) * 2 + b, sums[2 * i + b]);
      }
    }
  }
}
