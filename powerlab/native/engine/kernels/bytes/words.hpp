// Quantized tensors: bytes in blocks of 16 channels, and the multiplications that instruction sets have for them.
//
// [n][c / 16][h][w][16] with unsigned bytes; on Arm, which multiplies signed ones, each is stored as 128 less. A View
// counts strides in floats as always: a float is a word of four channels, so a pixel of a block is four words. What a
// byte q stands for is scale * (q - zero point); a halo holds zero points (Step::halo). Vectors of sums have the tier's
// width, so a block of bytes is 16 / kWidth of them.
//
// The leaves below are the only functions with intrinsics: no operator means them. Each multiplies the four channels
// of a word, in all lanes the same, with four weights a lane, and adds all to the lane's sum, exactly:
//   AVX-512 VNNI, AVX-VNNI  vpdpbusd: one instruction. Beside AMX, whose tiles multiply in convolutions (amx.hpp),
//                           words of the last block are filled up with zeros.
//   AVX2, SSE4, AVX-512     even and odd channels widened to 16 bits, vpmaddwd for each. Where no two products of a
//                           word exceed 16 bits, whatever x is, weights are narrow: vpmaddubsw adds them without
//                           widening, and would saturate where they did; vpmaddwd by 1 adds pairs of these. Where no
//                           four of two words do, vpaddw adds the pairs of both words before.
//   Arm with matrices       smmla, in convolutions: see matrix_tile.hpp.
//   Arm with dot products   sdot.
//   Arm                     smull, smlal: two products of 8 bits fit into 16, as weights are -127 or more; sadalp adds
//                           pairs of these to the sums.
//   any other               shifts and multiplications of 32 bits.
#pragma once

#include "kernels/word_tiles.hpp"

namespace powerlab::engine::POWERLAB_BASE_TIER {
void finish_tile(const Step& s, const OutTile& tile);  // in tiers/tier.cpp: floats as the tier computes them
}

