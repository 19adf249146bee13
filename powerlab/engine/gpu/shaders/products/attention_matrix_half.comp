// What attention.comp computes, by the units for products of matrices: 16-bit numbers, scores and sums in 32 bits. A work
// group takes SUBGROUPS * M queries, a subgroup M of them, and KEYS keys at a time, which all of them share.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "common.glsl"
#include "cooperative.glsl"

layout(constant_id = 1) const int SUBGROUPS = 4;
layout(constant_id = 2) const int KEYS = 64;
layout(constant_id = 3) const int INNER = 64;      // of a query and a key, filled up to whole matrices
layout(constant_id = 4) const int WIDTH = 64;      // of a value, likewise
layout(constant_id = 5) const bool MASKED = false;
layout(constant_id = 6) const bool ZEROS = false;  // whether a row without any key is zeros, not not-a-number
layout(constant_id = 7) const bool WIDE = false;   // whether queries, keys and values can be read 8 numbers at a time
layout(constant_id = 8) const int M = 16;
layout(constant_id = 9) const int N = 16;
layout(constant_id = 10) const int K = 16;

#include "attention_numbers.glsl"
layout(binding = 1) readonly buffer WideQueries { uvec4 wide_q[]; };
layout(binding = 2) readonly buffer WideKeys { uvec4 wide_k[]; };
layout(binding = 3) readonly buffer WideValues { uvec4 wide_v[]; };

const int LANES = int(gl_WorkGroupSize.x), SUBGROUP = LANES / SUBGROUPS;
const int QUERY = (KEYS > INNER ? KEYS : INNER) / 4 + 2, KEY = INNER / 4 + 2, VALUE = WIDTH / 4 + 2;
const int SCORE = (KEYS > WIDTH ? KEYS : WIDTH) / 4 + 1;
const int SHARING = SUBGROUP > M ? SUBGROUP / M : 1;                              // lanes of a query
const int SUMS = (M * WIDTH / 4 + SUBGROUP - 1) / SUBGROUP;            // of a lane

// Lines of vectors, each with room at its end so that neighbours are in other banks.
shared f16vec4 queries[SUBGROUPS * M * QUERY];  // then the weights of keys
shared f16vec4 keys[KEYS * KEY];
shared f16vec4 values[KEYS * VALUE];
shared vec4 scores[SUBGROUPS * M * SCORE];  // then what keys add to the result
shared float most[SUBGROUPS * M], total[SUBGROUPS * M], kept[SUBGROUPS * M];

// Brings lines of a matrix into shared memory, 8 numbers at a time, with zeros outside; neighbouring lanes read what lies
// side by side.
#define BRING(TO, STRIDE, LINES, EIGHTHS, FROM, WIDE_FROM, begin, first_line, count, size, line_step, step)            \
  for (int e = lane; e < (LINES) * (EIGHTHS); e += LANES) {                                                            \
    const bool along = WIDE || step == 1;                                                                              \
    const int line = along ? e / (EIGHTHS) : e % (LINES), at = 8 * (along ? e % (EIGHTHS) : e / (LINES));              \
    const bool there = first_line + line < count;                                                                      \
    const int from = begin + (there ? first_line + line : 0) * line_step;                                              \
    f16vec4 low, high;                                                                                                 \
    if (WIDE) {                                                                                                        \
      const bool inside = there && at < size;                                                                          \
      const uvec4 found = WIDE_FROM[(from + (inside ? at : 0)) / 8];                                                   \
      low = inside ? f16vec4(unpackFloat2x16(found.x), unpackFloat2x16(found.y)) : f16vec4(0);                         \
      high = inside ? f16vec4(unpackFloat2x16(found.z), unpackFloat2x16(found.w)) : f16vec4(0);                        \
    } else {                                                                                                           \
      [[unroll]] for (int i = 0; i < 4; ++i) {                                                                         \
        const bool first_inside = there && at + i < size, second_inside = there && at + i + 4 < size;                  \
        const float16_t a = FROM[from + (first_inside ? at + i : 0) * step];                                           \
        const float16_t b = FROM[from + (second_inside ? at + i + 4 : 0) * step];                                      \
        low[i] = first_inside ? a : float16_t(0);                                                                      \
        high[i] = second_inside ? b : float16_t(0);                                                                    \
      }                                                                                                                \
    }                                                                                                                  \
    TO[line * STRIDE + at / 4] = low;                                                                                  \
    TO[line * STRIDE + at / 4 + 1] = high;                                                                             \
  }

// Scores of four keys of a query; of a key that is not there, nothing.
vec4 masked(vec4 score, int row, int key, int from_mask) {
  vec4 found = p.factor * score;
  [[unroll]] for (int i = 0; i < 4; ++i) {
    if (MASKED) {
      const int at = min(key + i, p.keys - 1);
      found[i] += float(mask[from_mask + min(row, p.rows - 1) * p.mask_row + at * p.mask_key]);
    }
    if (key + i >= p.keys) found[i] = NOTHING;
  }
  return found;
}

