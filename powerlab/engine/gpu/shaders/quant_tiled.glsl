// A convolution of bytes by tiles in shared memory: a work group takes ACROSS * PIXELS pixels and DOWN * BLOCKS blocks of
// outputs, and DEPTH input blocks of a tap or of neighbouring ones at a time. Weights: [group][tile][tap][in block]
// [4 * DOWN * BLOCKS outputs], 4 inputs a word.
#extension GL_EXT_control_flow_attributes : require
#include "byte_conv.glsl"

layout(constant_id = 4) const int BLOCKS = 2;
layout(constant_id = 5) const int PIXELS = 4;
layout(constant_id = 6) const int ACROSS = 8;
layout(constant_id = 7) const int DOWN = 8;
layout(constant_id = 8) const int DEPTH = 4;

const int TILE_PIXELS = ACROSS * PIXELS, TILE_BLOCKS = DOWN * BLOCKS, TILE_OUTPUTS = 4 * TILE_BLOCKS;

#include "corners.glsl"

shared uint values[DEPTH * TILE_PIXELS];
shared uint factors[DEPTH * TILE_OUTPUTS];

void main() {
  FIND_TILE
  const int own_pixel = lane % ACROSS, own_block = lane / ACROSS;
  const uint outside = uint(p.x_zero) * 0x01010101u;

  ivec4 sums[PIXELS * BLOCKS];
  [[unroll]] for (int b = 0; b < BLOCKS; ++b) {
    const ivec4 start = begin[(group * tiles + tile) * TILE_BLOCKS + b * DOWN + own_block];
    [[unroll]] for (int i = 0; i < PIXELS; ++i) sums[i * BLOCKS + b] = start;
  }
  find_corners(first, group);
  barrier();

  for (int k = 0; k < depth; k += DEPTH) {
    for (int e = lane; e < DEPTH * TILE_PIXELS; e += lanes) {
      const int at = k + e / TILE_PIXELS;
      bool inside;
      const uint found = x[place_of(e % TILE_PIXELS, at, inside)];
      values[e] = at < depth ? (inside ? found : outside) : 0u;
    }
    for (int e = lane; e < DEPTH * TILE_OUTPUTS; e += lanes) {
      factors[e] = weights[from + min(k * TILE_OUTPUTS + e, depth * TILE_OUTPUTS - 1)];  // beyond, values are 0
    }
    barrier();
    [[unroll]] for (int d = 0; d < DEPTH; ++d) {
      uint taken[PIXELS];
      [[unroll]] for (int i = 0; i < PIXELS; ++i) taken[i] = values[d * TILE_PIXELS + i * ACROSS + own_pixel];
      [[unroll]] for (int b = 0; b < BLOCKS; ++b) {
        [[unroll]] for (int c = 0; c < 4; ++c) {
          const uint factor = factors[d * TILE_OUTPUTS + 4 * (b * DOWN + own_block) + c];
          [[unroll]] for (int i = 0; i < PIXELS; ++i) sums[i * BLOCKS + b][c] += dot_bytes(factor, taken[i]);
        }
      }
    }
    barrier();
  }

  [[unroll]] for (int i = 0; i < PIXELS; ++i) {
    const int at = first + i * ACROSS + own_pixel, image = min(at, count - 1) / out_size;
    [[unroll]] for (int b = 0; b < BLOCKS; ++b) {
      const int block = tile * TILE_BLOCKS + b * DOWN + own_block;
      if (at < count && block < p.out_blocks) {
        const int plane = (image * p.groups + group) * p.out_blocks + block;
        put(plane * out_size + at - image * out_size, group * tiles * TILE_BLOCKS + block, sums[i * BLOCKS + b]);
      }
    }
  }
}
