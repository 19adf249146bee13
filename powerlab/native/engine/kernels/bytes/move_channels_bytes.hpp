// Channels of one tensor of bytes as channels of another, where they begin at any byte of a block: what concatenations
// and slices do with channels that do not fill whole blocks.
//
// numbers: the first channel of x, the first channel of out, how many. The other channels of out stay as they are. A
// block of out has bytes of one block of x, and of the next one.
#pragma once

#include "kernels/bytes/words.hpp"

namespace powerlab::engine::POWERLAB_TIER {

// Bytes of two blocks, from where two others say; 0 where these say 128.
static inline __attribute__((always_inline)) Block bytes_of_two(Block low, Block high, Block from_low,
                                                                Block from_high) {
#if defined(__SSE4_1__)
  return (Block)_mm_or_si128(_mm_shuffle_epi8((__m128i)low, (__m128i)from_low),
                             _mm_shuffle_epi8((__m128i)high, (__m128i)from_high));
#elif defined(__aarch64__)
  return (Block)(vqtbl1q_u8((uint8x16_t)low, (uint8x16_t)from_low) |
                 vqtbl1q_u8((uint8x16_t)high, (uint8x16_t)from_high));
#else
  Block found{};
  for (int i = 0; i < kBlockBytes; ++i) {
    if (from_low[i] < kBlockBytes) found[i] = low[from_low[i]];
    if (from_high[i] < kBlockBytes) found[i] = high[from_high[i]];
  }
  return found;
#endif
}

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
  Block from_low, from_high, kept;
  for (int i = 0; i < kBlockBytes; ++i) {
    const bool is_moved = i >= moved.begin && i < moved.end;
    const int at = i - moved.begin + first;
    from_low[i] = static_cast<Stored>(is_moved && at < kBlockBytes ? at : 128);
    from_high[i] = static_cast<Stored>(is_moved && at >= kBlockBytes ? at - kBlockBytes : 128);
    kept[i] = static_cast<Stored>(is_moved ? 0 : -1);
  }
  for (std::int64_t i = 0; i < pixels * kBlockBytes; i += kBlockBytes) {
    const Block found = bytes_of_two(load_block(low + i), load_block(high + i), from_low, from_high);
    store_block(out + i, found | (load_block(out + i) & kept));
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
