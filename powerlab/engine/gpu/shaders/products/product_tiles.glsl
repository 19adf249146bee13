// Brings tiles of both matrices into shared memory, INNER numbers of each row and column: left[row][inner] and
// right[inner][column], a line LEFT_STRIDE and RIGHT_STRIDE apart, with zeros outside. Neighbouring lanes read what lies
// side by side.
shared SHARED left[TILE_ROWS * LEFT_STRIDE];
shared SHARED right[INNER * RIGHT_STRIDE];

void bring_tiles(ivec2 from, ivec2 first, int k) {
  const int lanes = int(gl_WorkGroupSize.x), lane = int(gl_LocalInvocationID.x);
  for (int e = lane; e < TILE_ROWS * INNER; e += lanes) {
    const ivec2 at = p.x_row == 1 ? ivec2(e % TILE_ROWS, e / TILE_ROWS) : ivec2(e / INNER, e % INNER);
    const bool inside = first.x + at.x < p.rows && k + at.y < p.inner;
    const SHARED found = SHARED(x[from.x + (inside ? (first.x + at.x) * p.x_row + (k + at.y) * p.x_inner : 0)]);
    left[at.x * LEFT_STRIDE + at.y] = inside ? found : SHARED(0);
  }
  for (int e = lane; e < TILE_COLUMNS * INNER; e += lanes) {
    const ivec2 at = p.y_inner == 1 ? ivec2(e % INNER, e / INNER) : ivec2(e / TILE_COLUMNS, e % TILE_COLUMNS);
    const bool inside = first.y + at.y < p.columns && k + at.x < p.inner;
    const SHARED found = SHARED(y[from.y + (inside ? (k + at.x) * p.y_inner + (first.y + at.y) * p.y_column : 0)]);
    right[at.x * RIGHT_STRIDE + at.y] = inside ? found : SHARED(0);
  }
}

// Where x, y and the result of this work group's batch begin.
ivec3 batch_of() {
  const int outer = int(gl_WorkGroupID.z) / p.inner_batches, within = int(gl_WorkGroupID.z) % p.inner_batches;
  return ivec3(outer * p.x_batch[0] + within * p.x_batch[1], outer * p.y_batch[0] + within * p.y_batch[1],
               outer * p.out_batch[0] + within * p.out_batch[1]);
}
