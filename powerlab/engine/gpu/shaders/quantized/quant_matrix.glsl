// A convolution of bytes by the units for products of matrices, sums in 32 bits: what quant_conv.glsl computes. The units
// take signed bytes, so values are 128 less than those of the tensor, and ``begin`` holds 128 times the sum of the weights
// more. Weights: [group][tile][tap][in block][4 * TILE_BLOCKS outputs], 4 inputs a word.
#define AHEAD_ID 12
#include "byte_conv.glsl"
#define FIRST_ID 4
#include "matrices.glsl"
#include "corners.glsl"

const int STRIDE = DEPTH_BLOCKS + 4, TILE_OUTPUTS = 4 * TILE_BLOCKS;  // other banks a row
const int VALUES = TILE_PIXELS * DEPTH_BLOCKS, FACTORS = TILE_OUTPUTS * DEPTH_BLOCKS;
#include "staged_bytes.glsl"

shared uint values[2 * TILE_PIXELS * STRIDE];    // [half][pixel][4 inputs]
shared uint factors[2 * TILE_OUTPUTS * STRIDE];  // [half][output][4 inputs]
shared ivec4 results[ACROSS * DOWN * BLOCKS * SUM_VECTORS];
#define KEEP_VALUE(to, e) values[(to * TILE_PIXELS + e % TILE_PIXELS) * STRIDE + e / TILE_PIXELS]
#define KEEP_FACTOR(to, e) factors[(to * TILE_OUTPUTS + e % TILE_OUTPUTS) * STRIDE + e / TILE_OUTPUTS]

uint kept_value(uint found, bvec2 place) {
  return place.y ? (place.x ? found : uint(p.x_zero) * 0x01010101u) ^ 0x80808080u : 0u;
}

#define MULTIPLY(now)                                                                                              \
  [[unroll]] for (int d = 0; d < DEPTH; ++d) {                                                                     \
    coopmat<int8_t, gl_ScopeSubgroup, M, K, gl_MatrixUseA> left[PIXELS];                                           \
    [[unroll]] for (int i = 0; i < PIXELS; ++i) {                                                                  \
      coopMatLoad(left[i], values, (now * TILE_PIXELS + (across * PIXELS + i) * M) * STRIDE + d * K / 4, STRIDE,   \
                  gl_CooperativeMatrixLayoutRowMajor);                                                             \
    }                                                                                                              \
    [[unroll]] for (int b = 0; b < BLOCKS; ++b) {                                                                  \
      coopmat<int8_t, gl_ScopeSubgroup, K, N, gl_MatrixUseB> right;                                                \
      coopMatLoad(right, factors, (now * TILE_OUTPUTS + (down * BLOCKS + b) * N) * STRIDE + d * K / 4, STRIDE,     \
                  gl_CooperativeMatrixLayoutColumnMajor);                                                          \
      [[unroll]] for (int i = 0; i < PIXELS; ++i) {                                                                \
        sums[i * BLOCKS + b] = coopMatMulAdd(left[i], right, sums[i * BLOCKS + b]);                                \
      }                                                                                                            \
    }                                                                                                              \
  }

void main() {
  FIND_TILE
  const int subgroup = int(gl_SubgroupID), across = subgroup % ACROSS, down = subgroup / ACROSS;
  const int last = from + depth * TILE_OUTPUTS - 1;

  coopmat<int, gl_ScopeSubgroup, M, N, gl_MatrixUseAccumulator> sums[PIXELS * BLOCKS];
  [[unroll]] for (int s = 0; s < PIXELS * BLOCKS; ++s) {
    sums[s] = coopmat<int, gl_ScopeSubgroup, M, N, gl_MatrixUseAccumulator>(0);
  }
  find_corners(first, group);
  barrier();
  STEPS(0, depth)

#define PUT(i, v, sum)                                                                     \
  const int to = corners[OWN_PIXEL(i, v)].w, block = tile * TILE_BLOCKS + OWN_BLOCK(v);    \
  if (to >= 0 && block < p.out_blocks) {                                                   \
    const int channel = group * tiles * TILE_BLOCKS + block;                               \
    put(to + block * out_size, channel, sum + begin[channel]);                             \
  }
  FOR_ALL_SUMS(results, PUT)
}
