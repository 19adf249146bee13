// Products of computed matrices in bfloat16, many at once: out = alpha a b, both rounded to bfloat16, sums in float32.
//
// a becomes rows of words, b panels of words; both are filled up with zeros to whole blocks of the inner axis. A
// register tile of kPairRows rows is multiplied whole: behind the last row of a matrix there is room for it, and what
// that makes is not stored.
//
// Packed b: [batch][panel][word][vector of the panel][v].
#pragma once

#if defined(__AMX_BF16__) || defined(POWERLAB_AMX_MODEL)
#include "kernels/pairs/amx_tile.hpp"
#include "kernels/products/amx_rows.hpp"
#else
#include "kernels/pairs/register_words.hpp"
#endif
#include "kernels/products/panels.hpp"
#include "kernels/transpose_tile.hpp"

namespace powerlab::engine::POWERLAB_TIER {

constexpr int kPairRows = POWERLAB_TILE_PIXELS, kPairVectors = POWERLAB_TILE_BLOCKS;

// Words of an inner axis, whole blocks of them.
static inline std::int64_t inner_words(std::int64_t inner) {
  return (inner + kBlockChannels - 1) / kBlockChannels * kBlockWords;
}

// Operands: words, [batch ...][rows][words of a row]; a, [batch ...][rows][inner], any strides.
static void narrow_matrix(const Step& s, int thread, int threads) {
  const Strided &out = s.operands[0], &a = s.operands[1];
  const int axes = a.rank - 1;
  const std::int64_t inner = a.size[axes], across = a.stride[axes], filled = 2 * inner_words(inner);
  const Range rows = share(count_of(a, axes), thread, threads);
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const float* from = static_cast<const float*>(a.data) + offset_of(a, axes, row);
    float* to = static_cast<float*>(out.data) + offset_of(out, axes, row);
    for (std::int64_t i = 0; i < filled; i += kWidth)
      store_narrow(to + i / 2, load_apart(from + i * across, across, inner - i));
  }
}

// A vector of columns, `left` of which are there, whose inner axis' elements follow on each other: as words, turned in
// registers. Vectors of words lie `apart`.
static inline void pack_turned(float* to, std::int64_t apart, const float* from, std::int64_t across, std::int64_t left,
                               std::int64_t inner, std::int64_t words) {
  alignas(4 * kWidth) float columns[kWidth][kWidth];
  for (std::int64_t word = 0; word < words; word += kWidth) {
    for (int lane = 0; lane < kWidth; ++lane) {
      const float* own = from + lane * across + 2 * word;
      const std::int64_t count = lane < left ? inner - 2 * word : 0;
      store_narrow(columns[lane], load_apart(own, 1, count));
      store_narrow(columns[lane] + kWidth / 2, load_apart(own + kWidth, 1, count - kWidth));
    }
    Vec rows[kWidth];
    POWERLAB_UNROLL
    for (int lane = 0; lane < kWidth; ++lane) rows[lane] = load(columns[lane]);
    transpose_tile(rows);
    const std::int64_t count = words - word < kWidth ? words - word : kWidth;
    POWERLAB_UNROLL
    for (int i = 0; i < kWidth; ++i) {
      if (i < count) store(to + (word + i) * apart, rows[i]);
    }
  }
}

// Operands: packed, [batch ...][1][floats]; b, [batch ...][inner][columns], any strides.
static void pack_matrix_pairs(const Step& s, int thread, int threads) {
  const Strided &packed = s.operands[0], &b = s.operands[1];
  const int axes = b.rank - 2;
  const std::int64_t inner = b.size[axes], columns = b.size[axes + 1], down = b.stride[axes],
                     across = b.stride[axes + 1], words = inner_words(inner);
  const Panels panels(columns);
  const Range units = share(count_of(b, axes) * panels.vectors, thread, threads);
  for (std::int64_t unit = units.begin; unit < units.end; ++unit) {
    const std::int64_t batch = unit / panels.vectors, vector = unit % panels.vectors, panel = panels.of(vector);
    const std::int64_t first = panels.begin(panel), width = panels.begin(panel + 1) - first;
    const float* from = static_cast<const float*>(b.data) + offset_of(b, axes, batch) + vector * kWidth * across;
    float* to =
        static_cast<float*>(packed.data) + offset_of(packed, axes, batch) + (first * words + vector - first) * kWidth;
    const std::int64_t left = columns - vector * kWidth;
    if (down == 1 && across != 1) {
      pack_turned(to, width * kWidth, from, across, left, inner, words);
      continue;
    }
    for (std::int64_t word = 0; word < words; ++word, to += width * kWidth) {
      Vec two[2] = {};
      for (int i = 0; i < 2 && 2 * word + i < inner; ++i)
        two[i] = load_apart(from + (2 * word + i) * down, across, left);
      store(to, pair_up(two[0], two[1]));
    }
  }
}

