// What conv.comp computes, with the same operands, by tiles in shared memory: a work group takes ACROSS * PIXELS pixels
// and DOWN * BLOCKS blocks of outputs, and DEPTH input blocks of a tap or of neighbouring ones at a time. Weights:
// [group][tile of DOWN * BLOCKS][tap][in block][4 inputs][DOWN * BLOCKS]. While lanes multiply what lies in one half of
// shared memory, what they multiply next is on its way to registers, and from there to the other half.
#extension GL_EXT_control_flow_attributes : require
#include "finish.glsl"
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
layout(binding = 1) restrict readonly buffer X { T4 x[]; };
layout(binding = 2) restrict readonly buffer Weights { T4 weights[]; };
layout(binding = 3) restrict readonly buffer Bias { vec4 bias[]; };
layout(binding = 4) restrict readonly buffer Residual { T4 residual[]; };

layout(push_constant) uniform Push {
  FINISH_NUMBERS;
  WINDOW_NUMBERS;
  int parts;
} p;

#include "corners.glsl"
#include "parts.glsl"

const int VALUES = DEPTH * TILE_PIXELS, FACTORS = DEPTH * 4 * TILE_BLOCKS;
const int VALUES_EACH = (VALUES + LANES - 1) / LANES, FACTORS_EACH = (FACTORS + LANES - 1) / LANES;
shared S4 values[2 * VALUES];    // [half][in block][pixel]
shared S4 factors[2 * FACTORS];  // [half][input][out block]

void main() {
  FIND_TILE
  const int own_pixel = lane % ACROSS, own_block = lane / ACROSS;
  const ivec2 own = part_of(part, depth);
  const int last = from + depth * 4 * TILE_BLOCKS - 1;

  vec4 sums[PIXELS * BLOCKS];
  [[unroll]] for (int s = 0; s < PIXELS * BLOCKS; ++s) sums[s] = vec4(0);
  find_corners(first, group);
  barrier();
  ivec4 corner[VALUES_EACH];
  [[unroll]] for (int i = 0; i < VALUES_EACH; ++i) corner[i] = corners[(lane + i * LANES) % TILE_PIXELS];

  S4 value[VALUES_EACH], factor[FACTORS_EACH];
#define FETCH(k)                                                                                   \
  [[unroll]] for (int i = 0; i < VALUES_EACH; ++i) {                                               \
    const int at = (k) + (lane + i * LANES) / TILE_PIXELS;                                           \
    bool inside;                                                                                   \
    const int place = ONE_TAP ? place_in_tap(corner[i], k, at - (k), inside) : place_of(corner[i], at, inside); \
    const S4 found = S4(x[place]);                                                                 \
    value[i] = inside && at < own.y ? found : S4(0);                                               \
  }                                                                                                \
  [[unroll]] for (int i = 0; i < FACTORS_EACH; ++i) {                                              \
    factor[i] = S4(weights[min(from + (k) * 4 * TILE_BLOCKS + lane + i * LANES, last)]); /* beyond, values are 0 */ \
  }
#define KEEP(half_of)                                                                              \
  [[unroll]] for (int i = 0; i < VALUES_EACH; ++i) {                                               \
    const int e = lane + i * LANES;                                                                \
    if (VALUES % LANES == 0 || e < VALUES) values[half_of * VALUES + e] = value[i];                \
  }                                                                                                \
  [[unroll]] for (int i = 0; i < FACTORS_EACH; ++i) {                                              \
    const int e = lane + i * LANES;                                                                \
    if (FACTORS % LANES == 0 || e < FACTORS) factors[half_of * FACTORS + e] = factor[i];           \
  }

  FETCH(own.x)
  KEEP(0)
  barrier();
  int now = 0;
  for (int k = own.x; k < own.y; k += DEPTH) {
    const bool more = k + DEPTH < own.y;
    if (more) {
      FETCH(k + DEPTH)
    }
#ifdef SHORT_SUMS
    S4 short_sums[PIXELS * BLOCKS];
    [[unroll]] for (int s = 0; s < PIXELS * BLOCKS; ++s) short_sums[s] = S4(0);
#define SUMS short_sums
#else
#define SUMS sums
#endif
    [[unroll]] for (int d = 0; d < DEPTH; ++d) {
      S4 taken[PIXELS];
      [[unroll]] for (int i = 0; i < PIXELS; ++i) {
        taken[i] = values[now * VALUES + d * TILE_PIXELS + i * ACROSS + own_pixel];
      }
      [[unroll]] for (int c = 0; c < 4; ++c) {
        [[unroll]] for (int b = 0; b < BLOCKS; ++b) {
          const S4 weight = factors[now * FACTORS + (d * 4 + c) * TILE_BLOCKS + b * DOWN + own_block];
          [[unroll]] for (int i = 0; i < PIXELS; ++i) SUMS[i * BLOCKS + b] += taken[i][c] * weight;
        }
      }
    }
#ifdef SHORT_SUMS
    [[unroll]] for (int s = 0; s < PIXELS * BLOCKS; ++s) sums[s] += vec4(short_sums[s]);
#endif
    now ^= 1;
    if (more) {
      KEEP(now)
    }
    barrier();
  }

  const int all = p.images * p.groups * p.out_blocks * out_size;
  [[unroll]] for (int i = 0; i < PIXELS; ++i) {
    const int to = corners[i * ACROSS + own_pixel].w;
    [[unroll]] for (int b = 0; b < BLOCKS; ++b) {
      const int block = tile * TILE_BLOCKS + b * DOWN + own_block;
      if (to >= 0 && block < p.out_blocks) {
        put(part, to + block * out_size, all, group * tiles * TILE_BLOCKS + block, sums[i * BLOCKS + b]);
      }
    }
  }
}
