// Products of matrices by the units for them (GL_KHR_cooperative_matrix), M pixels by K inputs times K inputs by N outputs.
// A subgroup has PIXELS times BLOCKS sums; a work group is ACROSS subgroups along pixels and DOWN along outputs, and
// DEPTH matrices along inputs lie in shared memory at a time. M, N and K are of the device's list. Specialization constants
// begin at FIRST_ID.
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_EXT_control_flow_attributes : require

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

// Puts the sums of a subgroup, BLOCKS matrices at a time, where its lanes see them: into RESULTS, room for BLOCKS *
// SUM_VECTORS vectors of each subgroup; USE(pixel, block, vector) gets each, counted within the work group.
#define FOR_ALL_SUMS(RESULTS, USE)                                                                                   \
  [[unroll]] for (int i = 0; i < PIXELS; ++i) {                                                                      \
    [[unroll]] for (int b = 0; b < BLOCKS; ++b) {                                                                    \
      coopMatStore(sums[i * BLOCKS + b], RESULTS, (subgroup * BLOCKS + b) * SUM_VECTORS, N / 4,                      \
                   gl_CooperativeMatrixLayoutRowMajor);                                                              \
    }                                                                                                                \
    subgroupBarrier();                                                                                               \
    [[unroll]] for (int e = int(gl_SubgroupInvocationID); e < BLOCKS * SUM_VECTORS; e += SUBGROUP) {                 \
      const int b = e / SUM_VECTORS, v = e % SUM_VECTORS;                                                            \
      USE((across * PIXELS + i) * M + v % M, (down * BLOCKS + b) * N / 4 + v / M,                                    \
          RESULTS[(subgroup * BLOCKS + b) * SUM_VECTORS + v % M * (N / 4) + v / M])                                  \
    }                                                                                                                \
    subgroupBarrier();                                                                                               \
  }
