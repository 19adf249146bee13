// Products of computed matrices in bytes, many at once: out = a b, both rounded to bytes by steps of their own.
//
// As matmul.hpp, without chunks of the inner axis: sums of 32 bits stay in registers. a becomes unsigned bytes with a
// zero point, row by row; b signed ones with the zero point 0, from -127 to 127, in panels of words, so that what the
// zero point of a adds is a number a column: the sums of a column begin with it.
//
// Packed b: [batch][panel][word][vector of the panel][half][v], then [batch] the integers that sums begin with.
#pragma once

#if defined(__AMX_INT8__) || defined(POWERLAB_AMX_MODEL)
#include "kernels/bytes/amx_tile.hpp"
#include "kernels/products/amx_rows.hpp"
#endif
#include "kernels/bytes/convert_bytes.hpp"
#include "kernels/bytes/register_words.hpp"
#include "kernels/products/panels.hpp"

namespace powerlab::engine::POWERLAB_TIER {

// A register tile of rows; that of AMX's table is of other registers.
constexpr int kByteRows = POWERLAB_TILE_PIXELS > 8 ? 6 : POWERLAB_TILE_PIXELS;

// Operands: bytes, [batch ...][rows][floats of a row], whole vectors of bytes; a, [batch ...][rows][inner], any
// strides. alpha: a step of a; numbers[0]: its zero point.
static void quantize_matrix(const Step& s, int thread, int threads) {
  const Strided &out = s.operands[0], &a = s.operands[1];
  const int axes = a.rank - 1;
  const std::int64_t inner = a.size[axes], across = a.stride[axes];
  Requantize r = requantize_of(s);
  r.low = static_cast<float>(kLeastStored - r.zero);
  r.high = static_cast<float>(kMostStored - r.zero);
  r.lowest = kLeastStored;
  r.highest = kMostStored;
  const Divisor by = divisor_of(s.alpha);
  const Range rows = share(count_of(a, axes), thread, threads);
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    const float* from = static_cast<const float*>(a.data) + offset_of(a, axes, row);
    std::uint8_t* to = bytes_of(static_cast<float*>(out.data) + offset_of(out, axes, row));
    const std::int64_t whole = across == 1 ? inner / kWidth * kWidth : 0;
    quantize_run(from, to, whole, by, r);
    for (std::int64_t i = whole; i < inner; i += kWidth)
      store_bytes(to + i, quantized(load_apart(from + i * across, across, inner - i), by, r));
  }
}

// Signed bytes of four features, in the lanes of integers, as the weights of a word.
static inline void put_word(std::uint8_t* to, const IVec (&lanes)[4]) {
  const auto put = [&](int vector, IVec v) { *reinterpret_cast<UnalignedIVec*>(to + 4 * kWidth * vector) = v; };
  if constexpr (kHalves == 2) {
    for (int half = 0; half < 2; ++half) put(half, (lanes[half] & 0xffff) | lanes[half + 2] << 16);
  } else if constexpr (kPairsOfBytes) {
    for (int i = 0; i < 4; ++i) {
      for (int lane = 0; lane < kWidth; ++lane)
        to[i / 2 * 2 * kWidth + 2 * lane + i % 2] = static_cast<std::uint8_t>(lanes[i][lane]);
    }
  } else {
    put(0, (lanes[0] & 255) | (lanes[1] & 255) << 8 | (lanes[2] & 255) << 16 | lanes[3] << 24);
  }
}

#if defined(__AVX512VNNI__) && defined(__AVX512F__)
constexpr bool kTurnsColumns = true;
// Four words of a vector of columns, whose features follow on each other.
static inline __attribute__((always_inline)) void words_of_columns(const float* from, std::int64_t across,
                                                                   const Divisor& by, const Requantize& r,
                                                                   IVec (&words)[4]) {
  typedef long long Halves __attribute__((vector_size(64)));
  Requantize middle = r;  // bytes, 128 more than their signed ones
  middle.zero = 128;
  middle.lowest = 1;
  middle.highest = 255;
  Halves four[4];  // columns, whose word i is in quarter i
  POWERLAB_UNROLL
  for (int i = 0; i < 4; ++i, from += 4 * across) {
    Vec x[] = {load_unaligned(from), load_unaligned(from + across), load_unaligned(from + 2 * across),
               load_unaligned(from + 3 * across)};
    to_steps(x, by, r);
    four[i] = (Halves)((IVec)packed_words(x, middle) ^ static_cast<std::int32_t>(0x80808080));
  }
  POWERLAB_UNROLL
  for (int i = 0; i < 4; i += 2) {
    const auto halves = [&](int first) {
      return i == 0 ? __builtin_shufflevector(four[first], four[first + 1], 0, 1, 2, 3, 8, 9, 10, 11)
                    : __builtin_shufflevector(four[first], four[first + 1], 4, 5, 6, 7, 12, 13, 14, 15);
    };
    const Halves left = halves(0), right = halves(2);
    words[i] = (IVec)__builtin_shufflevector(left, right, 0, 1, 4, 5, 8, 9, 12, 13);
    words[i + 1] = (IVec)__builtin_shufflevector(left, right, 2, 3, 6, 7, 10, 11, 14, 15);
  }
}
#else
constexpr bool kTurnsColumns = false;
static inline void words_of_columns(const float*, std::int64_t, const Divisor&, const Requantize&, IVec (&)[4]) {}
#endif

