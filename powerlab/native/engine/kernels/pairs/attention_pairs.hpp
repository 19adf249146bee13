// Attention in bfloat16 by AMX, as products/attention.hpp has it in float32: q, keys, values and what the exponentials
// of scores are, all rounded to bfloat16, are multiplied; scores, their exponentials and sums are float32. A row is
// divided by its sum when it is done, as in T. Dao et al., "FlashAttention", 2022.
//
// Operands: out, [batch ...][rows][width], whose last axis' elements follow on each other; q, [batch ...][rows][inner],
// of any strides; keys and values, packed as matmul_pairs.hpp packs b; what is added, [batch ...][rows][keys], of any
// strides. alpha: what a score is multiplied by, beta: a result; number[0]: the inner axis; number[1]: keys; number[2]:
// 1 where a row of nothing but -inf becomes zeros. scratch: scores of kScoreRows rows, [row][keys, filled up to
// blocks], and words of q.
#pragma once

#include "kernels/lanes.hpp"
#include "kernels/pairs/matmul_pairs.hpp"
#include "kernels/products/scores.hpp"

namespace powerlab::engine::POWERLAB_TIER {

// Rows whose scores are made at a time: the first-level cache holds those of some hundred keys.
constexpr std::int64_t kScoreRows = 2 * kTileRows;

// Rows that are multiplied by a factor each.
struct ScaledRowTile : RowTile {
  const float* factors;

  Vec factor(int row) const { return broadcast(factors[row]); }
  void skip(int rows) {
    RowTile::skip(rows);
    factors += rows;
  }
};

// The products of up to kScoreRows rows, of so many words each, with all panels of packed b.
template <typename Tile>
static inline void multiply_all(Tile rows, std::int64_t count, const float* b, std::int64_t columns, Tiles& tiles) {
  const Panels panels(columns);
  const int all = static_cast<int>(count), first = all > kTileRows ? (all + 1) / 2 : all;
  float* const out = rows.out;
  for (std::int64_t panel = 0; panel < panels.count; ++panel) {
    const std::int64_t begin = panels.begin(panel);
    rows.lanes = panels.lanes(panel);
    rows.weights = b + begin * tiles.run() * kWidth;
    rows.out = out + begin * kWidth;
    Tile second = rows;
    second.skip(first);
    const Tile* const next = all > first ? &second : nullptr;
    kMultiplyRows<float, Tile>[panels.width(panel) - 1](rows, first, next, all - first, tiles);
  }
}

// Puts exp(score - largest) in the place of a row's scores, as words, filled up with zeros; returns their sum. Of
// nothing but -inf it is not a number, or where rows are masked infinity, which makes zeros.
static inline float exponential_words(float* row, std::int64_t keys, std::int64_t filled, bool masked) {
  const std::int64_t whole = keys / kWidth * kWidth;
  const int left = static_cast<int>(keys - whole);
  const Vec least = broadcast(-__builtin_inff());
  const auto last = [&] { return lane_numbers() < left ? load(row + whole) : least; };
  Vec most = left > 0 ? last() : least, sums{};
  for (std::int64_t i = 0; i < whole; i += kWidth) most = larger(most, load(row + i));
  const float largest = largest_of(most);
  const bool nothing = masked && largest == -__builtin_inff();
  most = broadcast(nothing ? 0.0f : largest);
  POWERLAB_UNROLL_BY_2
  for (std::int64_t i = 0; i < whole; i += kWidth) {
    const Vec power = exponential_below(load(row + i) - most);
    sums += power;
    store_narrow(row + i / 2, power);
  }
  if (left > 0) {
    const Vec power = first_lanes(exponential_below(last() - most), left);
    sums += power;
    store_narrow(row + whole / 2, power);
  }
  for (std::int64_t i = (keys + kWidth - 1) / kWidth * kWidth; i < filled; i += kWidth)
    store_narrow(row + i / 2, Vec{});
  return nothing ? __builtin_inff() : sum_of(sums);
}

static void attention_pairs(const Step& s, int thread, int threads) {
  const Strided &out = s.operands[0], &q = s.operands[1], &keys = s.operands[2], &values = s.operands[3];
  const int axes = out.rank - 2;
  const std::int64_t inner = s.numbers[0], key_count = s.numbers[1], across = q.stride[axes + 1];
  const std::int64_t query_words = inner_words(inner), key_words = inner_words(key_count), filled = 2 * key_words;
  const std::int64_t rows = out.size[axes], parts = (rows + kScoreRows - 1) / kScoreRows, out_row = out.stride[axes];
  float* const scores = s.scratch.data + thread * s.scratch.image;
  float* const queries = scores + kScoreRows * filled;
  Tiles tiles(static_cast<int>(query_words));
  const Range units = share(count_of(out, axes) * parts, thread, threads);
  for (std::int64_t unit = units.begin; unit < units.end; ++unit) {
    const std::int64_t batch = unit / parts, part = unit % parts;
    const std::int64_t top = part * rows / parts, count = (part + 1) * rows / parts - top;
    const float* from = static_cast<const float*>(q.data) + offset_of(q, axes, batch) + top * q.stride[axes];
    for (std::int64_t row = 0; row < count; ++row) {
      for (std::int64_t i = 0; i < 2 * query_words; i += kWidth) {
        store_narrow(queries + row * query_words + i / 2,
                     load_apart(from + row * q.stride[axes] + i * across, across, inner - i));
      }
    }
    // Instructions that load tiles do not tell the compiler that they read memory.
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    tiles.set_row(static_cast<int>(query_words));
    multiply_all(RowTile{queries, nullptr, query_words, nullptr, scores, filled, s.alpha, 0}, count,
                 static_cast<const float*>(keys.data) + offset_of(keys, axes, batch), key_count, tiles);
    float factors[kScoreRows];
    for (std::int64_t row = 0; row < count; ++row) {
      float* own = scores + row * filled;
      add_masks(s, batch, top + row, own, key_count);
      factors[row] = s.beta / exponential_words(own, key_count, filled, s.numbers[2] == 1);
    }
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    tiles.set_row(static_cast<int>(key_words));
    float* to = static_cast<float*>(out.data) + offset_of(out, axes, batch) + top * out_row;
    multiply_all(ScaledRowTile{{scores, nullptr, filled, nullptr, to, out_row, 0, 0}, factors}, count,
                 static_cast<const float*>(values.data) + offset_of(values, axes, batch), out.size[axes + 1], tiles);
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
