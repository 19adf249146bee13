// Pools of bytes. Windows are cut at the edges of the plane, so x needs no halo.
//
// Maxima keep scale and zero point. Averages are round(sum of steps of x * (beta / pixels counted)) steps of out, the
// quotient being rounded to float first.
#pragma once

#include "kernels/bytes/requantize.hpp"

namespace powerlab::engine::POWERLAB_TIER {

struct ByteSpan {
  int begin, end;
};
static inline ByteSpan byte_window(std::int64_t at, int stride, int pad, int kernel, int size) {
  const int begin = static_cast<int>(at) * stride - pad, end = begin + kernel;
  return {begin < 0 ? 0 : begin, end > size ? size : end};
}

static void pool_max_bytes(const Step& s, int thread, int threads) {
  // Copied, for the bytes that are stored could be the step's own as far as a compiler can tell.
  const int stride = s.stride_w, pad = s.pad_left, kernel = s.kernel_w, width = s.x.w, columns = s.out.w;
  const std::int64_t row_bytes = s.x.row * std::int64_t{sizeof(float)};
  const Range rows = row_share(s.out, thread, threads);
  for (std::int64_t unit = rows.begin; unit < rows.end; ++unit) {
    const Row r = row_of(unit, s.out);
    const ByteSpan down = byte_window(r.y, s.stride_h, s.pad_top, s.kernel_h, s.x.h);
    const std::uint8_t* first = bytes_of(row_start(s.x, {r.n, r.block, down.begin}));
    std::uint8_t* out = bytes_of(row_start(s.out, r));
    for (int at = 0; at < columns; ++at, out += kBlockBytes) {
      const ByteSpan across = byte_window(at, stride, pad, kernel, width);
      Block most = Block{} + static_cast<Stored>(kLeastStored);
      const std::uint8_t* row = first;
      for (int y = down.begin; y < down.end; ++y, row += row_bytes) {
        for (int column = across.begin; column < across.end; ++column) {
          const Block v = load_block(row + column * kBlockBytes);
          most = most > v ? most : v;
        }
      }
      store_block(out, most);
    }
  }
}

// The average of a window of x at one vector of channels of one block.
static inline void average_bytes(const Step& s, const Row& r, const ByteSpan& down, const ByteSpan& across, int divisor,
                                 std::uint8_t* out) {
  const Requantize requantize = requantize_of(s);
  const std::int32_t count = (down.end - down.begin) * (across.end - across.begin);
  for (int part = 0; part < kBlockVectors; ++part) {
    IVec sums = every(-count * stored_zero(s, 2));
    for (int y = down.begin; y < down.end; ++y) {
      const std::uint8_t* x = bytes_of(row_start(s.x, {r.n, r.block, y})) + part * kWidth;
      for (int column = across.begin; column < across.end; ++column) sums += load_bytes(x + column * kBlockBytes);
    }
    const Vec steps = __builtin_convertvector(sums, Vec) * (s.beta / static_cast<float>(divisor));
    store_bytes(out + part * kWidth, to_bytes(steps, requantize));
  }
}

static void pool_average_bytes(const Step& s, int thread, int threads) {
  const Range rows = row_share(s.out, thread, threads);
  for (std::int64_t unit = rows.begin; unit < rows.end; ++unit) {
    const Row r = row_of(unit, s.out);
    const ByteSpan down = byte_window(r.y, s.stride_h, s.pad_top, s.kernel_h, s.x.h);
    std::uint8_t* out = bytes_of(row_start(s.out, r));
    for (int at = 0; at < s.out.w; ++at) {
      const ByteSpan across = byte_window(at, s.stride_w, s.pad_left, s.kernel_w, s.x.w);
      const int inside = (down.end - down.begin) * (across.end - across.begin);
      average_bytes(s, r, down, across, s.count_padding ? s.kernel_h * s.kernel_w : inside, out + at * kBlockBytes);
    }
  }
}

static void pool_global_average_bytes(const Step& s, int thread, int threads) {
  const Range rows = row_share(s.out, thread, threads);
  for (std::int64_t unit = rows.begin; unit < rows.end; ++unit) {
    const Row r = row_of(unit, s.out);
    average_bytes(s, r, {0, s.x.h}, {0, s.x.w}, s.x.h * s.x.w, bytes_of(row_start(s.out, r)));
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
