// A product of computed matrices through the caches. Lanes are columns; a work group's rows of x are the same for all of
// them.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "product_numbers.glsl"

layout(constant_id = 1) const int ROWS = 4;

void main() {
  const int column = min(int(gl_GlobalInvocationID.x), p.columns - 1), first = int(gl_WorkGroupID.y) * ROWS;
  const int outer = int(gl_WorkGroupID.z) / p.inner_batches, within = int(gl_WorkGroupID.z) % p.inner_batches;
  const int from_x = outer * p.x_batch[0] + within * p.x_batch[1];
  int at = outer * p.y_batch[0] + within * p.y_batch[1] + column * p.y_column;
  float sums[ROWS];
  for (int r = 0; r < ROWS; ++r) sums[r] = 0;
  for (int k = 0; k < p.inner; ++k) {
    const float right = float(y[at]);
    at += p.y_inner;
    for (int r = 0; r < ROWS; ++r) {
      sums[r] += float(x[from_x + min(first + r, p.rows - 1) * p.x_row + k * p.x_inner]) * right;
    }
  }
  for (int r = 0; r < ROWS; ++r) {
    if (int(gl_GlobalInvocationID.x) < p.columns && first + r < p.rows) {
      const int to = outer * p.out_batch[0] + within * p.out_batch[1];
      made[to + (first + r) * p.out_row + column * p.out_column] = T1(p.factor * sums[r]);
    }
  }
}
