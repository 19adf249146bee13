// Weights in fewer bits than a float, made floats in registers: for layers that wait for memory.
//
// A vector of words holds the weights of kWidth outputs for a few features each: two of fp16w and bf16w, four of int8w,
// eight of int4w. Weights of a unit of B vectors of outputs follow on each other:
//   bf16w   [word][vector][v words], the first feature in a word's lower half.
//   fp16w   [word][vector][feature of the word][v halves].
//   int8w   B vectors of scales; then [word][vector][feature of the word][v bytes].
//   int4w   for each 64 features: B vectors of words with the scales of both halves of them, in bfloat16, the first
//   ones'
//           in the lower half; then [word][vector][v words], the first feature in the lowest four bits.
// Integers are signed. Features that fill up the last word have weights of 0, and their x is not read.
#pragma once

#include "kernels/convolution/conv_direct.hpp"
#include "kernels/vec.hpp"

namespace powerlab::engine::POWERLAB_TIER {

// How far ahead weights are fetched, in words.
constexpr int kNarrowAhead = 2048;

typedef std::int32_t WordVec __attribute__((vector_size(4 * kWidth), may_alias));
typedef std::int32_t Lanes __attribute__((vector_size(4 * kWidth)));

static inline Lanes load_words(const float* p) { return *reinterpret_cast<const WordVec*>(p); }

// kWidth numbers in float16.
static inline Vec load_halves(const float* p) {
#if defined(__AVX512F__)
  // The unmasked form reads an undefined register, of which GCC warns.
  return (Vec)_mm512_maskz_cvtph_ps(0xffff, _mm256_load_si256(reinterpret_cast<const __m256i*>(p)));
#elif defined(__F16C__)
  return (Vec)_mm256_cvtph_ps(_mm_load_si128(reinterpret_cast<const __m128i*>(p)));
#elif defined(__aarch64__)
  return vcvt_f32_f16(vld1_f16(reinterpret_cast<const __fp16*>(p)));
#else
  // Exponent and fraction in a float's place mean 2^-112 of what they should.
  typedef std::uint16_t Halves __attribute__((vector_size(2 * kWidth), may_alias));
  const Lanes bits = __builtin_convertvector(*reinterpret_cast<const Halves*>(p), Lanes);
  const Vec magnitude = (Vec)((bits & 0x7fff) << 13) * 0x1p112f;
  return (Vec)((Lanes)magnitude | (bits & 0x8000) << 16);
#endif
}

// A float is a word.
struct FloatWeights {
  static constexpr int kFeatures = 1, kGroup = 0;
  static constexpr bool kScaled = false;
};

// kWidth signed bytes. GCC takes conversions of vectors of bytes apart.
static inline Lanes load_bytes_as_words(const float* p) {
#if defined(__AVX512F__)
  return (Lanes)_mm512_maskz_cvtepi8_epi32(0xffff, _mm_load_si128(reinterpret_cast<const __m128i*>(p)));
#elif defined(__AVX2__)
  return (Lanes)_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
#elif defined(__SSE4_1__)
  return (Lanes)_mm_cvtepi8_epi32(_mm_loadu_si32(p));
#elif defined(__aarch64__)
  const int8x8_t bytes = vreinterpret_s8_f32(vld1_dup_f32(p));
  return (Lanes)vmovl_s16(vget_low_s16(vmovl_s8(bytes)));
#else
  typedef std::int8_t Bytes __attribute__((vector_size(kWidth), may_alias));
  return __builtin_convertvector(*reinterpret_cast<const Bytes*>(p), Lanes);
#endif
}

struct Bfloat16Weights {
  static constexpr int kFeatures = 2, kGroup = 0;
  static constexpr bool kScaled = false;
  template <int I>
  static inline __attribute__((always_inline)) Vec at(const float* words) {
    const Lanes both = load_words(words);
    return I == 0 ? (Vec)(both << 16) : (Vec)(both & static_cast<std::int32_t>(0xffff0000));
  }
};

struct HalfWeights {
  static constexpr int kFeatures = 2, kGroup = 0;
  static constexpr bool kScaled = false;
  template <int I>
  static inline __attribute__((always_inline)) Vec at(const float* words) {
    return load_halves(words + I * kWidth / 2);
  }
};

struct ByteWeights {
  static constexpr int kFeatures = 4, kGroup = 0;
  static constexpr bool kScaled = true;
  template <int I>
  static inline __attribute__((always_inline)) Vec at(const float* words) {
    return __builtin_convertvector(load_bytes_as_words(words + I * kWidth / 4), Vec);
  }
};

// The number that each lane's lowest four bits mean; what is above them counts nothing.
static inline Vec nibbles(Lanes v) {
#if defined(__AVX512F__)
  const __m512 numbers = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2, -1);
  return (Vec)_mm512_maskz_permutexvar_ps(0xffff, (__m512i)v, numbers);
#else
  return __builtin_convertvector(v << 28 >> 28, Vec);
#endif
}