// Operands: packed, [batch ...][1][floats]; b, [batch ...][inner][columns], any strides. alpha: a step of b;
// numbers[0]: the zero point of a.
static void pack_matrix_bytes(const Step& s, int thread, int threads) {
  const Strided &packed = s.operands[0], &b = s.operands[1];
  const int axes = b.rank - 2;
  const std::int64_t inner = b.size[axes], columns = b.size[axes + 1], down = b.stride[axes],
                     across = b.stride[axes + 1];
  const std::int64_t words = (inner + 3) / 4;
  const Panels panels(columns);
  const Divisor by = divisor_of(s.alpha);
  Requantize r = requantize_of(s);
  r.zero = 0;
  r.low = -127;
  r.high = 127;
  const Range units = share(count_of(b, axes) * panels.vectors, thread, threads);
  for (std::int64_t unit = units.begin; unit < units.end; ++unit) {
    const std::int64_t batch = unit / panels.vectors, vector = unit % panels.vectors, panel = panels.of(vector);
    const std::int64_t first = panels.begin(panel), width = panels.begin(panel + 1) - first;
    const float* from = static_cast<const float*>(b.data) + offset_of(b, axes, batch) + vector * kWidth * across;
    std::uint8_t* whole = bytes_of(static_cast<float*>(packed.data) + offset_of(packed, axes, batch));
    std::uint8_t* to = whole + (first * words + vector - first) * kWordBytes<1>;
    const std::int64_t left = columns - vector * kWidth;
    IVec sums = {};
    std::int64_t word = 0;
    if (kTurnsColumns && down == 1 && left >= kWidth) {
      for (; 4 * word + kWidth <= inner; word += 4) {
        IVec four[4] = {};
        words_of_columns(from + 4 * word, across, by, r, four);
        for (int i = 0; i < 4; ++i, to += width * kWordBytes<1>) {
          sums = dot(sums, every(0x01010101), four[i]);
          *reinterpret_cast<UnalignedIVec*>(to) = four[i];
        }
      }
    }
    for (; word < words; ++word, to += width * kWordBytes<1>) {
      IVec four[4] = {};
      for (int i = 0; i < 4 && 4 * word + i < inner; ++i) {
        const Vec x = load_apart(from + (4 * word + i) * down, across, left);
        // The lowest bits of the rounded sum, with their sign.
        four[i] = (quantized(x, by, r) << 24) >> 24;
        sums += four[i];
      }
      put_word(to, four);
    }
    std::uint8_t* begins = whole + panels.vectors * words * kWordBytes<1>;
    *reinterpret_cast<UnalignedIVec*>(begins + vector * 4 * kWidth) = sums * -stored_zero(s, 0);
  }
}

#if defined(__AMX_INT8__) || defined(POWERLAB_AMX_MODEL)

struct ByteRows : RowTile {
  const std::uint8_t* begin;  // what the sums of the panel's vectors begin with

  static Vec floats(const std::int32_t* sums) { return __builtin_convertvector(load_ints(sums), Vec); }
};
static inline const std::uint8_t* begin_of(const ByteRows& t, int vector) { return t.begin + 4 * vector * kWidth; }

