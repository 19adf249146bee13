// A product of computed matrices by the units for them, of 16-bit numbers with sums in 32. Rows are what matrices.glsl
// calls pixels, columns what it calls outputs.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#include "common.glsl"
#include "product_numbers.glsl"
#define FIRST_ID 1
#include "matrices.glsl"

const int TILE_ROWS = TILE_PIXELS, TILE_COLUMNS = 4 * TILE_BLOCKS, INNER = 4 * DEPTH_BLOCKS;
const int LEFT_STRIDE = INNER + 8, RIGHT_STRIDE = TILE_COLUMNS + 8;  // whole 16 bytes, other banks a line
#define SHARED float16_t
#include "product_tiles.glsl"
shared vec4 results[ACROSS * DOWN * BLOCKS * SUM_VECTORS];

void main() {
  const int subgroup = int(gl_SubgroupID), across = subgroup % ACROSS, down = subgroup / ACROSS;
  const ivec2 first = ivec2(int(gl_WorkGroupID.y) * TILE_ROWS, int(gl_WorkGroupID.x) * TILE_COLUMNS);
  const ivec3 batch = batch_of();
  coopmat<float, gl_ScopeSubgroup, M, N, gl_MatrixUseAccumulator> sums[PIXELS * BLOCKS];
  [[unroll]] for (int s = 0; s < PIXELS * BLOCKS; ++s) {
    sums[s] = coopmat<float, gl_ScopeSubgroup, M, N, gl_MatrixUseAccumulator>(0.0);
  }
  for (int k = 0; k < p.inner; k += INNER) {
    bring_tiles(batch.xy, first, k);
    barrier();
    [[unroll]] for (int d = 0; d < DEPTH; ++d) {
      coopmat<float16_t, gl_ScopeSubgroup, M, K, gl_MatrixUseA> a[PIXELS];
      [[unroll]] for (int i = 0; i < PIXELS; ++i) {
        coopMatLoad(a[i], left, (across * PIXELS + i) * M * LEFT_STRIDE + d * K, LEFT_STRIDE,
                    gl_CooperativeMatrixLayoutRowMajor);
      }
      [[unroll]] for (int b = 0; b < BLOCKS; ++b) {
        coopmat<float16_t, gl_ScopeSubgroup, K, N, gl_MatrixUseB> factor;
        coopMatLoad(factor, right, d * K * RIGHT_STRIDE + (down * BLOCKS + b) * N, RIGHT_STRIDE,
                    gl_CooperativeMatrixLayoutRowMajor);
        [[unroll]] for (int i = 0; i < PIXELS; ++i) {
          sums[i * BLOCKS + b] = coopMatMulAdd(a[i], factor, sums[i * BLOCKS + b]);
        }
      }
    }
    barrier();
  }

#define PUT(i, v, sum)                                                                                       \
  const int row = first.x + OWN_PIXEL(i, v), column = first.y + 4 * OWN_BLOCK(v);                            \
  const vec4 found = p.factor * sum;                                                                         \
  for (int c = 0; c < 4 && row < p.rows && column + c < p.columns; ++c) {                                    \
    made[batch.z + row * p.out_row + (column + c) * p.out_column] = T1(found[c]);                            \
  }
  FOR_ALL_SUMS(results, PUT)
}
