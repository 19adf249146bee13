// How a work group goes through the window of its pixels, DEPTH_BLOCKS blocks of inputs a step: while lanes multiply what
// lies in one half of shared memory, what they multiply next is on its way to registers, and from there to the other half.
//
// Before this: VALUES and FACTORS, how many of each a step brings along; VALUE and FACTOR, their types. Before STEPS, for
// number ``e`` of them: find_value(corner, k, e, end) and FIND_FACTOR(k, e) in the step from block ``k`` on, KEEP_VALUE(to, e)
// and KEEP_FACTOR(to, e), where they go in a half of shared memory; and MULTIPLY(from), what lanes do with a half.

const int VALUES_EACH = (VALUES + LANES - 1) / LANES, FACTORS_EACH = (FACTORS + LANES - 1) / LANES;

#define FETCH(k, end)                                                                                              \
  [[unroll]] for (int i = 0; i < VALUES_EACH; ++i) value[i] = find_value(corner[i], k, lane + i * LANES, end);     \
  [[unroll]] for (int i = 0; i < FACTORS_EACH; ++i) factor[i] = FIND_FACTOR(k, lane + i * LANES);
#define KEEP(to)                                                                                                   \
  [[unroll]] for (int i = 0; i < VALUES_EACH; ++i) {                                                               \
    const int e = lane + i * LANES;                                                                                \
    if (VALUES % LANES == 0 || e < VALUES) KEEP_VALUE(to, e) = value[i];                                           \
  }                                                                                                                \
  [[unroll]] for (int i = 0; i < FACTORS_EACH; ++i) {                                                              \
    const int e = lane + i * LANES;                                                                                \
    if (FACTORS % LANES == 0 || e < FACTORS) KEEP_FACTOR(to, e) = factor[i];                                       \
  }

// Takes the blocks from ``first_block`` on, up to ``end``. Values of a pixel lie TILE_PIXELS apart.
#define STEPS(first_block, end)                                                                                    \
  ivec4 corner[VALUES_EACH];                                                                                       \
  VALUE value[VALUES_EACH];                                                                                        \
  FACTOR factor[FACTORS_EACH];                                                                                     \
  [[unroll]] for (int i = 0; i < VALUES_EACH; ++i) corner[i] = corners[(lane + i * LANES) % TILE_PIXELS];          \
  FETCH(first_block, end)                                                                                          \
  KEEP(0)                                                                                                          \
  barrier();                                                                                                       \
  int now = 0;                                                                                                     \
  for (int k = first_block; k < end; k += DEPTH_BLOCKS) {                                                          \
    const int next = k + DEPTH_BLOCKS;                                                                             \
    if (next < end) {                                                                                              \
      FETCH(next, end)                                                                                             \
    }                                                                                                              \
    MULTIPLY(now)                                                                                                  \
    now ^= 1;                                                                                                      \
    if (next < end) {                                                                                              \
      KEEP(now)                                                                                                    \
    }                                                                                                              \
    barrier();                                                                                                     \
  }
