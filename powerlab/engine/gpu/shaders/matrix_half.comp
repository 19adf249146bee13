// A convolution by the units for products of matrices, of 16-bit numbers with sums in 32: what tiled.glsl computes, with
// the same operands. Weights: [group][tile][tap][in block][4 inputs][TILE_BLOCKS].
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#include "common.glsl"
#include "finish.glsl"
#include "window.glsl"
#define FIRST_ID 3
#include "matrices.glsl"

layout(constant_id = 2) const bool RESIDUAL = false;

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

const int VALUE_STRIDE = DEPTH_BLOCKS + 2, FACTOR_STRIDE = TILE_BLOCKS + 2;  // whole 16 bytes, other banks a row
shared f16vec4 values[TILE_PIXELS * VALUE_STRIDE];         // [pixel][input]
shared f16vec4 factors[DEPTH_BLOCKS * 4 * FACTOR_STRIDE];  // [input][output]
shared vec4 results[ACROSS * DOWN * SUM_VECTORS];

void main() {
  FIND_TILE
  const int subgroup = int(gl_SubgroupID), across = subgroup % ACROSS, down = subgroup / ACROSS;

  coopmat<float, gl_ScopeSubgroup, M, N, gl_MatrixUseAccumulator> sums[PIXELS * BLOCKS];
  [[unroll]] for (int s = 0; s < PIXELS * BLOCKS; ++s) {
    sums[s] = coopmat<float, gl_ScopeSubgroup, M, N, gl_MatrixUseAccumulator>(0.0);
  }
  find_corners(first, group);
  barrier();

  for (int k = 0; k < depth; k += DEPTH_BLOCKS) {
    for (int e = lane; e < DEPTH_BLOCKS * TILE_PIXELS; e += lanes) {
      const int m = e % TILE_PIXELS, d = e / TILE_PIXELS;
      bool inside;
      const f16vec4 found = x[place_of(m, k + d, inside)];
      values[m * VALUE_STRIDE + d] = inside ? found : f16vec4(0);
    }
    for (int e = lane; e < DEPTH_BLOCKS * 4 * TILE_BLOCKS; e += lanes) {
      const int at = k * 4 * TILE_BLOCKS + e;  // beyond the last one, values are 0
      factors[e / TILE_BLOCKS * FACTOR_STRIDE + e % TILE_BLOCKS] = weights[from + min(at, depth * 4 * TILE_BLOCKS - 1)];
    }
    barrier();
    [[unroll]] for (int d = 0; d < DEPTH; ++d) {
      coopmat<float16_t, gl_ScopeSubgroup, M, K, gl_MatrixUseA> left[PIXELS];
      [[unroll]] for (int i = 0; i < PIXELS; ++i) {
        coopMatLoad(left[i], values, (across * PIXELS + i) * M * VALUE_STRIDE + d * K / 4, VALUE_STRIDE,
                    gl_CooperativeMatrixLayoutRowMajor);
      }
      [[unroll]] for (int b = 0; b < BLOCKS; ++b) {
        coopmat<float16_t, gl_ScopeSubgroup, K, N, gl_MatrixUseB> right;
        coopMatLoad(right, factors, d * K * FACTOR_STRIDE + (down * BLOCKS + b) * N / 4, FACTOR_STRIDE,
                    gl_CooperativeMatrixLayoutRowMajor);
        [[unroll]] for (int i = 0; i < PIXELS; ++i) {
          sums[i * BLOCKS + b] = coopMatMulAdd(left[i], right, sums[i * BLOCKS + b]);
        }
      }
    }
    barrier();
  }

#define PUT(pixel, own, sum)                                                                               \
  const int at = first + pixel, block = tile * TILE_BLOCKS + own, image = min(at, count - 1) / out_size;   \
  if (at < count && block < p.out_blocks) {                                                                \
    const int to = ((image * p.groups + group) * p.out_blocks + block) * out_size + at - image * out_size; \
    vec4 v = sum + bias[group * tiles * TILE_BLOCKS + block];                                              \
    if (RESIDUAL) v += vec4(residual[to]);                                                                 \
    made[to] = T4(finish(v, p.low, p.high, p.slope, p.alpha, p.beta));                                     \
  }
  FOR_ALL_SUMS(PUT)
}
