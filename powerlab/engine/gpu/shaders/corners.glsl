// For work groups that take TILE_PIXELS pixels at a time: where the window of each begins, and what lies where in it.
shared ivec3 corners[TILE_PIXELS];  // where the image begins, row, column

void find_corners(int first, int group) {
  const int size = p.out_h * p.out_w, last = p.images * size - 1;
  for (int m = int(gl_LocalInvocationID.x); m < TILE_PIXELS; m += int(gl_WorkGroupSize.x)) {
    const int at = min(first + m, last), image = at / size, pixel = at - image * size, row = pixel / p.out_w;
    corners[m] = ivec3((image * p.groups + group) * p.in_blocks * p.in_h * p.in_w, row * p.stride_h - p.pad_h,
                       (pixel - row * p.out_w) * p.stride_w - p.pad_w);
  }
}

// Where the block lies that is number ``at`` in the window of a pixel, tap by tap; the image's first where there is none.
int place_of(int m, int at, out bool inside) {
  const ivec3 corner = corners[m];
  const int tap = at / p.in_blocks, tap_row = tap / p.kernel_w;
  const int y = corner.y + tap_row * p.dilation_h, x_at = corner.z + (tap - tap_row * p.kernel_w) * p.dilation_w;
  inside = tap_row < p.kernel_h && y >= 0 && y < p.in_h && x_at >= 0 && x_at < p.in_w;
  return corner.x + (inside ? (at - tap * p.in_blocks) * p.in_h * p.in_w + y * p.in_w + x_at : 0);
}
