// Gradients of convolutions' weights in bfloat16, sums in float32: training/gradient_pieces.hpp with two pixels a word.
//
// What is multiplied are floats in blocks: the pixels of a piece become bfloat16 in scratch, where they are read as
// often as a tile passes. A lane of a word holds one channel of two pixels that follow on each other; where a piece has
// an odd number of them, the last has a zero beside it.
#pragma once

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

struct PairProducts {
  using Lane = Word;
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
};

}  // namespace powerlab::engine::POWERLAB_TIER
