// Attention, softmax(factor * q k + mask) v, without the matrix of scores: keys pass by in tiles, and what was summed with
// a smaller maximum is scaled down (M. Milakov and N. Gimelshein, 2018; T. Dao et al., 2022). A work group takes ROWS
// queries; its lanes are keys of a tile, then columns of the result. With BROADCAST 8 lanes load the numbers of 8 queries
// for each other: see conv.comp.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_ballot : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#include "common.glsl"

layout(constant_id = 1) const int ROWS = 8;
layout(constant_id = 2) const int ROOM = 64;       // for the numbers of a query
layout(constant_id = 3) const int COLUMNS = 2;     // of the result, a lane
layout(constant_id = 4) const bool MASKED = false;
layout(constant_id = 5) const bool ZEROS = false;  // whether a row without any key is zeros, not not-a-number
layout(constant_id = 6) const int LANES = 32;      // as constant 0

layout(constant_id = 7) const bool BROADCAST = false;

#include "attention_numbers.glsl"

#define FOR_8_ROWS(USE) USE(0) USE(1) USE(2) USE(3) USE(4) USE(5) USE(6) USE(7)
#define USE_QUERY(r) \
  if (r < ROWS) own[r] += subgroupBroadcast(loaded, r) * right;
#define USE_SCORE(r) \
  if (r < ROWS) sums[r * COLUMNS + c] += subgroupBroadcast(loaded, r) * right;

shared float queries[ROWS * ROOM];
shared float scores[ROWS * LANES];
shared float most[ROWS], total[ROWS], kept[ROWS];

void main() {
  const int loads = min(int(gl_SubgroupInvocationID) & 7, ROWS - 1);
  const int lane = int(gl_LocalInvocationID.x), first = int(gl_WorkGroupID.x) * ROWS;
  FIND_BATCH
  for (int e = lane; e < ROWS * p.inner; e += LANES) {
    const int row = min(first + e / p.inner, p.rows - 1);
    queries[e / p.inner * ROOM + e % p.inner] = p.factor * float(q[from_q + row * p.q_row + e % p.inner * p.q_inner]);
  }
  for (int r = lane; r < ROWS; r += LANES) {
    most[r] = NOTHING;
    total[r] = 0;
  }
  float sums[ROWS * COLUMNS];
  [[unroll]] for (int s = 0; s < ROWS * COLUMNS; ++s) sums[s] = 0;
  barrier();

  for (int start = 0; start < p.keys; start += LANES) {
    const int key = min(start + lane, p.keys - 1);
    float own[ROWS];
    [[unroll]] for (int r = 0; r < ROWS; ++r) own[r] = 0;
    for (int i = 0; i < p.inner; ++i) {
      const float right = float(k[from_k + i * p.k_inner + key * p.k_key]);
      if (BROADCAST) {
        const float loaded = queries[loads * ROOM + i];
        FOR_8_ROWS(USE_QUERY)
      } else {
        [[unroll]] for (int r = 0; r < ROWS; ++r) own[r] += queries[r * ROOM + i] * right;
      }
    }
    [[unroll]] for (int r = 0; r < ROWS; ++r) {
      const int row = min(first + r, p.rows - 1);
      if (MASKED) own[r] += float(mask[from_mask + row * p.mask_row + key * p.mask_key]);
      scores[r * LANES + lane] = start + lane < p.keys ? own[r] : NOTHING;
    }
    barrier();
    for (int r = int(gl_SubgroupID); r < ROWS; r += int(gl_NumSubgroups)) {
      const float before = most[r];
      float largest = before, sum = 0;
      for (int j = int(gl_SubgroupInvocationID); j < LANES; j += int(gl_SubgroupSize)) {
        largest = max(largest, scores[r * LANES + j]);
      }
      largest = subgroupMax(largest);
      for (int j = int(gl_SubgroupInvocationID); j < LANES; j += int(gl_SubgroupSize)) {
        const float score = largest == NOTHING ? 0.0 : exp(scores[r * LANES + j] - largest);
        scores[r * LANES + j] = score;
        sum += score;
      }
      sum = subgroupAdd(sum);
      if (subgroupElect()) {  // all lanes have read what lay here: the maximum that they share depends on it
        const float stays = before == NOTHING ? 0.0 : exp(before - largest);
        most[r] = largest;
        kept[r] = stays;
        total[r] = total[r] * stays + sum;
      }
    }
    barrier();
    [[unroll]] for (int s = 0; s < ROWS * COLUMNS; ++s) sums[s] *= kept[s / COLUMNS];
    const int count = min(LANES, p.keys - start);
    for (int j = 0; j < count; ++j) {
      const float loaded = scores[loads * LANES + j];
      [[unroll]] for (int c = 0; c < COLUMNS; ++c) {
        const int column = min(c * LANES + lane, p.width - 1);
        const float right = float(v[from_v + (start + j) * p.v_key + column * p.v_column]);
        if (BROADCAST) {
          FOR_8_ROWS(USE_SCORE)
        } else {
          [[unroll]] for (int r = 0; r < ROWS; ++r) sums[r * COLUMNS + c] += scores[r * LANES + j] * right;
        }
      }
    }
    barrier();
  }

  const int to = outer * p.out_batch[0] + within * p.out_batch[1];
  [[unroll]] for (int r = 0; r < ROWS; ++r) {
    const float divisor = ZEROS && total[r] == 0 ? 1.0 : total[r];
    [[unroll]] for (int c = 0; c < COLUMNS; ++c) {
      const int column = c * LANES + lane;
      if (first + r < p.rows && column < p.width) {
        made[to + (first + r) * p.out_row + column * p.out_column] = T1(p.out_factor * sums[r * COLUMNS + c] / divisor);
      }
    }
  }
}