void main() {
  const int lane = int(gl_LocalInvocationID.x), own = int(gl_SubgroupInvocationID);
  const int first = int(gl_WorkGroupID.x) * SUBGROUPS * M, own_row = int(gl_SubgroupID) * M;
  FIND_BATCH
  for (int r = lane; r < SUBGROUPS * M; r += LANES) {
    most[r] = NOTHING;
    total[r] = 0;
  }
  BRING(queries, QUERY, SUBGROUPS * M, INNER / 8, q, wide_q, from_q, first, p.rows, p.inner, p.q_row, p.q_inner)
  barrier();
  coopmat<float16_t, gl_ScopeSubgroup, M, K, gl_MatrixUseA> query[INNER / K];
  [[unroll]] for (int i = 0; i < INNER / K; ++i) {
    coopMatLoad(query[i], queries, own_row * QUERY + i * K / 4, QUERY, gl_CooperativeMatrixLayoutRowMajor);
  }
  vec4 sums[SUMS];
  [[unroll]] for (int s = 0; s < SUMS; ++s) sums[s] = vec4(0);

  for (int start = 0; start < p.keys; start += KEYS) {
    barrier();
    BRING(keys, KEY, KEYS, INNER / 8, k, wide_k, from_k, start, p.keys, p.inner, p.k_key, p.k_inner)
    BRING(values, VALUE, KEYS, WIDTH / 8, v, wide_v, from_v, start, p.keys, p.width, p.v_key, p.v_column)
    barrier();
    [[unroll]] for (int n = 0; n < KEYS / N; ++n) {
      coopmat<float, gl_ScopeSubgroup, M, N, gl_MatrixUseAccumulator> score =
          coopmat<float, gl_ScopeSubgroup, M, N, gl_MatrixUseAccumulator>(0.0);
      [[unroll]] for (int i = 0; i < INNER / K; ++i) {
        coopmat<float16_t, gl_ScopeSubgroup, K, N, gl_MatrixUseB> key;
        coopMatLoad(key, keys, n * N * KEY + i * K / 4, KEY, gl_CooperativeMatrixLayoutColumnMajor);
        score = coopMatMulAdd(query[i], key, score);
      }
      coopMatStore(score, scores, own_row * SCORE + n * N / 4, SCORE, gl_CooperativeMatrixLayoutRowMajor);
    }
    subgroupMemoryBarrierShared();
    subgroupBarrier();

    for (int r = own_row + own / SHARING; r < own_row + M; r += SUBGROUP / SHARING) {
      const float before = most[r];
      float largest = before, sum = 0;
      for (int j = own % SHARING; j < KEYS / 4; j += SHARING) {
        const vec4 score = masked(scores[r * SCORE + j], first + r, start + 4 * j, from_mask);
        scores[r * SCORE + j] = score;
        largest = max(max(largest, max(score.x, score.y)), max(score.z, score.w));
      }
      [[unroll]] for (int away = 1; away < SHARING; away *= 2) largest = max(largest, subgroupShuffleXor(largest, away));
      for (int j = own % SHARING; j < KEYS / 4; j += SHARING) {
        const vec4 weight = largest == NOTHING ? vec4(0) : exp(scores[r * SCORE + j] - largest);
        queries[r * QUERY + j] = f16vec4(weight);
        sum += weight.x + weight.y + weight.z + weight.w;
      }
      [[unroll]] for (int away = 1; away < SHARING; away *= 2) sum += subgroupShuffleXor(sum, away);
      if (own % SHARING == 0) {  // all lanes of the query have read what lay here: what they shared depends on it
        const float stays = before == NOTHING ? 0.0 : exp(before - largest);
        most[r] = largest;
        kept[r] = stays;
        total[r] = total[r] * stays + sum;
      }
    }
    subgroupMemoryBarrierShared();
    subgroupBarrier();

    [[unroll]] for (int n = 0; n < WIDTH / N; ++n) {
      coopmat<float, gl_ScopeSubgroup, M, N, gl_MatrixUseAccumulator> sum =
          coopmat<float, gl_ScopeSubgroup, M, N, gl_MatrixUseAccumulator>(0.0);
      [[unroll]] for (int i = 0; i < KEYS / K; ++i) {
        coopmat<float16_t, gl_ScopeSubgroup, M, K, gl_MatrixUseA> weight;
        coopmat<float16_t, gl_ScopeSubgroup, K, N, gl_MatrixUseB> value;
        coopMatLoad(weight, queries, own_row * QUERY + i * K / 4, QUERY, gl_CooperativeMatrixLayoutRowMajor);
        coopMatLoad(value, values, i * K * VALUE + n * N / 4, VALUE, gl_CooperativeMatrixLayoutRowMajor);
        sum = coopMatMulAdd(weight, value, sum);
      }
      coopMatStore(sum, scores, own_row * SCORE + n * N / 4, SCORE, gl_CooperativeMatrixLayoutRowMajor);
    }
    subgroupMemoryBarrierShared();
    subgroupBarrier();
    [[unroll]] for (int s = 0; s < SUMS; ++s) {
      const int e = own + s * SUBGROUP, r = own_row + min(e / (WIDTH / 4), M - 1);
      sums[s] = sums[s] * kept[r] + scores[r * SCORE + e % (WIDTH / 4)];
    }
  }

  const int to = outer * p.out_batch[0] + within * p.out_batch[1];
  [[unroll]] for (int s = 0; s < SUMS; ++s) {
    const int e = own + s * SUBGROUP, r = own_row + min(e / (WIDTH / 4), M - 1), column = 4 * (e % (WIDTH / 4));
    const float divisor = ZEROS && total[r] == 0 ? 1.0 : total[r];
    [[unroll]] for (int i = 0; i < 4; ++i) {
      if (e < M * WIDTH / 4 && first + r < p.rows && column + i < p.width) {
        made[to + (first + r) * p.out_row + (column + i) * p.out_column] = T1(p.out_factor * sums[s][i] / divisor);
      }
    }
  }
}
