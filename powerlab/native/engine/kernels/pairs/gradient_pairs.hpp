// Gradients of convolutions' weights in bfloat16, sums in float32: training/gradient_pieces.hpp with two pixels a word.
//
// What is multiplied are floats in blocks: the pixels of a piece become bfloat16 in scratch, where they are read as
// often as a tile passes. A lane of a word holds one channel of two pixels that follow on each other; where a piece has
// an odd number of them, the last has a zero beside it.
#pragma once

#if defined(__AMX_BF16__) || defined(POWERLAB_AMX_MODEL)
#include "kernels/amx.hpp"
#include "kernels/transpose_tile.hpp"
#endif
#include "kernels/pairs/words.hpp"
#include "kernels/training/gradient_pieces.hpp"

namespace powerlab::engine::POWERLAB_TIER {

constexpr std::int64_t kGradientPairs = (kGradientPixels + 1) / 2;

static inline void pair_pixels(const float* rows, std::int64_t row, std::int64_t pixel, const GradientTile& t,
                               float* to) {
  Vec first{};
  bool waits = false;  // the last pixel of a row, for the first of the next one
  for (std::int64_t y = 0; y < t.rows; ++y) {
    const float* from = rows + y * row;
    std::int64_t i = 0;
    if (waits) {
      store(to, pair_up(first, load(from)));
      to += kWidth;
      i = 1;
    }
    for (; i + 2 <= t.pixels; i += 2, to += kWidth)
      store(to, pair_up(load(from + i * pixel), load(from + (i + 1) * pixel)));
    waits = i < t.pixels;
    if (waits) first = load(from + i * pixel);
  }
  if (waits) store(to, pair_up(first, Vec{}));
}

#if defined(__AMX_BF16__) || defined(POWERLAB_AMX_MODEL)

// In AMX: a tile of sums is 16 outputs x 16 inputs. Rows of `a` are words of an output, so that dy is turned once for
// all inputs that meet it; rows of `b` are a word of 16 inputs. Words of zeros fill up a piece's last tile.
struct PairProducts {
  static constexpr bool kOutputsFirst = true;
  static constexpr std::int64_t kPiece = kGradientPairs * kWidth;
  static constexpr std::int64_t kRoom = (1 + kGradientBlocks) * kPiece;  // x, then the blocks of dy
  static_assert(kGradientPairs % kTileRows == 0 && kGradientBlocks <= 3 && kWidth == kTileRows);

  struct Registers {
    Registers() {
      TileConfig config;
      for (int tile = 0; tile < kTiles; ++tile) {
        config.rows[tile] = kTileRows;
        config.row_bytes[tile] = kTileRowBytes;
      }
      POWERLAB_TILE_CONFIGURE(config);
    }
    Registers(const Registers&) = delete;
    Registers& operator=(const Registers&) = delete;
    ~Registers() { POWERLAB_TILE_RELEASE(); }
  };

