// Floats become bfloat16, two channels a word.
#pragma once

#include <algorithm>

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
constexpr int kImageChannels = 4;

// Puts the channels of kWidth pixels behind each other, as bfloat16s; writes kWidth times four, whatever the channels.
struct Interleave {
  int channels;
#if defined(__AVX512BF16__)
  typedef std::int16_t Order __attribute__((vector_size(64)));
  Order order[2];

  explicit Interleave(int count) : channels(count) {
    for (int i = 0; i < 4 * kWidth; ++i)
      order[i / (2 * kWidth)][i % (2 * kWidth)] = static_cast<std::int16_t>(i % channels * kWidth + i / channels);
  }
  void operator()(std::uint16_t* out, const Vec (&planes)[kImageChannels]) const {
    const __m512i first = (__m512i)_mm512_cvtne2ps_pbh((__m512)planes[1], (__m512)planes[0]);
    const __m512i second = (__m512i)_mm512_cvtne2ps_pbh((__m512)planes[3], (__m512)planes[2]);
    for (int half = 0; half < 2; ++half)
      _mm512_storeu_si512(out + half * 2 * kWidth, _mm512_permutex2var_epi16(first, (__m512i)order[half], second));
  }
#else
  explicit Interleave(int count) : channels(count) {}
  void operator()(std::uint16_t* out, const Vec (&planes)[kImageChannels]) const {
    alignas(4 * kWidth) std::uint16_t narrow[kImageChannels][kWidth];
    for (int c = 0; c < channels; ++c) store_narrow(reinterpret_cast<float*>(narrow[c]), planes[c]);
    for (int i = 0; i < kWidth; ++i) {
      for (int c = 0; c < channels; ++c) *out++ = narrow[c][i];
    }
  }
#endif
};

// x in up to four planes of floats, as an image comes from outside. In a row of out pixels follow on each other, each
// of numbers[0] channels, behind numbers[1] zeros; zeros fill it up, and channels that x does not have.
static void narrow_image(const Step& s, int thread, int threads) {
  const int channels = static_cast<int>(s.numbers[0]);
  const Interleave interleave(channels);
  const std::int64_t before = s.numbers[1], all = 2 * s.out.w * s.out.pixel;
  const Range rows = row_share(s.out, thread, threads);
  for (std::int64_t unit = rows.begin; unit < rows.end; ++unit) {
    const Row row = row_of(unit, s.out);
    const float* x = row_start(s.x, {row.n, 0, row.y});
    auto* out = reinterpret_cast<std::uint16_t*>(row_start(s.out, row));
    std::fill_n(out, before, std::uint16_t{0});
    out += before;
    const auto* end = out + all - before;
    for (std::int64_t begin = 0; begin < s.x.w; begin += kWidth) {
      const int count = static_cast<int>(s.x.w - begin < kWidth ? s.x.w - begin : kWidth);
      Vec planes[kImageChannels] = {};
      for (int c = 0; c < s.x.c; ++c) {
        const float* from = x + c * s.x.plane + begin;
        planes[c] = count == kWidth ? load_unaligned(from) : load_lanes(from, count);
      }
      if (end - out >= 4 * kWidth) {
        interleave(out, planes);
      } else {
        alignas(4 * kWidth) std::uint16_t pixels[4 * kWidth];
        interleave(pixels, planes);
        std::copy_n(pixels, count * channels, out);
      }
      out += count * channels;
    }
    std::fill(out, out + (end - out), std::uint16_t{0});
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
