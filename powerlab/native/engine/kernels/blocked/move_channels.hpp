// Channels of one blocked tensor as channels of another, where they begin at any lane of a block: what Concat and Slice
// do with channels that do not fill whole blocks.
//
// numbers: the first channel of x, the first channel of out, how many. The other channels of out stay as they are, but
// those that fill up its last block become zero. A vector of out has lanes of one block of x, moved by a number of
// lanes, and of the next one: both are read where lanes and pixels lie beside each other in memory.
#pragma once

#include "kernels/strided/normalise_rows.hpp"

namespace powerlab::engine::POWERLAB_TIER {

// What a block of out takes from x: lanes [begin, end) from channel `from` on.
struct MovedLanes {
  int begin, end;
  std::int64_t from;
};

static inline float moved_lane(const float* x, std::int64_t plane, const MovedLanes& lanes, int lane) {
  const std::int64_t channel = lanes.from + lane - lanes.begin;
  return x[channel / kWidth * plane + channel % kWidth];
}

// One row of one block of out; x is the same row of block 0.
static void move_channels_row(const float* x, std::int64_t plane, float* out, int pixels, const MovedLanes& lanes,
                              int channels) {
  // Lane `begin` of out is lane `first` of a block of x; the lanes before `turn` come from that block.
  const int first = static_cast<int>(lanes.from % kWidth);
  const int turn = lanes.begin + kWidth - first;
  const float* low = x + lanes.from / kWidth * plane;
  const bool crosses = turn < lanes.end;
  const IntVec at = lane_numbers();
  const auto own = (at >= lanes.begin) & (at < lanes.end);
  const auto there = at < channels;
  const auto upper = at >= turn;
  for (int i = 0; i < pixels; ++i, out += kWidth) {
    const Vec held = there ? load(out) : Vec{};
    if (i == 0 || i == pixels - 1) {  // beside the row there may be nothing to read
      store(out, held);
      for (int lane = lanes.begin; lane < lanes.end; ++lane) {
        out[lane] = moved_lane(x + i * static_cast<std::int64_t>(kWidth), plane, lanes, lane);
      }
      continue;
    }
    const float* pixel = low + i * static_cast<std::int64_t>(kWidth) + first - lanes.begin;
    Vec moved = load_unaligned(pixel);
    if (crosses) moved = upper ? load_unaligned(pixel + plane - kWidth) : moved;
    store(out, own ? moved : held);
  }
}

static void move_channels(const Step& s, int thread, int threads) {
  const std::int64_t from = s.numbers[0], to = s.numbers[1], count = s.numbers[2];
  const std::int64_t first_block = to / kWidth, blocks = (to + count - 1) / kWidth - first_block + 1;
  const Range rows = share(s.out.n * blocks * s.out.h, thread, threads);
  for (std::int64_t unit = rows.begin; unit < rows.end; ++unit) {
    const std::int64_t y = unit % s.out.h, block = first_block + unit / s.out.h % blocks, n = unit / s.out.h / blocks;
    const std::int64_t lane0 = block * kWidth;
    MovedLanes lanes;
    lanes.begin = static_cast<int>(to > lane0 ? to - lane0 : 0);
    lanes.end = static_cast<int>(to + count < lane0 + kWidth ? to + count - lane0 : kWidth);
    lanes.from = from + lane0 + lanes.begin - to;
    const std::int64_t left = s.out.c - lane0;
    move_channels_row(row_start(s.x, {n, 0, y}), s.x.plane, row_start(s.out, {n, block, y}), s.out.w, lanes,
                      static_cast<int>(left < kWidth ? left : kWidth));
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
