// A convolution of bytes by tiles in shared memory: a work group takes ACROSS * PIXELS pixels and DOWN * BLOCKS blocks of
// outputs, and DEPTH input blocks of a tap or of neighbouring ones at a time. Weights: [group][tile][tap][in block]
// [4 * DOWN * BLOCKS outputs], 4 inputs a word.
#extension GL_EXT_control_flow_attributes : require
#define AHEAD_ID 9
#include "byte_conv.glsl"

layout(constant_id = 4) const int BLOCKS = 2;
layout(constant_id = 5) const int PIXELS = 4;
layout(constant_id = 6) const int ACROSS = 8;
layout(constant_id = 7) const int DOWN = 8;
layout(constant_id = 8) const int DEPTH = 4;

const int TILE_PIXELS = ACROSS * PIXELS, TILE_BLOCKS = DOWN * BLOCKS, TILE_OUTPUTS = 4 * TILE_BLOCKS;

#include "corners.glsl"

const int VALUES = DEPTH * TILE_PIXELS, FACTORS = DEPTH * TILE_OUTPUTS, DEPTH_BLOCKS = DEPTH;
#include "staged_bytes.glsl"

shared uint values[2 * VALUES];    // [half][in block][pixel]
shared uint factors[2 * FACTORS];  // [half][in block][output]
#define KEEP_VALUE(to, e) values[to * VALUES + e]
#define KEEP_FACTOR(to, e) factors[to * FACTORS + e]

uint kept_value(uint found, bvec2 place) {
  return place.y ? (place.x ? found : uint(p.x_zero) * 0x01010101u) : 0u;
}

#define MULTIPLY(now)                                                                                   \
  [[unroll]] for (int d = 0; d < DEPTH; ++d) {                                                          \
    uint taken[PIXELS];                                                                                 \
    [[unroll]] for (int i = 0; i < PIXELS; ++i) {                                                       \
      taken[i] = values[now * VALUES + d * TILE_PIXELS + i * ACROSS + own_pixel];                       \
    }                                                                                                   \
    [[unroll]] for (int b = 0; b < BLOCKS; ++b) {                                                       \
      [[unroll]] for (int c = 0; c < 4; ++c) {                                                          \
        const uint weight = factors[now * FACTORS + d * TILE_OUTPUTS + 4 * (b * DOWN + own_block) + c]; \
        [[unroll]] for (int i = 0; i < PIXELS; ++i) sums[i * BLOCKS + b][c] += dot_bytes(weight, taken[i]); \
      }                                                                                                 \
    }                                                                                                   \
  }

void main() {
  FIND_TILE
  const int own_pixel = lane % ACROSS, own_block = lane / ACROSS;
  const int last = from + depth * TILE_OUTPUTS - 1;

  ivec4 sums[PIXELS * BLOCKS];
  [[unroll]] for (int b = 0; b < BLOCKS; ++b) {
    const ivec4 start = begin[(group * tiles + tile) * TILE_BLOCKS + b * DOWN + own_block];
    [[unroll]] for (int i = 0; i < PIXELS; ++i) sums[i * BLOCKS + b] = start;
  }
  find_corners(first, group);
  barrier();
  STEPS(0, depth)

  [[unroll]] for (int i = 0; i < PIXELS; ++i) {
    const int to = corners[i * ACROSS + own_pixel].w;
    [[unroll]] for (int b = 0; b < BLOCKS; ++b) {
      const int block = tile * TILE_BLOCKS + b * DOWN + own_block;
      if (to >= 0 && block < p.out_blocks) {
        put(to + block * out_size, group * tiles * TILE_BLOCKS + block, sums[i * BLOCKS + b]);
      }
    }
  }
}
