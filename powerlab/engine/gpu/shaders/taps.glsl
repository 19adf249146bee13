// For lanes that take PIXELS pixels each, as far apart as lanes are many: where the windows of these begin, and what lies
// under a tap of them. What is written here are parts of functions.

#ifdef VOLUME
#define OF_VOLUME(code) code
#else
#define OF_VOLUME(code)
#endif

// Of each pixel its image, its number in it, and row and column of x where its window begins; of a volume also the plane.
#define DECLARE_PIXELS                                             \
  int image[PIXELS], row[PIXELS], column[PIXELS], pixel[PIXELS];   \
  OF_VOLUME(int plane[PIXELS];)

#define FIND_PIXEL(i)                                                             \
  const int at = min(first + i * lanes + int(gl_LocalInvocationID.x), count - 1); \
  image[i] = at / out_size;                                                       \
  pixel[i] = at - image[i] * out_size;                                            \
  row[i] = pixel[i] / p.out_w;                                                    \
  column[i] = (pixel[i] - row[i] * p.out_w) * p.stride_w - p.pad_w;               \
  OF_VOLUME(plane[i] = row[i] / p.out_h;                                          \
            row[i] -= plane[i] * p.out_h;                                         \
            plane[i] = plane[i] * p.stride_d - p.pad_d;)                          \
  row[i] = row[i] * p.stride_h - p.pad_h;

// Goes over the planes and rows of a window.
#define EACH_TAP_ROW                                                              \
  OF_VOLUME(for (int tap_plane = 0; tap_plane < p.kernel_d; ++tap_plane))         \
  for (int tap_row = 0; tap_row < p.kernel_h; ++tap_row)

// Whether a tap of a pixel lies inside, and where its first block does, or that of the image.
#define FIND_TAP(i)                                                                                    \
  const int y = row[i] + tap_row * p.dilation_h, x_at = column[i] + tap_column * p.dilation_w;         \
  inside[i] = y >= 0 && y < p.in_h && x_at >= 0 && x_at < p.in_w;                                      \
  OF_VOLUME(const int z = plane[i] + tap_plane * p.dilation_d;                                         \
            inside[i] = inside[i] && z >= 0 && z < p.in_d;)                                            \
  at[i] = (image[i] * p.groups + group) * p.in_blocks * in_size + (inside[i] ? LINE(z, y) * p.in_w + x_at : 0);