// As matmul_bytes, in AMX's tiles of rows.
static void matmul_byte_tiles(const Step& s, int thread, int threads) {
  const std::int64_t words = (s.numbers[0] + 3) / 4;
  const Panels panels(s.operands[0].size[s.operands[0].rank - 1]);
  multiply_panels<std::int32_t, ByteRows>(s, words, thread, threads, [&](const PanelTiles& some, RowTile rows) {
    const std::uint8_t* packed = bytes_of(some.b);
    rows.weights = packed + some.begin * words * kWordBytes<1>;
    return ByteRows{rows, packed + panels.vectors * words * kWordBytes<1> + some.begin * 4 * kWidth};
  });
}

#endif

struct ByteProduct {
  const float* a;
  const std::uint8_t *b, *begin;
  float* out;
  std::int64_t a_row, out_row, words;
  float multiplier;
  int lanes;  // of the last vector, that are columns
};

template <int B, int P>
static __attribute__((noinline)) void byte_product(const ByteProduct& t) {
  IVec acc[B][P];
  POWERLAB_UNROLL
  for (int b = 0; b < B; ++b) {
    const IVec begin = load_ints(t.begin + b * 4 * kWidth);
    POWERLAB_UNROLL
    for (int p = 0; p < P; ++p) acc[b][p] = begin;
  }
  const float *x = t.a, *x3 = t.a + 3 * t.a_row;
  const std::uint8_t* weights = t.b;
  const std::int64_t row = t.a_row;
  std::int64_t left = t.words;
  for (; left >= 4; left -= 4, weights += 4 * B * kWordBytes<1>) byte_four_words<1, B, P>(acc, x, x3, row, weights);
  for (; left > 0; --left, ++x, ++x3, weights += B * kWordBytes<1>) byte_word<1, B, P>(acc, x, x3, row, weights);
  read_anew();
  const Vec multiplier = broadcast(t.multiplier);
  POWERLAB_UNROLL
  for (int b = 0; b < B; ++b) {
    POWERLAB_UNROLL
    for (int p = 0; p < P; ++p) {
      const Vec product = __builtin_convertvector(acc[b][p], Vec) * multiplier;
      store_columns(t.out + p * t.out_row + b * kWidth, product, b + 1 < B ? kWidth : t.lanes);
    }
  }
}

using ByteProductFunction = void (*)(const ByteProduct&);
struct ByteProductTable {
  ByteProductFunction at[POWERLAB_TILE_BLOCKS * kByteRows];
};
template <int... I>
constexpr ByteProductTable make_byte_products(Indices<I...>) {
  return {{byte_product<I / kByteRows + 1, I % kByteRows + 1>...}};
}
static constexpr ByteProductTable kByteProducts =
    make_byte_products(typename MakeIndices<POWERLAB_TILE_BLOCKS * kByteRows>::type{});

// Operands: out, [batch ...][rows][columns], whose columns follow on each other; bytes of a, [batch ...][rows][floats];
// packed b, [batch ...][1][floats]. alpha: what a sum is multiplied by; numbers[0]: the inner axis.
static void matmul_bytes(const Step& s, int thread, int threads) {
#if defined(__AMX_INT8__) || defined(POWERLAB_AMX_MODEL)
  // Sizes that no tile divides well go through registers.
  if (words_at_once(static_cast<int>((s.numbers[0] + 3) / 4)) >= kTileRows / 2)
    return matmul_byte_tiles(s, thread, threads);
#endif
  const Strided &out = s.operands[0], &a = s.operands[1];
  const int axes = out.rank - 2;
  const std::int64_t rows = out.size[axes], tiles = (rows + kByteRows - 1) / kByteRows;
  const Panels panels(out.size[axes + 1]);
  ByteProduct t;
  t.words = (s.numbers[0] + 3) / 4;
  t.a_row = a.stride[axes];
  t.out_row = out.stride[axes];
  t.multiplier = s.alpha;
  for_panels(s, panels, tiles, thread, threads, [&](const PanelTiles& some) {
    const std::uint8_t* b = bytes_of(some.b);
    t.lanes = some.lanes;
    t.b = b + some.begin * t.words * kWordBytes<1>;
    t.begin = b + (panels.vectors * t.words * (kWordBytes<1> / kWidth) + some.begin * 4) * kWidth;
    for (std::int64_t tile = some.first; tile < some.last; ++tile) {
      const std::int64_t row = tile * rows / tiles, height = (tile + 1) * rows / tiles - row;
      t.a = some.a + row * t.a_row;
      t.out = some.out + row * t.out_row;
      kByteProducts.at[(some.width - 1) * kByteRows + (height - 1)](t);
    }
  });
}

}  // namespace powerlab::engine::POWERLAB_TIER
