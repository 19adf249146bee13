// Channels of one tensor of bytes as channels of another, where they begin at any byte of a block: what concatenations
// and slices do with channels that do not fill whole blocks.
//
// numbers: the first channel of x, the first channel of out, how many. The other channels of out stay as they are. A
// block of out has bytes of one block of x, and of the next one.
#pragma once

#include "kernels/bytes/words.hpp"

namespace powerlab::engine::POWERLAB_TIER {

// What a block of out takes from x: bytes [begin, end), from channel `from` on.
struct MovedBytes {
  int begin, end;
  std::int64_t from;
};

// One row of one block of out; x is the same row of block 0.
static void move_bytes_row(const std::uint8_t* x, std::int64_t plane, std::uint8_t* out, std::int64_t pixels,
                           const MovedBytes& moved) {
  // Byte i of out is byte i - begin + first of two blocks of x that follow on each other.
  const int first = static_cast<int>(moved.from % kBlockBytes);
  const std::uint8_t* low = x + moved.from / kBlockBytes * plane;
  const std::uint8_t* high = first + moved.end - moved.begin > kBlockBytes ? low + plane : low;
  Block from{}, own{};
  for (int i = moved.begin; i < moved.end; ++i) {
    from[i] = static_cast<Stored>(i - moved.begin + first);
    own[i] = static_cast<Stored>(-1);
  }
  for (std::int64_t i = 0; i < pixels * kBlockBytes; i += kBlockBytes) {
    const Block found = __builtin_shuffle(load_block(low + i), load_block(high + i), from);
    store_block(out + i, (found & own) | (load_block(out + i) & ~own));
  }
}

static void move_channels_bytes(const Step& s, int thread, int threads) {
  const std::int64_t from = s.numbers[0], to = s.numbers[1], count = s.numbers[2];
  const std::int64_t first_block = to / kBlockBytes, blocks = (to + count - 1) / kBlockBytes - first_block + 1;
  const Range rows = share(s.out.n * blocks * s.out.h, thread, threads);
  for (std::int64_t unit = rows.begin; unit < rows.end; ++unit) {
    const std::int64_t y = unit % s.out.h, block = first_block + unit / s.out.h % blocks, n = unit / s.out.h / blocks;
    const std::int64_t channel = block * kBlockBytes, end = to + count - channel;
    MovedBytes moved;
    moved.begin = static_cast<int>(to > channel ? to - channel : 0);
    moved.end = static_cast<int>(end < kBlockBytes ? end : kBlockBytes);
    moved.from = from + channel + moved.begin - to;
    move_bytes_row(bytes_of(row_start(s.x, {n, 0, y})), 4 * s.x.plane, bytes_of(row_start(s.out, {n, block, y})),
                   s.out.w, moved);
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
