// A product of computed matrices by tiles in shared memory: a work group takes DOWN * ROWS rows and ACROSS * COLUMNS
// columns, and INNER numbers along both at a time.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "common.glsl"
#include "product_numbers.glsl"

layout(constant_id = 1) const int ROWS = 4;
layout(constant_id = 2) const int COLUMNS = 4;
layout(constant_id = 3) const int DOWN = 8;
layout(constant_id = 4) const int ACROSS = 8;
layout(constant_id = 5) const int INNER = 16;

const int TILE_ROWS = DOWN * ROWS, TILE_COLUMNS = ACROSS * COLUMNS;
const int LEFT_STRIDE = INNER + 1, RIGHT_STRIDE = TILE_COLUMNS + 1;
#define SHARED float
#include "product_tiles.glsl"

void main() {
  const int lane = int(gl_LocalInvocationID.x), own_row = lane / ACROSS, own_column = lane % ACROSS;
  const ivec2 first = ivec2(int(gl_WorkGroupID.y) * TILE_ROWS, int(gl_WorkGroupID.x) * TILE_COLUMNS);
  const ivec3 batch = batch_of();
  float sums[ROWS * COLUMNS];
  [[unroll]] for (int s = 0; s < ROWS * COLUMNS; ++s) sums[s] = 0;
  for (int k = 0; k < p.inner; k += INNER) {
    bring_tiles(batch.xy, first, k);
    barrier();
    for (int i = 0; i < INNER; ++i) {
      float taken[ROWS];
      [[unroll]] for (int r = 0; r < ROWS; ++r) taken[r] = left[(r * DOWN + own_row) * LEFT_STRIDE + i];
      [[unroll]] for (int c = 0; c < COLUMNS; ++c) {
        const float factor = right[i * RIGHT_STRIDE + c * ACROSS + own_column];
        [[unroll]] for (int r = 0; r < ROWS; ++r) sums[r * COLUMNS + c] += taken[r] * factor;
      }
    }
    barrier();
  }
  [[unroll]] for (int r = 0; r < ROWS; ++r) {
    [[unroll]] for (int c = 0; c < COLUMNS; ++c) {
      const int row = first.x + r * DOWN + own_row, column = first.y + c * ACROSS + own_column;
      if (row < p.rows && column < p.columns) {
        made[batch.z + row * p.out_row + column * p.out_column] = T1(p.factor * sums[r * COLUMNS + c]);
      }
    }
  }
}
