// Products of computed matrices in bfloat16, many at once: out = alpha a b, both rounded to bfloat16, sums in float32.
//
// a becomes rows of words, b panels of words; both are filled up with zeros to whole blocks of the inner axis. A
// register tile of kPairRows rows is multiplied whole: behind the last row of a matrix there is room for it, and what
// that makes is not stored.
//
// Packed b: [batch][panel][word][vector of the panel][v].
#pragma once

#include "kernels/axes.hpp"
#include "kernels/pairs/register_words.hpp"

namespace powerlab::engine::POWERLAB_TIER {

// A register tile of rows; that of AMX's table is of other registers.
constexpr int kPairRows = POWERLAB_TILE_PIXELS > 8 ? 6 : POWERLAB_TILE_PIXELS;
constexpr int kPairVectors = POWERLAB_TILE_BLOCKS;

// Words of an inner axis, whole blocks of them.
static inline std::int64_t inner_words(std::int64_t inner) {
  return (inner + kBlockChannels - 1) / kBlockChannels * kBlockWords;
}

struct PairPanels {
  std::int64_t vectors, count;
  explicit PairPanels(std::int64_t columns)
      : vectors((columns + kWidth - 1) / kWidth), count((vectors + kPairVectors - 1) / kPairVectors) {}
  std::int64_t begin(std::int64_t panel) const { return panel * vectors / count; }
  std::int64_t of(std::int64_t vector) const { return ((vector + 1) * count - 1) / vectors; }
};

// The first of some numbers a stride apart; the others of the vector are 0.
static inline Vec load_apart(const float* from, std::int64_t stride, std::int64_t left) {
  const int lanes = left <= 0 ? 0 : left < kWidth ? static_cast<int>(left) : kWidth;
  if (stride == 1) return lanes == kWidth ? load_unaligned(from) : load_lanes(from, lanes);
  alignas(4 * kWidth) float gathered[kWidth] = {};
  for (int lane = 0; lane < lanes; ++lane) gathered[lane] = from[lane * stride];
  return load(gathered);
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

// Operands: packed, [batch ...][1][floats]; b, [batch ...][inner][columns], any strides.
static void pack_matrix_pairs(const Step& s, int thread, int threads) {
  const Strided &packed = s.operands[0], &b = s.operands[1];
  const int axes = b.rank - 2;
  const std::int64_t inner = b.size[axes], columns = b.size[axes + 1], down = b.stride[axes],
                     across = b.stride[axes + 1], words = inner_words(inner);
  const PairPanels panels(columns);
  const Range units = share(count_of(b, axes) * panels.vectors, thread, threads);
  for (std::int64_t unit = units.begin; unit < units.end; ++unit) {
    const std::int64_t batch = unit / panels.vectors, vector = unit % panels.vectors, panel = panels.of(vector);
    const std::int64_t first = panels.begin(panel), width = panels.begin(panel + 1) - first;
    const float* from = static_cast<const float*>(b.data) + offset_of(b, axes, batch) + vector * kWidth * across;
    float* to =
        static_cast<float*>(packed.data) + offset_of(packed, axes, batch) + (first * words + vector - first) * kWidth;
    const std::int64_t left = columns - vector * kWidth;
    for (std::int64_t word = 0; word < words; ++word, to += width * kWidth) {
      Vec two[2] = {};
      for (int i = 0; i < 2 && 2 * word + i < inner; ++i)
        two[i] = load_apart(from + (2 * word + i) * down, across, left);
      store(to, pair_up(two[0], two[1]));
    }
  }
}

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
      const Vec product = acc[b][p] * multiplier;
      float* to = t.out + p * t.out_row + b * kWidth;
      if (b + 1 < B || t.lanes == kWidth) {
        store_unaligned(to, product);
      } else {
        store_lanes(to, product, t.lanes);
      }
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
  const Strided &out = s.operands[0], &a = s.operands[1], &packed = s.operands[2];
  const int axes = out.rank - 2;
  const std::int64_t rows = out.size[axes], columns = out.size[axes + 1];
  const PairPanels panels(columns);
  const std::int64_t tiles = (rows + kPairRows - 1) / kPairRows;
  PairProduct t;
  t.words = inner_words(s.numbers[0]);
  t.a_row = a.stride[axes];
  t.out_row = out.stride[axes];
  t.multiplier = s.alpha;
  const Range units = share(count_of(out, axes) * tiles, thread, threads);
  for (std::int64_t unit = units.begin; unit < units.end;) {
    const std::int64_t batch = unit / tiles, first_tile = unit % tiles;
    const std::int64_t last_tile = units.end - unit < tiles - first_tile ? first_tile + units.end - unit : tiles;
    unit += last_tile - first_tile;
    const float* a_data = static_cast<const float*>(a.data) + offset_of(a, axes, batch);
    const float* b_data = static_cast<const float*>(packed.data) + offset_of(packed, axes, batch);
    float* out_data = static_cast<float*>(out.data) + offset_of(out, axes, batch);
    for (std::int64_t panel = 0; panel < panels.count; ++panel) {
      const std::int64_t begin = panels.begin(panel), width = panels.begin(panel + 1) - begin;
      const std::int64_t left = columns - (begin + width - 1) * kWidth;
      t.lanes = static_cast<int>(left < kWidth ? left : kWidth);
      t.b = b_data + begin * t.words * kWidth;
      for (std::int64_t tile = first_tile; tile < last_tile; ++tile) {
        const std::int64_t row = tile * kPairRows;
        t.rows = static_cast<int>(rows - row < kPairRows ? rows - row : kPairRows);
        t.a = a_data + row * t.a_row;
        t.out = out_data + row * t.out_row + begin * kWidth;
        kPairProducts.at[width - 1](t);
      }
    }
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
