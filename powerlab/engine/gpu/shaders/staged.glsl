// How a work group goes through the window of its pixels, DEPTH_BLOCKS blocks of inputs a step: while lanes multiply what
// lies in one half of shared memory, what they multiply next is on its way to registers, and from there to the other half.
// AHEAD steps are on their way at a time: 2 wait less for memory, and need more registers.
//
// Before this: VALUES and FACTORS, how many of each a step brings along; VALUE and FACTOR, their types as memory has them,
// and PLACE, that of where a value lies: within the image or not. Before STEPS, for number ``e`` of them:
// find_value(corner, k, e, end, place) and FIND_FACTOR(k, e) in the step from block ``k`` on, KEEP_VALUE(to, e) and
// KEEP_FACTOR(to, e), where they go in a half of shared memory, as kept_value(value, place) and KEPT_FACTOR(factor); and
// MULTIPLY(from), what lanes do with a half. Nothing looks at a number that was fetched before it is kept: who did would
// wait for memory instead of multiplying meanwhile.
//
// With DIRECT_FACTORS factors do not pass through shared memory, and there are no FACTORS: LOAD_FACTORS(set, k) brings
// those of a step into registers, one step before MULTIPLY(set) takes them from there. Registers have no numbers that are
// computed, so steps come in pairs.

layout(constant_id = AHEAD_ID) const int AHEAD = 1;

const int VALUES_EACH = (VALUES + LANES - 1) / LANES;

#ifdef DIRECT_FACTORS
#define DECLARE_FACTORS
#define FETCH_FACTORS(set, k)
#define KEEP_FACTORS(set, to)
#define LOAD_NEXT(set, k, end) \
  if (k < end) {               \
    LOAD_FACTORS(set, k)       \
  }
#else
const int FACTORS_EACH = (FACTORS + LANES - 1) / LANES;
#define DECLARE_FACTORS FACTOR factor[AHEAD * FACTORS_EACH];
#define FETCH_FACTORS(set, k)                                                        \
  [[unroll]] for (int i = 0; i < FACTORS_EACH; ++i) {                                \
    factor[(set) * FACTORS_EACH + i] = FIND_FACTOR((k), lane + i * LANES);           \
  }
#define KEEP_FACTORS(set, to)                                                                                    \
  [[unroll]] for (int i = 0; i < FACTORS_EACH; ++i) {                                                            \
    const int e = lane + i * LANES;                                                                              \
    if (FACTORS % LANES == 0 || e < FACTORS) KEEP_FACTOR(to, e) = KEPT_FACTOR(factor[(set) * FACTORS_EACH + i]); \
  }
#define LOAD_NEXT(set, k, end)
#endif

// Into the registers of one of AHEAD steps.
#define FETCH(set, k, end)                                                                                         \
  [[unroll]] for (int i = 0; i < VALUES_EACH; ++i) {                                                               \
    value[(set) * VALUES_EACH + i] =                                                                               \
        find_value(corner[i], (k), lane + i * LANES, end, place[(set) * VALUES_EACH + i]);                         \
  }                                                                                                                \
  FETCH_FACTORS(set, k)
#define KEEP(set, to)                                                                                              \
  [[unroll]] for (int i = 0; i < VALUES_EACH; ++i) {                                                               \
    const int e = lane + i * LANES;                                                                                \
    if (VALUES % LANES == 0 || e < VALUES) {                                                                       \
      KEEP_VALUE(to, e) = kept_value(value[(set) * VALUES_EACH + i], place[(set) * VALUES_EACH + i]);              \
    }                                                                                                              \
  }                                                                                                                \
  KEEP_FACTORS(set, to)

// The step from block ``k`` on, which lies in the half ``now``, as its registers did in the set of this number.
#define STEP(now, k, end)                                                                                          \
  if (k + AHEAD * DEPTH_BLOCKS < end) {                                                                            \
    FETCH(now * (AHEAD - 1), k + AHEAD * DEPTH_BLOCKS, end)                                                        \
  }                                                                                                                \
  LOAD_NEXT(1 - now, k + DEPTH_BLOCKS, end)                                                                        \
  MULTIPLY(now)                                                                                                    \
  if (k + DEPTH_BLOCKS < end) {                                                                                    \
    KEEP((1 - now) * (AHEAD - 1), (1 - now))                                                                       \
  }                                                                                                                \
  barrier();

// The steps from ``first_block`` on, two at a time.
#define PAIRS_OF_STEPS(first_block, end)                                                                           \
  for (int k = first_block; k < end; k += 2 * DEPTH_BLOCKS) {                                                      \
    const int second = k + DEPTH_BLOCKS;                                                                           \
    STEP(0, k, end)                                                                                                \
    if (second < end) {                                                                                            \
      STEP(1, second, end)                                                                                         \
    }                                                                                                              \
  }
#ifdef DIRECT_FACTORS
#define ALL_STEPS(first_block, end) PAIRS_OF_STEPS(first_block, end)
#else
#define ALL_STEPS(first_block, end)                                                                                \
  if (AHEAD == 1) {                                                                                                \
    int now = 0;                                                                                                   \
    for (int k = first_block; k < end; k += DEPTH_BLOCKS) {                                                        \
      STEP(now, k, end)                                                                                            \
      now = 1 - now;                                                                                               \
    }                                                                                                              \
  } else {                                                                                                         \
    PAIRS_OF_STEPS(first_block, end)                                                                               \
  }
#endif

// Takes the blocks from ``first_block`` on, up to ``end``. Values of a pixel lie TILE_PIXELS apart.
#define STEPS(first_block, end)                                                                                    \
  ivec4 corner[VALUES_EACH];                                                                                       \
  VALUE value[AHEAD * VALUES_EACH];                                                                                \
  PLACE place[AHEAD * VALUES_EACH];                                                                                \
  DECLARE_FACTORS                                                                                                  \
  [[unroll]] for (int i = 0; i < VALUES_EACH; ++i) corner[i] = corners[(lane + i * LANES) % TILE_PIXELS];          \
  FETCH(0, first_block, end)                                                                                       \
  if (AHEAD > 1 && first_block + DEPTH_BLOCKS < end) {                                                             \
    FETCH(AHEAD - 1, first_block + DEPTH_BLOCKS, end)                                                              \
  }                                                                                                                \
  LOAD_NEXT(0, first_block, end)                                                                                   \
  KEEP(0, 0)                                                                                                       \
  barrier();                                                                                                       \
  ALL_STEPS(first_block, end)
