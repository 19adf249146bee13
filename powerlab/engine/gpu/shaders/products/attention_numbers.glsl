// Operands of attention, softmax(factor * q k + mask) v, and where those of a work group's batch begin.
layout(binding = 0) writeonly buffer Out { T1 made[]; };
layout(binding = 1) readonly buffer Queries { T1 q[]; };
layout(binding = 2) readonly buffer Keys { T1 k[]; };
layout(binding = 3) readonly buffer Values { T1 v[]; };
layout(binding = 4) readonly buffer Mask { T1 mask[]; };

layout(push_constant) uniform Push {
  float factor, out_factor;
  int rows, keys, inner, width, inner_batches;  // the batch is two axes, the second of this size
  int q_batch[2], q_row, q_inner, k_batch[2], k_inner, k_key, v_batch[2], v_key, v_column;
  int mask_batch[2], mask_row, mask_key, out_batch[2], out_row, out_column;
} p;

const float NOTHING = -1.0 / 0.0;

#define FIND_BATCH                                                                                             \
  const int outer = int(gl_WorkGroupID.y) / p.inner_batches, within = int(gl_WorkGroupID.y) % p.inner_batches; \
  const int from_q = outer * p.q_batch[0] + within * p.q_batch[1];                                             \
  const int from_k = outer * p.k_batch[0] + within * p.k_batch[1];                                             \
  const int from_v = outer * p.v_batch[0] + within * p.v_batch[1];                                             \
  const int from_mask = outer * p.mask_batch[0] + within * p.mask_batch[1];