namespace powerlab::engine::POWERLAB_TIER {

typedef std::int32_t IVec __attribute__((vector_size(4 * kWidth)));
typedef std::int32_t UnalignedIVec __attribute__((vector_size(4 * kWidth), aligned(4), may_alias));
typedef std::uint8_t BVec __attribute__((vector_size(kWidth)));
typedef std::uint8_t UnalignedBVec __attribute__((vector_size(kWidth), aligned(1), may_alias));
typedef std::int8_t SVec __attribute__((vector_size(kWidth)));
typedef std::int8_t UnalignedSVec __attribute__((vector_size(kWidth), aligned(1), may_alias));
// How bytes of activations are stored, and how much less than they are.
#if defined(__aarch64__)
using Stored = std::int8_t;
constexpr int kStoredLess = 128;
#else
using Stored = std::uint8_t;
constexpr int kStoredLess = 0;
#endif
constexpr int kLeastStored = -kStoredLess, kMostStored = 255 - kStoredLess;
typedef Stored Block __attribute__((vector_size(16)));
typedef Stored UnalignedBlock __attribute__((vector_size(16), aligned(1), may_alias));
typedef std::int32_t UnalignedWord __attribute__((may_alias, aligned(1)));

constexpr int kBlockBytes = 16, kBlockWords = 4;
constexpr int kBlockVectors = kBlockBytes / kWidth;  // vectors of sums that a block of bytes is made of

static inline std::uint8_t* bytes_of(float* p) { return reinterpret_cast<std::uint8_t*>(p); }
static inline const std::uint8_t* bytes_of(const float* p) { return reinterpret_cast<const std::uint8_t*>(p); }

static inline IVec load_ints(const void* p) { return *static_cast<const UnalignedIVec*>(p); }

// Bytes as they are stored, widened to the lanes of integers, and the lowest byte of each lane. GCC takes conversions
// of vectors apart into single bytes, so these are intrinsics too.
#if defined(__AVX512F__)
constexpr __mmask16 kAllLanes = 0xffff;  // unmasked forms read an undefined register, of which GCC warns
static inline IVec load_bytes(const std::uint8_t* p) {
  return (IVec)_mm512_maskz_cvtepu8_epi32(kAllLanes, _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
static inline IVec load_signed(const std::int8_t* p) {
  return (IVec)_mm512_maskz_cvtepi8_epi32(kAllLanes, _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
static inline void store_bytes(std::uint8_t* p, IVec v) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_maskz_cvtepi32_epi8(kAllLanes, (__m512i)v));
}
#elif defined(__AVX2__)
static inline IVec load_bytes(const std::uint8_t* p) {
  return (IVec)_mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
}
static inline IVec load_signed(const std::int8_t* p) {
  return (IVec)_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(p)));
}
static inline void store_bytes(std::uint8_t* p, IVec v) {
  const __m128i lowest = _mm_set1_epi32(0x0c080400);
  const __m128i low = _mm_shuffle_epi8(_mm256_castsi256_si128((__m256i)v), lowest);
  const __m128i high = _mm_shuffle_epi8(_mm256_extracti128_si256((__m256i)v, 1), lowest);
  _mm_storel_epi64(reinterpret_cast<__m128i*>(p), _mm_unpacklo_epi32(low, high));
}
#elif defined(__SSE4_1__)
static inline IVec load_bytes(const std::uint8_t* p) {
  return (IVec)_mm_cvtepu8_epi32(_mm_cvtsi32_si128(*reinterpret_cast<const UnalignedWord*>(p)));
}
static inline IVec load_signed(const std::int8_t* p) {
  return (IVec)_mm_cvtepi8_epi32(_mm_cvtsi32_si128(*reinterpret_cast<const UnalignedWord*>(p)));
}
static inline void store_bytes(std::uint8_t* p, IVec v) {
  const __m128i bytes = _mm_shuffle_epi8((__m128i)v, _mm_set1_epi32(0x0c080400));
  *reinterpret_cast<UnalignedWord*>(p) = _mm_cvtsi128_si32(bytes);
}
#elif defined(__aarch64__)
static inline IVec load_signed(const std::int8_t* p) {
  const int32x2_t word = vdup_n_s32(*reinterpret_cast<const UnalignedWord*>(p));
  return (IVec)vmovl_s16(vget_low_s16(vmovl_s8(vreinterpret_s8_s32(word))));
}
static inline IVec load_bytes(const std::uint8_t* p) { return load_signed(reinterpret_cast<const std::int8_t*>(p)); }
static inline void store_bytes(std::uint8_t* p, IVec v) {
  const uint16x4_t halves = vmovn_u32((uint32x4_t)v);
  const uint8x8_t bytes = vmovn_u16(vcombine_u16(halves, halves));
  *reinterpret_cast<UnalignedWord*>(p) = static_cast<std::int32_t>(vget_lane_u32(vreinterpret_u32_u8(bytes), 0));
}
#else
static inline IVec load_bytes(const std::uint8_t* p) {
  return __builtin_convertvector(static_cast<BVec>(*reinterpret_cast<const UnalignedBVec*>(p)), IVec);
}
static inline IVec load_signed(const std::int8_t* p) {
  return __builtin_convertvector(static_cast<SVec>(*reinterpret_cast<const UnalignedSVec*>(p)), IVec);
}
static inline void store_bytes(std::uint8_t* p, IVec v) {
  typedef std::uint32_t UVec __attribute__((vector_size(4 * kWidth)));
  *reinterpret_cast<UnalignedBVec*>(p) = __builtin_convertvector((UVec)v, BVec);
}
#endif

static inline Block load_block(const std::uint8_t* p) { return *reinterpret_cast<const UnalignedBlock*>(p); }
static inline void store_block(std::uint8_t* p, Block v) { *reinterpret_cast<UnalignedBlock*>(p) = v; }
static inline IVec every(std::int32_t value) { return IVec{} + value; }

// How weights of a word lie: a vector of words, or one of pairs of 16 bits for even channels and one for odd ones.
#if defined(__AVX512VNNI__) && defined(__AVX512F__)
#define POWERLAB_BYTE_FORM "words"
constexpr int kHalves = 1;
template <int H>
static inline IVec spread(std::int32_t word) {
  return every(word);
}
static inline IVec dot(IVec sums, IVec x, IVec w) {
  return (IVec)_mm512_dpbusd_epi32((__m512i)sums, (__m512i)x, (__m512i)w);
}
static inline void dot_four(IVec& a, IVec& b, IVec& c, IVec& d, const Word* x, const IVec (&weights)[3],
                            const std::uint8_t* last) {
  IVec word;
  POWERLAB_DOT_FOUR("vpdpbusd", a, b, c, d, word, x, weights, *reinterpret_cast<const IVec*>(last));
}
#elif defined(__AVXVNNI__)
#define POWERLAB_BYTE_FORM "words"
constexpr int kHalves = 1;
template <int H>
static inline IVec spread(std::int32_t word) {
  return every(word);
}
static inline IVec dot(IVec sums, IVec x, IVec w) {
  return (IVec)_mm256_dpbusd_avx_epi32((__m256i)sums, (__m256i)x, (__m256i)w);
}
#elif defined(__SSE4_1__)
#define POWERLAB_BYTE_FORM "pairs"
#define POWERLAB_NARROW
constexpr int kHalves = 2;
template <int H>
static inline IVec spread(std::int32_t word) {
#if defined(__AVX512BW__)
  const __m512i both = _mm512_set1_epi32(word);
  if constexpr (H == 0) return (IVec)_mm512_and_si512(both, _mm512_set1_epi16(255));
  return (IVec)_mm512_maskz_srli_epi16(~__mmask32{}, both, 8);
#elif defined(__AVX2__)
  const __m256i both = _mm256_broadcastd_epi32(_mm_cvtsi32_si128(word));
  if constexpr (H == 0) return (IVec)_mm256_and_si256(both, _mm256_set1_epi16(255));
  return (IVec)_mm256_srli_epi16(both, 8);
#else
  const __m128i both = _mm_set1_epi32(word);
  if constexpr (H == 0) return (IVec)_mm_and_si128(both, _mm_set1_epi16(255));
  return (IVec)_mm_srli_epi16(both, 8);
#endif
}
static inline IVec dot(IVec sums, IVec x, IVec w) {
#if defined(__AVX512BW__)
  return sums + (IVec)_mm512_madd_epi16((__m512i)x, (__m512i)w);
#elif defined(__AVX2__)
  return sums + (IVec)_mm256_madd_epi16((__m256i)x, (__m256i)w);
#else
  return sums + (IVec)_mm_madd_epi16((__m128i)x, (__m128i)w);
#endif
}
// Sums of two products in the halves of lanes; sums of such; what both halves of a lane add to it.
static inline IVec products_of_pairs(IVec x, IVec w) {
#if defined(__AVX512BW__)
  return (IVec)_mm512_maddubs_epi16((__m512i)x, (__m512i)w);
#elif defined(__AVX2__)
  return (IVec)_mm256_maddubs_epi16((__m256i)x, (__m256i)w);
#else
  return (IVec)_mm_maddubs_epi16((__m128i)x, (__m128i)w);
#endif
}
static inline IVec add_halves(IVec a, IVec b) {
  typedef std::int16_t Halves __attribute__((vector_size(4 * kWidth)));
  return (IVec)((Halves)a + (Halves)b);
}
static inline IVec add_pairs(IVec sums, IVec pairs) {
#if defined(__AVX512BW__)
  return sums + (IVec)_mm512_madd_epi16((__m512i)pairs, _mm512_set1_epi16(1));
#elif defined(__AVX2__)
  return sums + (IVec)_mm256_madd_epi16((__m256i)pairs, _mm256_set1_epi16(1));
#else
  return sums + (IVec)_mm_madd_epi16((__m128i)pairs, _mm_set1_epi16(1));
#endif
}
#elif defined(__ARM_FEATURE_DOTPROD)
#define POWERLAB_BYTE_FORM "signed_words"
constexpr int kHalves = 1;
template <int H>
static inline IVec spread(std::int32_t word) {
  return every(word);
}
static inline IVec dot(IVec sums, IVec x, IVec w) { return (IVec)vdotq_s32(sums, (int8x16_t)x, (int8x16_t)w); }
// One of the four words of a pixel's block. Volatile, so that products stay in order: a tile of 4 x 6 leaves no
// register to move them.
template <int I>
static inline __attribute__((always_inline)) IVec dot_of(IVec sums, int8x16_t x, IVec w) {
  asm volatile("sdot %0.4s, %1.16b, %2.4b[%c3]" : "+w"(sums) : "w"(w), "w"(x), "i"(I));
  return sums;
}
#elif defined(__aarch64__)
#define POWERLAB_BYTE_FORM "signed_pairs"
constexpr int kHalves = 1;
template <int H>
static inline IVec spread(std::int32_t word) {
  return every(word);
}
// The first and the second two bytes of a word, in all lanes the same.
struct Pairs {
  int8x16_t first, second;
};
template <int I>
static inline Pairs pairs_of(int8x16_t x) {
  return {(int8x16_t)vdupq_laneq_s16((int16x8_t)x, 2 * I), (int8x16_t)vdupq_laneq_s16((int16x8_t)x, 2 * I + 1)};
}
static inline IVec add_pairs(IVec sums, const Pairs& x, IVec w) {
  const int16x8_t products = vmull_s8(vget_low_s8(x.first), vget_low_s8((int8x16_t)w));
  return (IVec)vpadalq_s16(sums, vmlal_high_s8(products, x.second, (int8x16_t)w));
}
static inline IVec dot(IVec sums, IVec x, IVec w) { return add_pairs(sums, pairs_of<0>((int8x16_t)x), w); }
#else
#define POWERLAB_BYTE_FORM "words"
constexpr int kHalves = 1;
template <int H>
static inline IVec spread(std::int32_t word) {
  return every(word);
}
static inline IVec dot(IVec sums, IVec x, IVec w) {
  for (int i = 0; i < 4; ++i) sums += (x >> (8 * i) & 255) * ((IVec)((w << (24 - 8 * i))) >> 24);
  return sums;
}
#endif

// sums + x * w for numbers that fit 16 bits with their sign: vpmaddwd is one step where a multiplication of 32 bits is
// two or three.
static inline IVec multiply_add(IVec sums, IVec x, IVec w) {
#if defined(__AVX512VNNI__) && defined(__AVX512F__)
  return (IVec)_mm512_dpwssd_epi32((__m512i)sums, (__m512i)x, (__m512i)w);
#elif defined(__AVXVNNI__)
  return (IVec)_mm256_dpwssd_avx_epi32((__m256i)sums, (__m256i)x, (__m256i)w);
#elif defined(__AVX512BW__)
  return sums + (IVec)_mm512_madd_epi16((__m512i)x, (__m512i)w);
#elif defined(__AVX2__)
  return sums + (IVec)_mm256_madd_epi16((__m256i)x, (__m256i)w);
#elif defined(__SSE4_1__)
  return sums + (IVec)_mm_madd_epi16((__m128i)x, (__m128i)w);
#else
  return sums + x * w;
#endif
}

// Whether weights of a word are pairs of bytes for all outputs.
#if defined(__aarch64__) && !defined(__ARM_FEATURE_DOTPROD)
constexpr bool kPairsOfBytes = true;
#else
constexpr bool kPairsOfBytes = false;
#endif

// Weights of a word, for a vector of sums; N: how many products fit 16 bits, 2 or 4 of narrow ones.
template <int N>
constexpr int kWordBytes = 4 * kWidth * (N > 1 ? 1 : kHalves);

}  // namespace powerlab::engine::POWERLAB_TIER
