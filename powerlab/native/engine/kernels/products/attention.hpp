// Attention (A. Vaswani et al., 2017): softmax(q keys + what is added to the scores) values, where the scores of some
// rows never leave the cache (as in T. Dao et al., "FlashAttention", 2022, though rows are whole here: a core's cache
// holds thousands of scores of a few rows).
//
// Operands: out, [batch ...][rows][width], whose last axis' elements follow on each other; q, [batch ...][rows][inner],
// likewise; keys and values, packed as matmul.hpp packs b; what is added, [batch ...][rows][keys], of any strides.
// number[0]: the longest chunk of what is summed over; number[1]: tiles of rows taken together; number[2]: keys;
// number[3]: 1 where a row of nothing but -inf becomes zeros. scratch: scores, [row][keys, filled up to vectors].
#pragma once

#include "kernels/products/matmul.hpp"
#include "kernels/products/scores.hpp"
#include "kernels/strided/normalise_rows.hpp"

namespace powerlab::engine::POWERLAB_TIER {

// All panels of a product, chunk by chunk of the inner axis.
static inline void multiply_chunks(MatmulTile& t, MatmulBlock& block, const RowTiles& rows, std::int64_t longest) {
  const Panels panels(block.columns);
  const std::int64_t chunks = (block.inner + longest - 1) / longest, chunk = (block.inner + chunks - 1) / chunks;
  const float* a = block.a;
  block.panels = {0, panels.count};
  block.packed = false;
  for (block.k = 0; block.k < block.inner; block.k += chunk) {
    t.inner = smaller(block.inner - block.k, chunk);
    t.first = block.k == 0;
    block.a = a + block.k;
    multiply_block(t, block, rows, panels);
  }
}

static void attention(const Step& s, int thread, int threads) {
  const Strided &out = s.operands[0], &q = s.operands[1], &keys = s.operands[2], &values = s.operands[3];
  const int axes = out.rank - 2;
  const std::int64_t longest = s.numbers[0], together = s.numbers[1], key_count = s.numbers[2];
  const std::int64_t row_floats = (key_count + kWidth - 1) / kWidth * kWidth;
  const RowTiles rows(out.size[axes]);
  float* const scores = s.scratch.data + thread * s.scratch.image;
  MatmulTile to_scores, to_out;
  to_scores.a_row = q.stride[axes];
  to_scores.a_inner = to_out.a_inner = 1;
  to_scores.out_row = to_out.a_row = row_floats;
  to_out.out_row = out.stride[axes];
  const Range units = share(count_of(out, axes) * rows.count, thread, threads);
  for (std::int64_t unit = units.begin, next; unit < units.end; unit = next) {
    const std::int64_t batch = unit / rows.count, tile = unit % rows.count;
    next = smaller(smaller(unit + together, units.end), unit + rows.count - tile);
    MatmulBlock block;
    block.tiles = {tile, tile + next - unit};
    const std::int64_t top = rows.begin(block.tiles.begin), bottom = rows.begin(block.tiles.end);
    block.a = static_cast<const float*>(q.data) + offset_of(q, axes, batch) + top * to_scores.a_row;
    block.b = static_cast<const float*>(keys.data) + offset_of(keys, axes, batch);
    block.out = scores;
    block.columns = key_count;
    block.inner = q.size[axes + 1];
    multiply_chunks(to_scores, block, rows, longest);
    for (std::int64_t row = top; row < bottom; ++row) {
      float* own = scores + (row - top) * row_floats;
      add_masks(s, batch, row, own, key_count);
      softmax_row(own, own, key_count, s.numbers[3] == 1);
    }
    block.a = scores;
    block.b = static_cast<const float*>(values.data) + offset_of(values, axes, batch);
    block.out = static_cast<float*>(out.data) + offset_of(out, axes, batch) + top * to_out.out_row;
    block.columns = out.size[axes + 1];
    block.inner = key_count;
    multiply_chunks(to_out, block, rows, longest);
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
