// Products of computed matrices: made[batch][m][n] = factor * sum over k of x[batch][m][k] * y[batch][k][n].
layout(binding = 0) writeonly buffer Out { T1 made[]; };
layout(binding = 1) readonly buffer X { T1 x[]; };
layout(binding = 2) readonly buffer Y { T1 y[]; };

layout(push_constant) uniform Push {
  float factor;
  int rows, columns, inner, inner_batches;  // the batch is two axes, the second of this size
  int x_batch[2], x_row, x_inner, y_batch[2], y_inner, y_column, out_batch[2], out_row, out_column;
} p;
