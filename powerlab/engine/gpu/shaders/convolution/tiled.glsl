// What conv.comp computes, with the same operands, by tiles in shared memory: a work group takes ACROSS * PIXELS pixels
// and DOWN * BLOCKS blocks of outputs, and DEPTH input blocks of a tap or of neighbouring ones at a time. Weights:
// [group][tile of DOWN * BLOCKS][tap][in block][4 inputs][DOWN * BLOCKS].
#extension GL_EXT_control_flow_attributes : require
#include "finish.glsl"
#define AHEAD_ID 9
#include "window.glsl"

layout(constant_id = 2) const int BLOCKS = 2;
layout(constant_id = 3) const int PIXELS = 4;
layout(constant_id = 4) const bool RESIDUAL = false;
layout(constant_id = 5) const int ACROSS = 8;
layout(constant_id = 6) const int DOWN = 8;
layout(constant_id = 7) const int DEPTH = 2;
layout(constant_id = 8) const bool ONE_TAP = false;  // whether all blocks of a step are of one tap

const int TILE_PIXELS = ACROSS * PIXELS, TILE_BLOCKS = DOWN * BLOCKS, DEPTH_BLOCKS = DEPTH;

layout(binding = 0) restrict writeonly buffer Out { T4 made[]; };
layout(binding = 1) restrict readonly buffer X { RAW4 x[]; };
layout(binding = 2) restrict readonly buffer Weights { RAW4 weights[]; };
layout(binding = 3) restrict readonly buffer Bias { vec4 bias[]; };
layout(binding = 4) restrict readonly buffer Residual { RAW4 residual[]; };

layout(push_constant) uniform Push {
  FINISH_NUMBERS;
  WINDOW_NUMBERS;
  int parts, part_blocks;  // blocks of a part of the window
} p;

#include "corners.glsl"
#include "parts.glsl"

const int VALUES = DEPTH * TILE_PIXELS, FACTORS = DEPTH * 4 * TILE_BLOCKS;
#define VALUE RAW4
#define FACTOR RAW4
#define PLACE bool
#define KEPT_FACTOR(factor) S4_OF(factor)
#include "staged.glsl"

shared S4 values[2 * VALUES];    // [half][in block][pixel]
shared S4 factors[2 * FACTORS];  // [half][input][out block]
#define KEEP_VALUE(to, e) values[to * VALUES + e]
#define KEEP_FACTOR(to, e) factors[to * FACTORS + e]
#define FIND_FACTOR(k, e) weights[min(from + k * 4 * TILE_BLOCKS + e, last)]  // beyond the last one, values are 0

RAW4 find_value(ivec4 corner, int k, int e, int end, out bool inside) {
  const int more = e / TILE_PIXELS;
  const int place = ONE_TAP ? place_in_tap(corner, k, more, inside) : place_of(corner, k + more, inside);
  inside = inside && k + more < end;
  return x[place];
}

S4 kept_value(RAW4 found, bool inside) { return inside ? S4_OF(found) : S4(0); }

#ifdef SHORT_SUMS
#define BEGIN_SUMS                \
  S4 short_sums[PIXELS * BLOCKS]; \
  [[unroll]] for (int s = 0; s < PIXELS * BLOCKS; ++s) short_sums[s] = S4(0);
#define SUMS short_sums
#define END_SUMS [[unroll]] for (int s = 0; s < PIXELS * BLOCKS; ++s) sums[s] += vec4(short_sums[s]);
#else
#define BEGIN_SUMS
#define SUMS sums
#define END_SUMS
#endif

#define MULTIPLY(now)                                                                                         \
  BEGIN_SUMS                                                                                                  \
  [[unroll]] for (int d = 0; d < DEPTH; ++d) {                                                                \
    S4 taken[PIXELS];                                                                                         \
    [[unroll]] for (int i = 0; i < PIXELS; ++i) {                                                             \
      taken[i] = values[now * VALUES + d * TILE_PIXELS + i * ACROSS + own_pixel];                             \
    }                                                                                                         \
    [[unroll]] for (int c = 0; c < 4; ++c) {                                                                  \
      [[unroll]] for (int b = 0; b < BLOCKS; ++b) {                                                           \
        const S4 weight = factors[now * FACTORS + (d * 4 + c) * TILE_BLOCKS + b * DOWN + own_block];          \
        [[unroll]] for (int i = 0; i < PIXELS; ++i) SUMS[i * BLOCKS + b] += taken[i][c] * weight;             \
      }                                                                                                       \
    }                                                                                                         \
  }                                                                                                           \
  END_SUMS

void main() {
  FIND_TILE
  const int own_pixel = lane % ACROSS, own_block = lane / ACROSS;
  const ivec2 own = part_of(part, depth);
  const int last = from + depth * 4 * TILE_BLOCKS - 1;

  vec4 sums[PIXELS * BLOCKS];
  [[unroll]] for (int s = 0; s < PIXELS * BLOCKS; ++s) sums[s] = vec4(0);
  find_corners(first, group);
  barrier();
  STEPS(own.x, own.y)

  const int all = p.images * p.groups * p.out_blocks * out_size;
  const int first_block = tile * TILE_BLOCKS + own_block, constants = group * tiles * TILE_BLOCKS + first_block;
  vec4 shifts[BLOCKS];
  RAW4 added[PIXELS * BLOCKS];
  if (p.parts == 1) {
    [[unroll]] for (int b = 0; b < BLOCKS; ++b) shifts[b] = bias[constants + b * DOWN];
    [[unroll]] for (int s = 0; RESIDUAL && s < PIXELS * BLOCKS; ++s) {
      const int to = corners[s / BLOCKS * ACROSS + own_pixel].w, block = first_block + s % BLOCKS * DOWN;
      added[s] = residual[max(to, 0) + min(block, p.out_blocks - 1) * out_size];
    }
  }
  [[unroll]] for (int s = 0; s < PIXELS * BLOCKS; ++s) {
    const int to = corners[s / BLOCKS * ACROSS + own_pixel].w, block = first_block + s % BLOCKS * DOWN;
    if (to >= 0 && block < p.out_blocks) put(part, to + block * out_size, all, sums[s], shifts[s % BLOCKS], added[s]);
  }
}
