// What conv.comp computes, with the same operands, by tiles in shared memory: a work group takes ACROSS * PIXELS pixels
// and DOWN * BLOCKS blocks of outputs, and DEPTH input blocks of a tap or of neighbouring ones at a time. Weights:
// [group][tile of DOWN * BLOCKS][tap][in block][4 inputs][DOWN * BLOCKS].
#extension GL_EXT_control_flow_attributes : require
#include "finish.glsl"
#include "window.glsl"

layout(constant_id = 2) const int BLOCKS = 2;
layout(constant_id = 3) const int PIXELS = 4;
layout(constant_id = 4) const bool RESIDUAL = false;
layout(constant_id = 5) const int ACROSS = 8;
layout(constant_id = 6) const int DOWN = 8;
layout(constant_id = 7) const int DEPTH = 2;

const int TILE_PIXELS = ACROSS * PIXELS, TILE_BLOCKS = DOWN * BLOCKS;

layout(binding = 0) writeonly buffer Out { T4 made[]; };
layout(binding = 1) readonly buffer X { T4 x[]; };
layout(binding = 2) readonly buffer Weights { T4 weights[]; };
layout(binding = 3) readonly buffer Bias { vec4 bias[]; };
layout(binding = 4) readonly buffer Residual { T4 residual[]; };

layout(push_constant) uniform Push {
  FINISH_NUMBERS;
  WINDOW_NUMBERS;
} p;

#include "corners.glsl"

shared S4 values[DEPTH * TILE_PIXELS];
shared S4 factors[DEPTH * 4 * TILE_BLOCKS];

void main() {
  FIND_TILE
  const int own_pixel = lane % ACROSS, own_block = lane / ACROSS;

  vec4 sums[PIXELS * BLOCKS];
  [[unroll]] for (int b = 0; b < BLOCKS; ++b) {
    const vec4 start = bias[(group * tiles + tile) * TILE_BLOCKS + b * DOWN + own_block];
    [[unroll]] for (int i = 0; i < PIXELS; ++i) sums[i * BLOCKS + b] = start;
  }
  find_corners(first, group);
  barrier();

  for (int k = 0; k < depth; k += DEPTH) {
    for (int e = lane; e < DEPTH * TILE_PIXELS; e += lanes) {
      bool inside;
      const S4 found = S4(x[place_of(e % TILE_PIXELS, k + e / TILE_PIXELS, inside)]);
      values[e] = inside ? found : S4(0);
    }
    for (int e = lane; e < DEPTH * 4 * TILE_BLOCKS; e += lanes) {
      const int at = k * 4 * TILE_BLOCKS + e;  // beyond the last one, values are 0
      factors[e] = S4(weights[from + min(at, depth * 4 * TILE_BLOCKS - 1)]);
    }
    barrier();
#ifdef IN_PARTS
    S4 parts[PIXELS * BLOCKS];
    [[unroll]] for (int s = 0; s < PIXELS * BLOCKS; ++s) parts[s] = S4(0);
#define SUMS parts
#else
#define SUMS sums
#endif
    [[unroll]] for (int d = 0; d < DEPTH; ++d) {
      S4 taken[PIXELS];
      [[unroll]] for (int i = 0; i < PIXELS; ++i) taken[i] = values[d * TILE_PIXELS + i * ACROSS + own_pixel];
      [[unroll]] for (int c = 0; c < 4; ++c) {
        [[unroll]] for (int b = 0; b < BLOCKS; ++b) {
          const S4 factor = factors[(d * 4 + c) * TILE_BLOCKS + b * DOWN + own_block];
          [[unroll]] for (int i = 0; i < PIXELS; ++i) SUMS[i * BLOCKS + b] += taken[i][c] * factor;
        }
      }
    }
#ifdef IN_PARTS
    [[unroll]] for (int s = 0; s < PIXELS * BLOCKS; ++s) sums[s] += vec4(parts[s]);
#endif
    barrier();
  }

  [[unroll]] for (int i = 0; i < PIXELS; ++i) {
    const int at = first + i * ACROSS + own_pixel, image = min(at, count - 1) / out_size;
    [[unroll]] for (int b = 0; b < BLOCKS; ++b) {
      const int block = tile * TILE_BLOCKS + b * DOWN + own_block;
      if (at < count && block < p.out_blocks) {
        const int to = ((image * p.groups + group) * p.out_blocks + block) * out_size + at - image * out_size;
        vec4 v = sums[i * BLOCKS + b];
        if (RESIDUAL) v += vec4(residual[to]);
        made[to] = T4(finish(v, p.low, p.high, p.slope, p.alpha, p.beta));
      }
    }
  }
}
