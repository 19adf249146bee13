// A convolution of bytes by the units for products of matrices, sums in 32 bits: what quant_conv.glsl computes. The units
// take signed bytes, so values are 128 less than those of the tensor, and ``begin`` holds 128 times the sum of the weights
// more. Weights: [group][tile][tap][in block][4 * TILE_BLOCKS outputs], 4 inputs a word.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#include "common.glsl"
#include "byte_conv.glsl"
#define FIRST_ID 4
#include "matrices.glsl"
#include "corners.glsl"

const int STRIDE = DEPTH_BLOCKS + 4, TILE_OUTPUTS = 4 * TILE_BLOCKS;  // other banks a row
shared uint values[TILE_PIXELS * STRIDE];    // [pixel][4 inputs]
shared uint factors[TILE_OUTPUTS * STRIDE];  // [output][4 inputs]
shared ivec4 results[ACROSS * DOWN * SUM_VECTORS];

void main() {
  FIND_TILE
  const int subgroup = int(gl_SubgroupID), across = subgroup % ACROSS, down = subgroup / ACROSS;
  const uint outside = uint(p.x_zero) * 0x01010101u;

  coopmat<int, gl_ScopeSubgroup, M, N, gl_MatrixUseAccumulator> sums[PIXELS * BLOCKS];
  [[unroll]] for (int s = 0; s < PIXELS * BLOCKS; ++s) {
    sums[s] = coopmat<int, gl_ScopeSubgroup, M, N, gl_MatrixUseAccumulator>(0);
  }
  find_corners(first, group);
  barrier();

  for (int k = 0; k < depth; k += DEPTH_BLOCKS) {
    for (int e = lane; e < DEPTH_BLOCKS * TILE_PIXELS; e += lanes) {
      const int m = e % TILE_PIXELS, d = e / TILE_PIXELS;
      bool inside;
      const uint found = x[place_of(m, k + d, inside)];
      values[m * STRIDE + d] = k + d < depth ? (inside ? found : outside) ^ 0x80808080u : 0u;
    }
    for (int e = lane; e < DEPTH_BLOCKS * TILE_OUTPUTS; e += lanes) {
      const int at = k * TILE_OUTPUTS + e;  // beyond the last one, values are 0
      factors[e % TILE_OUTPUTS * STRIDE + e / TILE_OUTPUTS] = weights[from + min(at, depth * TILE_OUTPUTS - 1)];
    }
    barrier();
    [[unroll]] for (int d = 0; d < DEPTH; ++d) {
      coopmat<int8_t, gl_ScopeSubgroup, M, K, gl_MatrixUseA> left[PIXELS];
      [[unroll]] for (int i = 0; i < PIXELS; ++i) {
        coopMatLoad(left[i], values, (across * PIXELS + i) * M * STRIDE + d * K / 4, STRIDE,
                    gl_CooperativeMatrixLayoutRowMajor);
      }
      [[unroll]] for (int b = 0; b < BLOCKS; ++b) {
        coopmat<int8_t, gl_ScopeSubgroup, K, N, gl_MatrixUseB> right;
        coopMatLoad(right, factors, (down * BLOCKS + b) * N * STRIDE + d * K / 4, STRIDE,
                    gl_CooperativeMatrixLayoutColumnMajor);
        [[unroll]] for (int i = 0; i < PIXELS; ++i) {
          sums[i * BLOCKS + b] = coopMatMulAdd(left[i], right, sums[i * BLOCKS + b]);
        }
      }
    }
    barrier();
  }

#define PUT(pixel, own, sum)                                                                              \
  const int at = first + pixel, block = tile * TILE_BLOCKS + own, image = min(at, count - 1) / out_size;  \
  if (at < count && block < p.out_blocks) {                                                               \
    const int channel = group * tiles * TILE_BLOCKS + block;                                              \
    const int plane = (image * p.groups + group) * p.out_blocks + block;                                  \
    put(plane * out_size + at - image * out_size, channel, sum + begin[channel]);                         \
  }
  FOR_ALL_SUMS(PUT)
}
