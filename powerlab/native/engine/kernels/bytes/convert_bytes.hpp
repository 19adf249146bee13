// Bytes to bytes of another scale, alone or as a sum of two; floats to bytes and back.
#pragma once

#include "kernels/bytes/requantize.hpp"

namespace powerlab::engine::POWERLAB_TIER {

// out = round((x - [2]) * beta + (y - [1]) * alpha), y being absent or of the same shape.
static void add_bytes(const Step& s, int thread, int threads) {
  const Requantize r = requantize_of(s);
  const IVec zero = every(stored_zero(s, 2));
  const Range rows = row_share(s.out, thread, threads);
  const std::int64_t count = static_cast<std::int64_t>(s.out.w) * kBlockVectors;
  for (std::int64_t unit = rows.begin; unit < rows.end; ++unit) {
    const Row row = row_of(unit, s.out);
    const std::uint8_t* x = bytes_of(row_start(s.x, row));
    const std::uint8_t* y = s.y.data ? bytes_of(row_start(s.y, row)) : nullptr;
    std::uint8_t* out = bytes_of(row_start(s.out, row));
    for (std::int64_t i = 0; i < count; ++i) {
      Vec steps = __builtin_convertvector(load_bytes(x + i * kWidth) - zero, Vec) * s.beta;
      if (y) steps += scaled(load_bytes(y + i * kWidth), r);
      store_bytes(out + i * kWidth, to_bytes(steps, r));
    }
  }
}

// out = round(x * multiplier + shift) for each channel: multipliers in the weights, shifts in the bias, both filled up.
static void scale_shift_bytes(const Step& s, int thread, int threads) {
  const Requantize r = requantize_of(s);
  const Range rows = row_share(s.out, thread, threads);
  for (std::int64_t unit = rows.begin; unit < rows.end; ++unit) {
    const Row row = row_of(unit, s.out);
    for (int part = 0; part < kBlockVectors; ++part) {
      const std::int64_t channel = row.block * kBlockBytes + part * kWidth;
      const Vec factor = load_unaligned(s.weights + channel), shift = load_unaligned(s.bias + channel);
      const std::uint8_t* x = bytes_of(row_start(s.x, row)) + part * kWidth;
      std::uint8_t* out = bytes_of(row_start(s.out, row)) + part * kWidth;
      const auto steps_of = [&](std::int64_t i) {
        return __builtin_convertvector(load_bytes(x + i * kBlockBytes) + kStoredLess, Vec) * factor + shift;
      };
      std::int64_t i = 0;
      for (; i + 4 <= s.out.w; i += 4) {
        const Vec steps[] = {steps_of(i), steps_of(i + 1), steps_of(i + 2), steps_of(i + 3)};
        store_pixels(out + i * kBlockBytes, steps, r);
      }
      for (; i < s.out.w; ++i) {
        const Vec steps[] = {steps_of(i)};
        store_pixels(out + i * kBlockBytes, steps, r);
      }
    }
  }
}

// Numbers divided by a scale, rounded as a division is, in three multiplications where one takes a third of its time:
// the quotient's error is what is left of x, if the reciprocal is rounded correctly and nothing comes near the smallest
// floats (P. Markstein, "Computation of elementary functions on the IBM RISC System/6000", 1990, theorem 8).
struct Divisor {
  float scale, reciprocal;
  bool is_usual;
};
static inline Divisor divisor_of(float scale) { return {scale, 1 / scale, scale > 1e-18f && scale < 1e18f}; }
static inline Vec divided(Vec x, const Divisor& by) {
#if defined(__AVX512F__)
  if (by.is_usual) {
    const __m512 scale = _mm512_set1_ps(by.scale), reciprocal = _mm512_set1_ps(by.reciprocal);
    const Vec near = x * broadcast(by.reciprocal);
    const __m512 left = _mm512_fnmadd_ps((__m512)near, scale, (__m512)x);
    const Vec found = (Vec)_mm512_fmadd_ps(left, reciprocal, (__m512)near);
    return found == found ? found : near;  // infinity less infinity is no number
  }
#endif
  return x / broadcast(by.scale);
}

// Floats divided by the scale; not-a-number becomes the zero point.
static inline IVec quantized(Vec x, const Divisor& by, const Requantize& r) {
  const Vec steps = divided(x, by);
  return to_bytes(steps == steps ? steps : Vec{}, r);
}

#if defined(__AVX512F__)
// Four vectors of floats as steps that packed() takes. What is no number, or infinite, shows in what was found.
static inline __attribute__((always_inline)) void to_steps(Vec (&x)[4], const Divisor& by, const Requantize& r) {
  const __m512 scale = _mm512_set1_ps(by.scale), reciprocal = _mm512_set1_ps(by.reciprocal);
  Vec found[4];
  POWERLAB_UNROLL
  for (int i = 0; i < 4; ++i) {
    const Vec near = x[i] * broadcast(by.reciprocal);
    const __m512 left = _mm512_fnmadd_ps((__m512)near, scale, (__m512)x[i]);
    found[i] = (Vec)_mm512_fmadd_ps(left, reciprocal, (__m512)near);
  }
  const auto unusual = [&](int i) { return _mm512_cmp_ps_mask((__m512)found[i], (__m512)found[i + 1], _CMP_UNORD_Q); };
  if (__builtin_expect(!by.is_usual || (unusual(0) | unusual(2)) != 0, 0)) {
    for (int i = 0; i < 4; ++i) {
      const Vec steps = divided(x[i], by);
      found[i] = steps == steps ? steps : Vec{};
    }
  }
  POWERLAB_UNROLL
  for (int i = 0; i < 4; ++i) x[i] = found[i] < r.high ? found[i] : broadcast(r.high);
}
#endif

// Whole vectors of floats that follow on each other, multiplied by one where that is wanted.
template <bool kMultiplied = false>
static inline void quantize_run(const float* x, std::uint8_t* out, std::int64_t count, const Divisor& by,
                                const Requantize& r, [[maybe_unused]] Vec factor = Vec{}) {
  const auto floats = [&](std::int64_t at) {
    const Vec found = load_unaligned(x + at);
    return kMultiplied ? found * factor : found;
  };
  std::int64_t i = 0;
#if defined(__AVX512F__)
  for (; i + 4 * kWidth <= count; i += 4 * kWidth) {
    Vec steps[] = {floats(i), floats(i + kWidth), floats(i + 2 * kWidth), floats(i + 3 * kWidth)};
    to_steps(steps, by, r);
    *reinterpret_cast<UnalignedIVec*>(out + i) = packed(steps, r);
  }
#endif
  for (; i < count; i += kWidth) store_bytes(out + i, quantized(floats(i), by, r));
}

// x in blocks of kWidth floats; y: one number a channel of each image, by which x is multiplied before, or absent.
static void quantize_blocks(const Step& s, int thread, int threads) {
  const Requantize r = requantize_of(s);
  const Divisor by = divisor_of(s.alpha);
  const Range rows = row_share(s.out, thread, threads);
  for (std::int64_t unit = rows.begin; unit < rows.end; ++unit) {
    const Row row = row_of(unit, s.out);
    for (int part = 0; part < kBlockVectors; ++part) {
      const std::int64_t block = row.block * kBlockVectors + part;
      if (block >= s.x.blocks) break;
      const float* x = row_start(s.x, {row.n, block, row.y});
      const Vec factor = s.y.data ? load(row_start(s.y, {row.n, block, 0})) : broadcast(1);
      std::uint8_t* out = bytes_of(row_start(s.out, row)) + part * kWidth;
      if constexpr (kBlockVectors == 1) {
        const std::int64_t count = s.out.w * static_cast<std::int64_t>(kWidth);
        s.y.data ? quantize_run<true>(x, out, count, by, r, factor) : quantize_run(x, out, count, by, r);
      } else {
        for (std::int64_t i = 0; i < s.out.w; ++i) {
          store_bytes(out + i * kBlockBytes, quantized(load(x + i * kWidth) * factor, by, r));
        }
      }
    }
  }
}

// x in planes; out in blocks, or one word a pixel where that is all an image has.
static void quantize_planes(const Step& s, int thread, int threads) {
  const Requantize r = requantize_of(s);
  const Divisor by = divisor_of(s.alpha);
  const Range rows = row_share(s.out, thread, threads);
  for (std::int64_t unit = rows.begin; unit < rows.end; ++unit) {
    const Row row = row_of(unit, s.out);
    float* out = row_start(s.out, row);
    for (int word = 0; word < s.out.pixel; ++word) {
      const std::int64_t channel = row.block * s.out.pixel * 4 + word * 4;
      if (channel >= s.x.c) break;
      const int channels = s.x.c - channel < 4 ? static_cast<int>(s.x.c - channel) : 4;
      const float* planes[4] = {};
      for (int c = 0; c < channels; ++c) planes[c] = row_start(s.x, {row.n, channel + c, row.y});
      for (std::int64_t i = 0; i < s.out.w; i += kWidth) {
        const int lanes = s.out.w - i < kWidth ? static_cast<int>(s.out.w - i) : kWidth;
        IVec words = {};
        for (int c = 0; c < channels; ++c) {
          const float* x = planes[c] + i;
          words |= (quantized(lanes == kWidth ? load_unaligned(x) : load_lanes(x, lanes), by, r) & 255) << (8 * c);
        }
        alignas(4 * kWidth) std::int32_t all[kWidth];
        *reinterpret_cast<UnalignedIVec*>(all) = words;
        Word* to = reinterpret_cast<Word*>(out + i * s.out.pixel + word);
        if (s.out.pixel == 1 && lanes == kWidth) {
          *reinterpret_cast<UnalignedIVec*>(to) = words;
        } else {
          for (int lane = 0; lane < lanes; ++lane) to[lane * s.out.pixel] = all[lane];
        }
      }
    }
  }
}

// x in rows of channels, which follow on each other: images of one pixel.
static void quantize_rows(const Step& s, int thread, int threads) {
  const Requantize r = requantize_of(s);
  const Divisor by = divisor_of(s.alpha);
  const Range rows = share(s.out.n, thread, threads);
  const int whole = s.x.c / kWidth * kWidth;
  for (std::int64_t n = rows.begin; n < rows.end; ++n) {
    const float* x = s.x.data + n * s.x.image;
    std::uint8_t* out = bytes_of(s.out.data + n * s.out.image);
    quantize_run(x, out, whole, by, r);
    if (whole < s.x.c) store_bytes(out + whole, quantized(load_lanes(x + whole, s.x.c - whole), by, r));
  }
}

// Nearest neighbour by whole factors: every pixel of x becomes stride_h x stride_w pixels of out.
static void resize_nearest_bytes(const Step& s, int thread, int threads) {
  const Range rows = row_share(s.out, thread, threads);
  for (std::int64_t unit = rows.begin; unit < rows.end; ++unit) {
    const Row r = row_of(unit, s.out);
    const std::uint8_t* x = bytes_of(row_start(s.x, {r.n, r.block, r.y / s.stride_h}));
    std::uint8_t* out = bytes_of(row_start(s.out, r));
    for (int column = 0; column < s.x.w; ++column) {
      const Block pixel = load_block(x + column * kBlockBytes);
      for (int copy = 0; copy < s.stride_w; ++copy, out += kBlockBytes) store_block(out, pixel);
    }
  }
}

// out in blocks of kWidth floats: steps of x times offset, which is their size; a function may end them.
static void dequantize_blocks(const Step& s, int thread, int threads) {
  const Range rows = row_share(s.out, thread, threads);
  const IVec zero = every(stored_zero(s, 2));
  for (std::int64_t unit = rows.begin; unit < rows.end; ++unit) {
    const Row row = row_of(unit, s.out);
    const std::uint8_t* x =
        bytes_of(row_start(s.x, {row.n, row.block / kBlockVectors, row.y})) + row.block % kBlockVectors * kWidth;
    float* out = row_start(s.out, row);
    for (std::int64_t i = 0; i < s.out.w; ++i) {
      store(out + i * kWidth, __builtin_convertvector(load_bytes(x + i * kBlockBytes) - zero, Vec) * s.offset);
    }
    if (s.function != kNoFunction) POWERLAB_BASE_TIER::finish_tile(s, {out, 0, kWidth, 1, s.out.w});
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
