// Products of computed matrices: made[batch][m][n] = factor * sum over k of x[batch][m][k] * y[batch][k][n]. Lanes are
// columns; a work group's rows of x are the same for all of them.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(constant_id = 1) const int ROWS = 4;

layout(binding = 0) writeonly buffer Out { T1 made[]; };
layout(binding = 1) readonly buffer X { T1 x[]; };
layout(binding = 2) readonly buffer Y { T1 y[]; };

layout(push_constant) uniform Push {
  float factor;
  int rows, columns, inner, inner_batches;  // the batch is two axes, the second of this size
  int x_batch[2], x_row, x_inner, y_batch[2], y_inner, y_column, out_batch[2], out_row, out_column;
} p;

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
