// A convolution by the units for products of matrices, of 16-bit numbers with sums in 32: what tiled.glsl computes, with
// the same operands, all of them read 8 numbers, 16 bytes, at a time.
// Weights: [group][tile][tap][in block][4 inputs][TILE_BLOCKS]. With DIRECT_FACTORS the units take them from there, and
// they are matrices, column by column: [group][tile][K inputs of a window][N outputs of a tile][N][K], the windows filled
// up with zeros to whole steps of DEPTH matrices.
#include "finish.glsl"
#include "window.glsl"
#define FIRST_ID 3
#define AHEAD_ID 13
#include "matrices.glsl"

layout(constant_id = 2) const bool RESIDUAL = false;
layout(constant_id = 11) const bool POINT = false;  // whether windows are one pixel, always inside
layout(constant_id = 12) const int RUN = 1;         // neighbouring blocks that are of one tap: 1, 2 or all of a step

layout(binding = 0) restrict writeonly buffer Out { T4 made[]; };
layout(binding = 1) restrict readonly buffer X { uvec2 x[]; };
layout(binding = 2) restrict readonly buffer Weights { uvec4 weights[]; };
layout(binding = 3) restrict readonly buffer Bias { vec4 bias[]; };
layout(binding = 4) restrict readonly buffer Residual { RAW4 residual[]; };

layout(push_constant) uniform Push {
  FINISH_NUMBERS;
  WINDOW_NUMBERS;
  int parts, part_blocks;  // blocks of a part of the window
} p;

#include "corners.glsl"
#include "parts.glsl"

const int PAIRS = DEPTH_BLOCKS / 2, VALUE_STRIDE = PAIRS + 1;  // of blocks; other banks a row
const int VALUES = TILE_PIXELS * PAIRS, VALUE_ROOM = TILE_PIXELS * VALUE_STRIDE;
#ifdef DIRECT_FACTORS
const int FACTOR_ROOM = 0;
#else
const int WIDTH = TILE_BLOCKS / 2, FACTOR_STRIDE = WIDTH + 1;
const int FACTORS = DEPTH_BLOCKS * 4 * WIDTH, FACTOR_ROOM = DEPTH_BLOCKS * 4 * FACTOR_STRIDE;
#define FACTOR uvec4
#define KEPT_FACTOR(factor) factor
#endif
const int ROOM = 2 * (VALUE_ROOM + FACTOR_ROOM), RESULT_ROOM = ACROSS * DOWN * BLOCKS * SUM_VECTORS;
#define VALUE uvec4
#define PLACE bvec2
#include "staged.glsl"

// Twice [pixel][8 inputs], then twice [input][8 outputs] if factors are there; at the end results in their place.
shared uvec4 staged[ROOM > RESULT_ROOM ? ROOM : RESULT_ROOM];
#define KEEP_VALUE(to, e) staged[to * VALUE_ROOM + e % TILE_PIXELS * VALUE_STRIDE + e / TILE_PIXELS]

// Two blocks of a pixel.
uvec4 find_value(ivec4 corner, int k, int e, int end, out bvec2 inside) {
  const int more = e / TILE_PIXELS * 2, at = k + more, in_size = IN_SIZE;
  int place[2];
  if (POINT) {
    const int pixel = FIRST_PIXEL(corner);
    inside = bvec2(at < end, at + 1 < end);
    place[0] = pixel + (inside[0] ? at * in_size : 0);
    place[1] = pixel + (inside[1] ? (at + 1) * in_size : 0);
  } else if (RUN > 1) {
    bool within;
    place[0] = RUN > 2 ? place_in_tap(corner, k, more, within) : place_of(corner, at, within);
    place[1] = place[0] + in_size;
    inside = bvec2(within);
  } else {
    bool first, second;
    place[0] = place_of(corner, at, first);
    place[1] = place_of(corner, at + 1, second);
    inside = bvec2(first && at < end, second && at + 1 < end);
  }
  return uvec4(x[place[0]], x[place[1]]);
}

uvec4 kept_value(uvec4 found, bvec2 inside) { return mix(uvec4(0), found, inside.xxyy); }

#ifdef DIRECT_FACTORS
// Matrix ``b`` of a subgroup's, ``d`` matrices of inputs from block ``k`` on; and where it is in registers.
#define MATRIX(k, d, b) ((from_matrix + ((k) * 4 / K + d) * DOWN * BLOCKS + down * BLOCKS + b) * (N * K / 8))
#define RIGHT(set, d, b) right[((set) * DEPTH + d) * BLOCKS + b]
#define LOAD_FACTORS(set, k)                                                                                 \
  [[unroll]] for (int d = 0; d < DEPTH; ++d) {                                                               \
    [[unroll]] for (int b = 0; b < BLOCKS; ++b) {                                                            \
      coopMatLoad(RIGHT(set, d, b), weights, MATRIX(k, d, b), K / 8, gl_CooperativeMatrixLayoutColumnMajor); \
    }                                                                                                        \
  }