#if defined(__AMX_BF16__) || defined(POWERLAB_AMX_MODEL)

// Operands: out, [batch ...][rows][columns], whose columns follow on each other; words of a; packed b. alpha: what a
// sum is multiplied by; numbers[0]: the inner axis.
static void matmul_pairs(const Step& s, int thread, int threads) {
  const std::int64_t words = inner_words(s.numbers[0]);
  multiply_panels<float, RowTile>(s, words, thread, threads, [&](const PanelTiles& some, RowTile rows) {
    rows.weights = some.b + some.begin * words * kWidth;
    return rows;
  });
}

#else

struct PairProduct {
  const float *a, *b;
  float* out;
  std::int64_t a_row, out_row, words;
  float multiplier;
  int rows, lanes;  // rows that are stored; lanes of the last vector that are columns
};

template <int B>
static __attribute__((noinline)) void pair_product(const PairProduct& t) {
  Vec acc[B][kPairRows] = {};
  const float *x = t.a, *x3 = t.a + 3 * t.a_row, *weights = t.b;
  const std::int64_t row = t.a_row;
  for (std::int64_t left = t.words; left > 0; left -= 4, x += 4, x3 += 4, weights += 4 * B * kWidth)
    pair_four_words<B, kPairRows>(acc, x, x3, row, weights);
  __atomic_signal_fence(__ATOMIC_SEQ_CST);  // reads t anew, as in register_tile.hpp
  const Vec multiplier = broadcast(t.multiplier);
  POWERLAB_UNROLL
  for (int p = 0; p < kPairRows; ++p) {
    if (p >= t.rows) continue;  // a way out of the loop would keep clang from unrolling it
    POWERLAB_UNROLL
    for (int b = 0; b < B; ++b) {
      const int lanes = b + 1 < B ? kWidth : t.lanes;
      store_columns(t.out + p * t.out_row + b * kWidth, acc[b][p] * multiplier, lanes);
    }
  }
}

using PairProductFunction = void (*)(const PairProduct&);
struct PairProductTable {
  PairProductFunction at[kPairVectors];
};
template <int... I>
constexpr PairProductTable make_pair_products(Indices<I...>) {
  return {{pair_product<I + 1>...}};
}
static constexpr PairProductTable kPairProducts = make_pair_products(typename MakeIndices<kPairVectors>::type{});

// Operands: out, [batch ...][rows][columns], whose columns follow on each other; words of a; packed b. alpha: what a
// sum is multiplied by; numbers[0]: the inner axis.
static void matmul_pairs(const Step& s, int thread, int threads) {
  const Strided &out = s.operands[0], &a = s.operands[1];
  const int axes = out.rank - 2;
  const std::int64_t rows = out.size[axes];
  PairProduct t;
  t.words = inner_words(s.numbers[0]);
  t.a_row = a.stride[axes];
  t.out_row = out.stride[axes];
  t.multiplier = s.alpha;
  const Panels panels(out.size[axes + 1]);
  for_panels(s, panels, (rows + kPairRows - 1) / kPairRows, thread, threads, [&](const PanelTiles& some) {
    t.lanes = some.lanes;
    t.b = some.b + some.begin * t.words * kWidth;
    for (std::int64_t tile = some.first; tile < some.last; ++tile) {
      const std::int64_t row = tile * kPairRows;
      t.rows = static_cast<int>(rows - row < kPairRows ? rows - row : kPairRows);
      t.a = some.a + row * t.a_row;
      t.out = some.out + row * t.out_row;
      kPairProducts.at[some.width - 1](t);
    }
  });
}

#endif

}  // namespace powerlab::engine::POWERLAB_TIER