  static std::int64_t tiles(const GradientTile& t) { return (t.rows * t.pixels + 2 * kTileRows - 1) / (2 * kTileRows); }
  // Words of a piece, filled up to whole tiles.
  static void fill_pairs(const float* rows, std::int64_t row, std::int64_t pixel, const GradientTile& t, float* to) {
    pair_pixels(rows, row, pixel, t, to);
    for (std::int64_t word = (t.rows * t.pixels + 1) / 2; word < tiles(t) * kTileRows; ++word)
      store(to + word * kWidth, Vec{});
  }
  static GradientTile outputs(GradientTile t, std::int64_t blocks, float* room) {
    for (std::int64_t b = 0; b < blocks; ++b) {
      float* words = room + (1 + b) * kPiece;
      fill_pairs(t.dy + b * t.dy_plane, t.dy_row, kWidth, t, words);
      for (std::int64_t tile = 0; tile < tiles(t); ++tile, words += kTileRows * kWidth) {
        Vec turned[kWidth];
        POWERLAB_UNROLL
        for (int i = 0; i < kWidth; ++i) turned[i] = load(words + i * kWidth);
        transpose_tile(turned);
        POWERLAB_UNROLL
        for (int i = 0; i < kWidth; ++i) store(words + i * kWidth, turned[i]);
      }
    }
    t.dy = room + kPiece;
    t.dy_plane = kPiece;
    return t;
  }
  static GradientTile inputs(GradientTile t, float* room) {
    fill_pairs(t.x, t.x_row, t.x_pixel, t, room);
    t.x = room;
    return t;
  }
  static void multiply(std::int64_t blocks, const GradientTile& t, std::int64_t) {
    constexpr int kSums = kTileRows * kWidth;
    alignas(64) float sums[kGradientBlocks * kSums];
    const std::int64_t count = tiles(t), plane = t.dy_plane;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);  // what loads tiles does not tell the compiler that it reads memory
    POWERLAB_TILE_ZERO(0);
    POWERLAB_TILE_ZERO(1);
    POWERLAB_TILE_ZERO(2);
    for (std::int64_t tile = 0; tile < count; ++tile) {
      const float* dy = t.dy + tile * kSums;
      POWERLAB_TILE_LOAD(3, t.x + tile * kSums, kTileRowBytes);
      POWERLAB_TILE_LOAD(4, dy, kTileRowBytes);
      POWERLAB_TILE_MULTIPLY_PAIRS(0, 4, 3);
      if (blocks > 1) {
        POWERLAB_TILE_LOAD(5, dy + plane, kTileRowBytes);
        POWERLAB_TILE_MULTIPLY_PAIRS(1, 5, 3);
      }
      if (blocks > 2) {
        POWERLAB_TILE_LOAD(6, dy + 2 * plane, kTileRowBytes);
        POWERLAB_TILE_MULTIPLY_PAIRS(2, 6, 3);
      }
    }
    POWERLAB_TILE_STORE(0, sums, kTileRowBytes);
    if (blocks > 1) POWERLAB_TILE_STORE(1, sums + kSums, kTileRowBytes);
    if (blocks > 2) POWERLAB_TILE_STORE(2, sums + 2 * kSums, kTileRowBytes);
    for (std::int64_t i = 0; i < blocks * kSums; i += kWidth) store(t.sums + i, load(t.sums + i) + load(sums + i));
  }
};

#else

struct PairProducts {
  using Lane = Word;
  static constexpr bool kOutputsFirst = false;
  struct Registers {};
  static constexpr std::int64_t kPiece = kGradientPairs * kWidth;
  static constexpr std::int64_t kRoom = (1 + kGradientBlocks) * kPiece;  // x, then the blocks of dy
  static inline Lane lane(const float* x) { return *reinterpret_cast<const Word*>(x); }
  static inline __attribute__((always_inline)) Vec add(Vec sum, Vec dy, Lane x) { return dot_pairs(sum, x, dy); }
  static inline GradientTile outputs(GradientTile t, std::int64_t blocks, float* room) {
    for (std::int64_t b = 0; b < blocks; ++b)
      pair_pixels(t.dy + b * t.dy_plane, t.dy_row, kWidth, t, room + (1 + b) * kPiece);
    t.dy = room + kPiece;
    t.dy_plane = kPiece;
    return t;
  }
  static inline GradientTile inputs(GradientTile t, float* room) {
    pair_pixels(t.x, t.x_row, t.x_pixel, t, room);
    t.x = room;
    t.x_next = 0;
    t.x_pixel = kWidth;
    t.pixels = (t.rows * t.pixels + 1) / 2;
    t.rows = 1;
    return t;
  }
  static void multiply(std::int64_t blocks, const GradientTile& t, std::int64_t lanes) {
    gradient_blocks<PairProducts>(blocks, t, lanes, typename MakeIndices<kGradientBlocks>::type{});
  }
};

#endif

}  // namespace powerlab::engine::POWERLAB_TIER
