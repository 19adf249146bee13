// Floats become bfloat16, two channels a word.
#pragma once

#include "kernels/pairs/words.hpp"

namespace powerlab::engine::POWERLAB_TIER {

// x in blocks of kWidth floats, out in blocks of 16-bit floats, filled up with zeros. Changed: out = activate(x * scale
// + shift) first, scales of the channels being the weights, shifts the bias, and the activation that of x.
template <bool kChanged>
static void narrow_blocks(const Step& s, int thread, int threads) {
  const Range rows = row_share(s.out, thread, threads);
  for (std::int64_t unit = rows.begin; unit < rows.end; ++unit) {
    const Row row = row_of(unit, s.out);
    for (int part = 0; part < kBlockVectors; ++part) {
      const std::int64_t block = row.block * kBlockVectors + part, channels = s.x.c - block * kWidth;
      float* out = row_start(s.out, row) + part * (kWidth / 2);
      const float* x = row_start(s.x, {row.n, channels > 0 ? block : 0, row.y});
      const int lanes = channels > kWidth ? kWidth : channels > 0 ? static_cast<int>(channels) : 0;
      Vec scale = broadcast(1), shift = Vec{};
      if (kChanged && lanes > 0) {
        scale = load_unaligned(s.weights + block * kWidth);
        shift = load_unaligned(s.bias + block * kWidth);
      }
      for (std::int64_t i = 0; i < s.out.w; ++i) {
        Vec v = lanes == kWidth ? load(x + i * kWidth) : load_lanes(x + i * kWidth, lanes);
        if (kChanged) v = activate(v * scale + shift, s.x_slope, s.x_low, s.x_high);
        store_narrow(out + i * kBlockWords, v);
      }
    }
  }
}

// x in planes of floats, one a channel, as an image comes from outside; out likewise.
static void narrow_planes(const Step& s, int thread, int threads) {
  const Range rows = row_share(s.out, thread, threads);
  for (std::int64_t unit = rows.begin; unit < rows.end; ++unit) {
    const Row row = row_of(unit, s.out);
    const std::int64_t first = row.block * kBlockChannels, left = s.x.c - first;
    const std::int64_t channels = left < kBlockChannels ? left : kBlockChannels;
    const float* x = row_start(s.x, {row.n, first, row.y});
    float* out = row_start(s.out, row);
    // Several pixels at once: a vector read right after its numbers were written would wait for them.
    constexpr std::int64_t kPixels = 16;
    alignas(4 * kWidth) float pixels[kPixels][kBlockChannels] = {};
    for (std::int64_t begin = 0; begin < s.out.w; begin += kPixels) {
      const std::int64_t count = s.out.w - begin < kPixels ? s.out.w - begin : kPixels;
      for (std::int64_t c = 0; c < channels; ++c) {
        for (std::int64_t i = 0; i < count; ++i) pixels[i][c] = x[c * s.x.plane + begin + i];
      }
      for (std::int64_t i = 0; i < count; ++i, out += kBlockWords) {
        for (int part = 0; part < kBlockVectors; ++part)
          store_narrow(out + part * (kWidth / 2), load(pixels[i] + part * kWidth));
      }
    }
  }
}

#if !defined(POWERLAB_HALVES)
// The same of up to four channels, out in pixels of two words.
static void narrow_image(const Step& s, int thread, int threads) {
  const Range rows = row_share(s.out, thread, threads);
  for (std::int64_t unit = rows.begin; unit < rows.end; ++unit) {
    const Row row = row_of(unit, s.out);
    const float* x = row_start(s.x, {row.n, 0, row.y});
    float* out = row_start(s.out, row);
    for (std::int64_t begin = 0; begin < s.out.w; begin += kWidth) {
      const int count = static_cast<int>(s.out.w - begin < kWidth ? s.out.w - begin : kWidth);
      const auto plane = [&](int c) {
        if (c >= s.x.c) return Vec{};
        const float* from = x + c * s.x.plane + begin;
        return count == kWidth ? load_unaligned(from) : load_lanes(from, count);
      };
      alignas(4 * kWidth) float words[2][kWidth];
      store(words[0], pair_up(plane(0), plane(1)));
      store(words[1], pair_up(plane(2), plane(3)));
      for (int i = 0; i < count; ++i, out += 2) {
        out[0] = words[0][i];
        out[1] = words[1][i];
      }
    }
  }
}
#endif

// Rows of x.w floats become rows of words, filled up to s.out.w of them with zeros, a multiple of a block's.
static void narrow_rows(const Step& s, int thread, int threads) {
  const Range rows = share(s.out.h, thread, threads);
  for (std::int64_t y = rows.begin; y < rows.end; ++y) {
    const float* x = s.x.data + y * s.x.row;
    float* out = s.out.data + y * s.out.row;
    std::int64_t i = 0;
    for (; i + kWidth <= s.x.w; i += kWidth) store_narrow(out + i / 2, load_unaligned(x + i));
    for (; i < 2 * s.out.w; i += kWidth) {
      const std::int64_t left = s.x.w - i;
      store_narrow(out + i / 2, left > 0 ? load_lanes(x + i, static_cast<int>(left)) : Vec{});
    }
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