struct NibbleWeights {
  static constexpr int kFeatures = 8, kGroup = 4;  // words that share a scale
  static constexpr bool kScaled = false;
  template <int I>
  static inline __attribute__((always_inline)) Vec at(const float* words) {
    return nibbles(load_words(words) >> (4 * I));
  }
};

// Words of an output, scales among them.
template <class W>
static inline std::int64_t row_words(std::int64_t features) {
  const std::int64_t words = (features + W::kFeatures - 1) / W::kFeatures;
  if constexpr (W::kGroup > 0) return words + (words + 2 * W::kGroup - 1) / (2 * W::kGroup);
  return words + W::kScaled;
}

// What a unit's features are: those of image p begin `image` floats after those of the image before.
struct Features {
  const float* x;
  std::int64_t image;
  int count;
};

// Adds feature I of a word, and all that follow, of which there are `left`.
template <class W, int I, bool kWhole, int S, int B, int P>
static inline __attribute__((always_inline)) void add_features(Vec (&acc)[S][B][P], const float* x, std::int64_t image,
                                                               int left, const float* words) {
  if constexpr (I < W::kFeatures) {
    if (!kWhole && I >= left) return;
    Vec w[B];
    POWERLAB_UNROLL
    for (int b = 0; b < B; ++b) w[b] = W::template at<I>(words + b * kWidth);
    const float* x3 = x + 3 * image;
    const float* x6 = x3 + 3 * image;
    POWERLAB_UNROLL
    for (int p = 0; p < P; ++p) {
      const float value = p < 3 ? x[p * image + I] : p < 6 ? x3[(p - 3) * image + I] : x6[(p - 6) * image + I];
      POWERLAB_UNROLL
      for (int b = 0; b < B; ++b) acc[I % S][b][p] += w[b] * value;
    }
    add_features<W, I + 1, kWhole, S, B, P>(acc, x, image, left, words);
  }
}

// Adds some whole words, then what is left of one; returns where the next words lie.
template <class W, int S, int B, int P>
static inline __attribute__((always_inline)) const float* add_words(Vec (&acc)[S][B][P], const Features& f, int begin,
                                                                    int end, const float* words) {
  const std::int64_t image = f.image;
  const float* x = f.x + begin;
  const float* last = f.x + (end - begin) / W::kFeatures * W::kFeatures + begin;
  for (; x < last; x += W::kFeatures) {
    add_features<W, 0, true, S, B, P>(acc, x, image, W::kFeatures, words);
    POWERLAB_UNROLL
    for (int b = 0; b < B; ++b) __builtin_prefetch(words + kNarrowAhead + b * kWidth, 0, 2);
    words += B * kWidth;
  }
  if (const int left = (end - begin) % W::kFeatures) {
    add_features<W, 0, false, S, B, P>(acc, x, image, left, words);
    words += B * kWidth;
  }
  return words;
}

// sums = W x, for a unit of B vectors of outputs and P images. One image alone gets two sums where there are registers
// for them: one would wait for itself.
template <class W, int B, int P>
static inline __attribute__((always_inline)) void narrow_sums(Vec (&sums)[B][P], const Features& f,
                                                              const float* weights) {
  constexpr int S = P == 1 && kTileBlocks * kTilePixels >= 16 ? 2 : 1;
  const float* words = weights;
  if constexpr (W::kGroup > 0) {
    constexpr int kFeatures = W::kGroup * W::kFeatures;
    Vec total[B][P] = {};
    for (int begin = 0; begin < f.count; begin += 2 * kFeatures) {
      const float* scales = words;
      words += B * kWidth;
      POWERLAB_UNROLL
      for (int half = 0; half < 2; ++half) {
        const int first = begin + half * kFeatures;
        if (first >= f.count) break;
        Vec acc[S][B][P] = {};
        words = add_words<W, S, B, P>(acc, f, first, first + kFeatures < f.count ? first + kFeatures : f.count, words);
        POWERLAB_UNROLL
        for (int b = 0; b < B; ++b) {
          const Lanes both = load_words(scales + b * kWidth);
          const Vec scale = half == 0 ? (Vec)(both << 16) : (Vec)(both & static_cast<std::int32_t>(0xffff0000));
          POWERLAB_UNROLL
          for (int p = 0; p < P; ++p) total[b][p] += (S == 2 ? acc[0][b][p] + acc[S - 1][b][p] : acc[0][b][p]) * scale;
        }
      }
    }
    POWERLAB_UNROLL
    for (int b = 0; b < B; ++b) {
      POWERLAB_UNROLL
      for (int p = 0; p < P; ++p) sums[b][p] = total[b][p];
    }
  } else {
    Vec acc[S][B][P] = {};
    if (W::kScaled) words += B * kWidth;
    add_words<W, S, B, P>(acc, f, 0, f.count, words);
    POWERLAB_UNROLL
    for (int b = 0; b < B; ++b) {
      POWERLAB_UNROLL
      for (int p = 0; p < P; ++p) {
        sums[b][p] = S == 2 ? acc[0][b][p] + acc[S - 1][b][p] : acc[0][b][p];
        if (W::kScaled) sums[b][p] *= load(weights + b * kWidth);
      }
    }
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
