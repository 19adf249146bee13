// Bytes by a table: out = table[x], for bytes as they are stored. The 256 bytes of the table lie in the weights.
//
// The leaves below are the only functions with intrinsics. Instruction sets look up in 16 bytes (pshufb), 64 (tbl) or
// 128 (vpermi2b): a vector is looked up in each part of the table, and the bits above choose between the results. The
// last is part of AVX512-VBMI, which not all processors have that have the other instructions of these kernels.
#pragma once

#include "kernels/bytes/words.hpp"
#if defined(__AVX512BW__)
#include "tiers/x86_levels.hpp"
#endif

namespace powerlab::engine::POWERLAB_TIER {

#if defined(__AVX2__) || defined(__SSE4_1__)
#if defined(__AVX2__)
using TableVec = __m256i;
static inline TableVec part_of_table(const std::uint8_t* p) {
  return _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
static inline TableVec load_table_vec(const std::uint8_t* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}
static inline void store_table_vec(std::uint8_t* p, TableVec v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v);
}
static inline TableVec lowest_bits(TableVec v) { return _mm256_and_si256(v, _mm256_set1_epi8(15)); }
static inline TableVec doubled(TableVec v) { return _mm256_add_epi8(v, v); }
static inline TableVec shuffled(TableVec table, TableVec index) { return _mm256_shuffle_epi8(table, index); }
static inline TableVec second_where(TableVec first, TableVec second, TableVec highest_bit) {
  return _mm256_blendv_epi8(first, second, highest_bit);
}
#else
using TableVec = __m128i;
static inline TableVec part_of_table(const std::uint8_t* p) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}
static inline TableVec load_table_vec(const std::uint8_t* p) { return part_of_table(p); }
static inline void store_table_vec(std::uint8_t* p, TableVec v) { _mm_storeu_si128(reinterpret_cast<__m128i*>(p), v); }
static inline TableVec lowest_bits(TableVec v) { return _mm_and_si128(v, _mm_set1_epi8(15)); }
static inline TableVec doubled(TableVec v) { return _mm_add_epi8(v, v); }
static inline TableVec shuffled(TableVec table, TableVec index) { return _mm_shuffle_epi8(table, index); }
static inline TableVec second_where(TableVec first, TableVec second, TableVec highest_bit) {
  return _mm_blendv_epi8(first, second, highest_bit);
}
#endif

// What stands in `parts` sixteenths of the table, from `first` on; bits[i] has bit 4 + i of each byte as its highest.
template <int first, int parts>
static inline __attribute__((always_inline)) TableVec looked_up(const std::uint8_t* table, TableVec low,
                                                                const TableVec (&bits)[4]) {
  if constexpr (parts == 1) {
    return shuffled(part_of_table(table + 16 * first), low);
  } else {
    constexpr int bit = parts == 2 ? 0 : parts == 4 ? 1 : parts == 8 ? 2 : 3;
    return second_where(looked_up<first, parts / 2>(table, low, bits),
                        looked_up<first + parts / 2, parts / 2>(table, low, bits), bits[bit]);
  }
}
static inline TableVec looked_up(const std::uint8_t* table, TableVec x) {
  const TableVec bit6 = doubled(x), bit5 = doubled(bit6), bit4 = doubled(bit5);
  const TableVec bits[4] = {bit4, bit5, bit6, x};
  return looked_up<0, 16>(table, lowest_bits(x), bits);
}
#elif defined(__aarch64__)
using TableVec = uint8x16_t;
static inline TableVec load_table_vec(const std::uint8_t* p) { return vld1q_u8(p); }
static inline void store_table_vec(std::uint8_t* p, TableVec v) { vst1q_u8(p, v); }
static inline TableVec looked_up(const std::uint8_t* table, TableVec x) {
  TableVec found = vqtbl4q_u8(vld1q_u8_x4(table), x);  // 0 beyond a part of 64 bytes
  POWERLAB_UNROLL
  for (int part = 1; part < 4; ++part) {
    const TableVec index = vsubq_u8(x, vdupq_n_u8(static_cast<std::uint8_t>(64 * part)));
    found = vqtbx4q_u8(found, vld1q_u8_x4(table + 64 * part), index);
  }
  return found;
}
#endif

#if defined(__AVX512BW__)
constexpr std::int64_t kWideBytes = 64;

__attribute__((target("avx512vbmi"))) static void lookup_wide(const std::uint8_t* table, const std::uint8_t* x,
                                                              std::uint8_t* out, std::int64_t count) {
  __m512i parts[4];
  for (int i = 0; i < 4; ++i) parts[i] = _mm512_loadu_si512(table + kWideBytes * i);
  for (std::int64_t i = 0; i < count; i += kWideBytes) {
    const __mmask64 inside = count - i < kWideBytes ? (__mmask64{1} << (count - i)) - 1 : ~__mmask64{0};
    const __m512i at = _mm512_maskz_loadu_epi8(inside, x + i);
    const __m512i low = _mm512_permutex2var_epi8(parts[0], at, parts[1]);
    const __m512i high = _mm512_permutex2var_epi8(parts[2], at, parts[3]);
    _mm512_mask_storeu_epi8(out + i, inside, _mm512_mask_blend_epi8(_mm512_movepi8_mask(at), low, high));
  }
}
#endif

static void lookup_run(const std::uint8_t* table, const std::uint8_t* x, std::uint8_t* out, std::int64_t count) {
  std::int64_t i = 0;
#if defined(__AVX512BW__)
  static const bool has_wide = has_avx512_vbmi();
  if (has_wide) return lookup_wide(table, x, out, count);
#endif
#if defined(__AVX2__) || defined(__SSE4_1__) || defined(__aarch64__)
  constexpr std::int64_t kBytes = sizeof(TableVec);
  for (; i + kBytes <= count; i += kBytes) store_table_vec(out + i, looked_up(table, load_table_vec(x + i)));
  if (i < count && i > 0) {  // the last whole vector takes some of the one before again
    i = count;
    store_table_vec(out + count - kBytes, looked_up(table, load_table_vec(x + count - kBytes)));
  }
#endif
  for (; i < count; ++i) out[i] = table[x[i]];
}

static void lookup_bytes(const Step& s, int thread, int threads) {
  const std::uint8_t* table = bytes_of(s.weights);
  const Range rows = row_share(s.out, thread, threads);
  for (std::int64_t unit = rows.begin; unit < rows.end; ++unit) {
    const Row row = row_of(unit, s.out);
    const std::uint8_t* x = bytes_of(row_start(s.x, row));
    lookup_run(table, x, bytes_of(row_start(s.out, row)), static_cast<std::int64_t>(s.out.w) * kBlockBytes);
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
