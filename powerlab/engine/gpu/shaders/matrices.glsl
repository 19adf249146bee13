// Products of matrices by the units for them (GL_KHR_cooperative_matrix), M pixels by K inputs times K inputs by N outputs.
// A subgroup has PIXELS times BLOCKS sums; a work group is ACROSS subgroups along pixels and DOWN along outputs, and
// DEPTH matrices along inputs lie in shared memory at a time. M, N and K are of the device's list. Specialization constants
// begin at FIRST_ID.
#include "cooperative.glsl"

layout(constant_id = FIRST_ID) const int BLOCKS = 2;
layout(constant_id = FIRST_ID + 1) const int PIXELS = 2;
layout(constant_id = FIRST_ID + 2) const int ACROSS = 2;
layout(constant_id = FIRST_ID + 3) const int DOWN = 2;
layout(constant_id = FIRST_ID + 4) const int DEPTH = 1;
layout(constant_id = FIRST_ID + 5) const int M = 16;
layout(constant_id = FIRST_ID + 6) const int N = 16;
layout(constant_id = FIRST_ID + 7) const int K = 16;

const int TILE_PIXELS = ACROSS * PIXELS * M, TILE_BLOCKS = DOWN * BLOCKS * N / 4, DEPTH_BLOCKS = DEPTH * K / 4;
const int SUM_VECTORS = M * N / 4;

const int SUBGROUP = int(gl_WorkGroupSize.x) / (ACROSS * DOWN);

// Vectors of four sums that are a lane's, of BLOCKS matrices; the pixel and the block of outputs of number ``v`` of them,
// within the work group, ``i`` being the row of matrices.
const int LANE_VECTORS = BLOCKS * SUM_VECTORS / SUBGROUP;
#define LANE_VECTOR(v) (int(gl_SubgroupInvocationID) + (v) * SUBGROUP)
#define OWN_PIXEL(i, v) ((across * PIXELS + (i)) * M + LANE_VECTOR(v) % SUM_VECTORS % M)
#define OWN_BLOCK(v) ((down * BLOCKS + LANE_VECTOR(v) / SUM_VECTORS) * N / 4 + LANE_VECTOR(v) % SUM_VECTORS / M)

// Puts the sums of a subgroup, BLOCKS matrices at a time, where its lanes see them: into RESULTS, room for BLOCKS *
// SUM_VECTORS vectors of each subgroup; USE(i, v, vector) gets each.
#define FOR_ALL_SUMS(RESULTS, USE)                                                                                   \
  [[unroll]] for (int i = 0; i < PIXELS; ++i) {                                                                      \
    [[unroll]] for (int b = 0; b < BLOCKS; ++b) {                                                                    \
      coopMatStore(sums[i * BLOCKS + b], RESULTS, (subgroup * BLOCKS + b) * SUM_VECTORS, N / 4,                      \
                   gl_CooperativeMatrixLayoutRowMajor);                                                              \
    }                                                                                                                \
    subgroupBarrier();                                                                                               \
    [[unroll]] for (int v = 0; v < LANE_VECTORS; ++v) {                                                              \
      const int e = LANE_VECTOR(v), in_matrix = e % SUM_VECTORS;                                                     \
      USE(i, v, RESULTS[subgroup * BLOCKS * SUM_VECTORS + e - in_matrix + in_matrix % M * (N / 4) + in_matrix / M])  \
    }                                                                                                                \
    subgroupBarrier();                                                                                               \
  }
