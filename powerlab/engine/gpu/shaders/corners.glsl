// For work groups that take TILE_PIXELS pixels and TILE_BLOCKS blocks of outputs at a time: where a group stands, where the
// window of each pixel begins, and what lies where in it.

// Number of its lane, its tile of the outputs of its group of channels, its part of the window, its first pixel of all, the
// blocks of a window, and where its weights begin.
#define FIND_TILE                                                                                                      \
  const int lane = int(gl_LocalInvocationID.x), tiles = (p.out_blocks + TILE_BLOCKS - 1) / TILE_BLOCKS;                \
  const int tile = int(gl_WorkGroupID.y) % tiles, line = int(gl_WorkGroupID.y) / tiles;                                \
  const int group = line % p.groups, part = line / p.groups;                                                           \
  const int first = int(gl_WorkGroupID.x + gl_WorkGroupID.z * gl_NumWorkGroups.x) * TILE_PIXELS;                       \
  const int out_size = OUT_SIZE, count = p.images * out_size, depth = TAPS * p.in_blocks;                              \
  const int from = (group * tiles + tile) * depth * 4 * TILE_BLOCKS;

const int LANES = int(gl_WorkGroupSize.x);

// Where the image begins, row, column; where the pixel's results begin, or -1. Of a volume plane and row, 16 bits each.
shared ivec4 corners[TILE_PIXELS];

#ifdef VOLUME
#define PLANE(corner) (corner.y >> 16)
#define ROW(corner) (corner.y << 16 >> 16)
#define FIRST_PIXEL(corner) (corner.x + LINE(PLANE(corner), ROW(corner)) * p.in_w + corner.z)
#define FIRST_ROW(row) first_row(row)

// Where the window of a pixel begins, whose row is counted over all planes.
int first_row(int row) {
  const int plane = row / p.out_h;
  return (plane * p.stride_d - p.pad_d) << 16 | ((row - plane * p.out_h) * p.stride_h - p.pad_h) & 0xffff;
}
#else
#define FIRST_PIXEL(corner) corner.x + corner.y * p.in_w + corner.z
#define FIRST_ROW(row) row * p.stride_h - p.pad_h
#endif

void find_corners(int first, int group) {
  const int size = OUT_SIZE, last = p.images * size - 1;
  for (int m = int(gl_LocalInvocationID.x); m < TILE_PIXELS; m += LANES) {
    const int at = min(first + m, last), image = at / size, pixel = at - image * size, row = pixel / p.out_w;
    corners[m] = ivec4((image * p.groups + group) * p.in_blocks * IN_SIZE, FIRST_ROW(row),
                       (pixel - row * p.out_w) * p.stride_w - p.pad_w,
                       first + m > last ? -1 : (image * p.groups + group) * p.out_blocks * size + pixel);
  }
}

// Division of what is below 2^20, by few instructions: a GPU has none for integers. With half of the least difference in
// it, the quotient cannot be rounded across a whole number.
int quotient(int dividend, int divisor) { return int((float(dividend) + 0.5) * (1.0 / float(divisor))); }

// Where the block lies that is number ``at + more`` in the window of a pixel, tap by tap, where ``at`` is of the same tap;
// the image's first where there is none.
int place_in_tap(ivec4 corner, int at, int more, out bool inside) {
#ifdef VOLUME
  const int tap = quotient(at, p.in_blocks), line = quotient(tap, p.kernel_w), tap_plane = quotient(line, p.kernel_h);
  const int z = PLANE(corner) + tap_plane * p.dilation_d, tap_row = line - tap_plane * p.kernel_h;
  const int y = ROW(corner) + tap_row * p.dilation_h, x_at = corner.z + (tap - line * p.kernel_w) * p.dilation_w;
  inside = tap_plane < p.kernel_d && uint(z) < uint(p.in_d) && uint(y) < uint(p.in_h) && uint(x_at) < uint(p.in_w);
  return corner.x + (inside ? (at + more - tap * p.in_blocks) * IN_SIZE + LINE(z, y) * p.in_w + x_at : 0);
#else
  const int tap = quotient(at, p.in_blocks), tap_row = quotient(tap, p.kernel_w);
  const int y = corner.y + tap_row * p.dilation_h, x_at = corner.z + (tap - tap_row * p.kernel_w) * p.dilation_w;
  inside = tap_row < p.kernel_h && uint(y) < uint(p.in_h) && uint(x_at) < uint(p.in_w);
  return corner.x + (inside ? (at + more - tap * p.in_blocks) * IN_SIZE + y * p.in_w + x_at : 0);
#endif
}

int place_of(ivec4 corner, int at, out bool inside) { return place_in_tap(corner, at, 0, inside); }