#define FIND_RIGHT(now, d, b)
#else
#define KEEP_FACTOR(to, e) staged[2 * VALUE_ROOM + to * FACTOR_ROOM + e / WIDTH * FACTOR_STRIDE + e % WIDTH]
#define FIND_FACTOR(k, e) weights[min(from / 2 + k * 4 * WIDTH + e, last)]  // beyond the last one, values are 0
#define RIGHT(now, d, b) right
#define FIND_RIGHT(now, d, b)                                                                                          \
  coopmat<float16_t, gl_ScopeSubgroup, K, N, gl_MatrixUseB> right;                                                     \
  coopMatLoad(right, staged,                                                                                           \
              2 * VALUE_ROOM + now * FACTOR_ROOM + d * K * FACTOR_STRIDE + (down * BLOCKS + b) * N / 8, FACTOR_STRIDE, \
              gl_CooperativeMatrixLayoutRowMajor);
#endif

#define MULTIPLY(now)                                                                                                  \
  [[unroll]] for (int d = 0; d < DEPTH; ++d) {                                                                         \
    coopmat<float16_t, gl_ScopeSubgroup, M, K, gl_MatrixUseA> left[PIXELS];                                            \
    [[unroll]] for (int i = 0; i < PIXELS; ++i) {                                                                      \
      coopMatLoad(left[i], staged, now * VALUE_ROOM + (across * PIXELS + i) * M * VALUE_STRIDE + d * K / 8,            \
                  VALUE_STRIDE, gl_CooperativeMatrixLayoutRowMajor);                                                   \
    }                                                                                                                  \
    [[unroll]] for (int b = 0; b < BLOCKS; ++b) {                                                                      \
      FIND_RIGHT(now, d, b)                                                                                            \
      [[unroll]] for (int i = 0; i < PIXELS; ++i) {                                                                    \
        sums[i * BLOCKS + b] = coopMatMulAdd(left[i], RIGHT(now, d, b), sums[i * BLOCKS + b]);                         \
      }                                                                                                                \
    }                                                                                                                  \
  }

void main() {
  FIND_TILE
  const int subgroup = int(gl_SubgroupID), across = subgroup % ACROSS, down = subgroup / ACROSS;
  const ivec2 own = part_of(part, depth);
#ifdef DIRECT_FACTORS
  const int from_matrix = (group * tiles + tile) * ((depth + DEPTH_BLOCKS - 1) / DEPTH_BLOCKS) * DEPTH * DOWN * BLOCKS;
  coopmat<float16_t, gl_ScopeSubgroup, K, N, gl_MatrixUseB> right[2 * DEPTH * BLOCKS];
#else
  const int last = from / 2 + depth * 4 * WIDTH - 1;
#endif

  coopmat<float, gl_ScopeSubgroup, M, N, gl_MatrixUseAccumulator> sums[PIXELS * BLOCKS];
  [[unroll]] for (int s = 0; s < PIXELS * BLOCKS; ++s) {
    sums[s] = coopmat<float, gl_ScopeSubgroup, M, N, gl_MatrixUseAccumulator>(0.0);
  }
  find_corners(first, group);
  barrier();
  STEPS(own.x, own.y)

  const int all = p.images * p.groups * p.out_blocks * out_size, first_block = tile * TILE_BLOCKS;
  vec4 shifts[LANE_VECTORS];
  RAW4 added[PIXELS * LANE_VECTORS];
  if (p.parts == 1) {
    [[unroll]] for (int v = 0; v < LANE_VECTORS; ++v) {
      shifts[v] = bias[(group * tiles + tile) * TILE_BLOCKS + OWN_BLOCK(v)];
    }
    [[unroll]] for (int s = 0; RESIDUAL && s < PIXELS * LANE_VECTORS; ++s) {
      const int v = s % LANE_VECTORS, block = min(first_block + OWN_BLOCK(v), p.out_blocks - 1);
      added[s] = residual[max(corners[OWN_PIXEL(s / LANE_VECTORS, v)].w, 0) + block * out_size];
    }
  }
#define PUT(i, v, sum)                                                                                  \
  const int to = corners[OWN_PIXEL(i, v)].w, block = first_block + OWN_BLOCK(v);                        \
  if (to >= 0 && block < p.out_blocks) {                                                                \
    put(part, to + block * out_size, all, uintBitsToFloat(sum), shifts[v], added[i * LANE_VECTORS + v]); \
  }
  FOR_ALL_SUMS(staged, PUT)
}
