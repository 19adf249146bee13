// The innermost loop of register tiles: for every channel ("lane") of a block of the reduction, at one tap, one input
// value a pixel is multiplied with one vector of weights a block of the tile. What is written out here decides what
// convolutions cost, so each instruction set has the form that suits it.
#pragma once

#include "kernels/vec.hpp"

namespace powerlab::engine::POWERLAB_TIER {

// Of x and x3, the first pixel and the fourth, x86's addresses reach two more each.
template <int B, int P>
static inline __attribute__((always_inline)) void conv_lane(Vec (&acc)[B][P], const float* x, const float* x3,
                                                            std::int64_t pixel, const float* weights) {
  const float *x6 = x3 + 3 * pixel, *x9 = x6 + 3 * pixel;
  Vec w[B];
  POWERLAB_UNROLL
  for (int b = 0; b < B; ++b) w[b] = load(weights + b * kWidth);
  POWERLAB_UNROLL
  for (int p = 0; p < P; ++p) {
    const float value = p < 3   ? x[p * pixel]
                        : p < 6 ? x3[(p - 3) * pixel]
                        : p < 9 ? x6[(p - 6) * pixel]
                                : x9[(p - 9) * pixel];
    POWERLAB_UNROLL
    for (int b = 0; b < B; ++b) acc[b][p] += w[b] * value;
  }
}

#if defined(__aarch64__)
// Four channels at once: Arm multiplies by one element of a vector, so that one load serves four steps.
constexpr bool kFourLanes = true;

template <int B, int P>
static inline __attribute__((always_inline)) void conv_four_lanes(Vec (&acc)[B][P], const float* x, std::int64_t pixel,
                                                                  const float* weights) {
  static_assert(kWidth == 4);
  Vec values[P];
  POWERLAB_UNROLL
  for (int p = 0; p < P; ++p) values[p] = load_unaligned(x + p * pixel);
  POWERLAB_UNROLL
  for (int i = 0; i < 4 * B; i += 2) {  // two vectors of weights are one load
    const Vec w0 = load(weights + i * kWidth), w1 = load(weights + (i + 1) * kWidth);
    POWERLAB_UNROLL
    for (int p = 0; p < P; ++p) acc[i % B][p] += w0 * values[p][i / B];
    POWERLAB_UNROLL
    for (int p = 0; p < P; ++p) acc[(i + 1) % B][p] += w1 * values[p][(i + 1) / B];
  }
}
#else
constexpr bool kFourLanes = false;

template <int B, int P>
static inline void conv_four_lanes(Vec (&)[B][P], const float*, std::int64_t, const float*) {}
#endif

// One block of the reduction at one tap.
template <int B, int P>
static inline __attribute__((always_inline)) void conv_lanes(Vec (&acc)[B][P], const float* x, std::int64_t pixel,
                                                             int lanes, const float*& weights, const char*& prefetch,
                                                             std::int64_t prefetch_step) {
  const float* x3 = x + 3 * pixel;
  int lane = 0;
  if constexpr (kFourLanes) {
    for (; lane + 4 <= lanes; lane += 4) {
      conv_four_lanes<B, P>(acc, x + lane, pixel, weights);
      weights += 4 * B * kWidth;
      __builtin_prefetch(prefetch, 0, 2);
      prefetch += 4 * prefetch_step;
    }
  }
  POWERLAB_UNROLL_BY_2
  for (; lane < lanes; ++lane) {
    conv_lane<B, P>(acc, x + lane, x3 + lane, pixel, weights);
    weights += B * kWidth;
    __builtin_prefetch(prefetch, 0, 2);
    prefetch += prefetch_step;
  }
}

#if defined(__AVX2__) && !defined(__AVX512F__) && !defined(__SANITIZE_ADDRESS__)
#define POWERLAB_WHOLE_BLOCKS 1
// All lanes of a block without a loop: 20 instructions for 12 products of a tile of 3 x 4, where a loop has 25. Either
// keeps the multipliers busy while a core has one thread to run; while it has two, which take turns, only the former.
// Given as C++, GCC moves loads ahead of products and then lacks registers: so they are written out, in their order,
// with registers of their own and with addresses that are a few registers and constants. AddressSanitizer does not see
// what they read, so where it watches, all blocks are loops.
constexpr bool kWholeBlocks = true;

// Where a block's pixels and its next weights lie, in bytes. Every third pixel has an address of its own, and those
// between them are one or two pixels further, which x86's addresses reach.
struct BlockAddresses {
  const float* third[4];
  std::int64_t pixel;
  const char* prefetch;
  std::int64_t step, three_steps;
};

static inline __attribute__((always_inline)) void add_product(Vec& sum, Vec weights, Vec value) {
  asm volatile("vfmadd231ps %2, %1, %0" : "+x"(sum) : "x"(weights), "x"(value));
}

// One pixel of a lane. `weights`: a vector for each of the B blocks.
template <int Lane, int Pixel, int B, int P, typename... Weights>
static inline __attribute__((always_inline)) void conv_whole_pixel(Vec (&acc)[B][P], const BlockAddresses& x,
                                                                   Weights... weights) {
  register Vec value asm("ymm15");
  const float* third = x.third[Pixel / 3];
  if constexpr (Pixel % 3 == 0) {
    asm volatile("vbroadcastss %c1(%2), %0" : "=x"(value) : "i"(Lane * 4), "r"(third));
  } else {
    asm volatile("vbroadcastss %c1(%2,%3,%c4), %0"
                 : "=x"(value)
                 : "i"(Lane * 4), "r"(third), "r"(x.pixel), "i"(Pixel % 3));
  }
  int b = 0;
  (add_product(acc[b++][Pixel], weights, value), ...);
}

template <int Lane, int B, int P, int... Pixel>
static inline __attribute__((always_inline)) void conv_whole_lane(Vec (&acc)[B][P], const BlockAddresses& x,
                                                                  const float* weights, Indices<Pixel...>) {
  static_assert(B <= 3 && B * P <= 12);
  constexpr int kBytes = kWidth * 4, kAt = Lane * B * kBytes;
  register Vec w0 asm("ymm12");
  asm volatile("vmovaps %c1(%2), %0" : "=x"(w0) : "i"(kAt), "r"(weights));
  if constexpr (Lane == 0) asm volatile("prefetcht1 (%0)" : : "r"(x.prefetch));
  if constexpr (Lane == 2) asm volatile("prefetcht1 (%0,%1,2)" : : "r"(x.prefetch), "r"(x.step));
  if constexpr (Lane == 4) asm volatile("prefetcht1 (%0,%1,4)" : : "r"(x.prefetch), "r"(x.step));
  if constexpr (Lane == 6) asm volatile("prefetcht1 (%0,%1,2)" : : "r"(x.prefetch), "r"(x.three_steps));
  if constexpr (B == 1) {
    (conv_whole_pixel<Lane, Pixel>(acc, x, w0), ...);
  } else {
    register Vec w1 asm("ymm13");
    asm volatile("vmovaps %c1(%2), %0" : "=x"(w1) : "i"(kAt + kBytes), "r"(weights));
    if constexpr (B == 2) {
      (conv_whole_pixel<Lane, Pixel>(acc, x, w0, w1), ...);
    } else {
      register Vec w2 asm("ymm14");
      asm volatile("vmovaps %c1(%2), %0" : "=x"(w2) : "i"(kAt + 2 * kBytes), "r"(weights));
      (conv_whole_pixel<Lane, Pixel>(acc, x, w0, w1, w2), ...);
    }
  }
}

template <int B, int P, int... Lane>
static inline __attribute__((always_inline)) void conv_whole_lanes(Vec (&acc)[B][P], const BlockAddresses& x,
                                                                   const float* weights, Indices<Lane...>) {
  (conv_whole_lane<Lane>(acc, x, weights, typename MakeIndices<P>::type{}), ...);
}

// One whole block of the reduction at one tap. `pixel` is in floats, `prefetch_step` in bytes a lane.
template <int B, int P>
static inline __attribute__((always_inline)) void conv_whole(Vec (&acc)[B][P], const float* x, std::int64_t pixel,
                                                             const float* weights, const char* prefetch,
                                                             std::int64_t prefetch_step) {
  asm volatile("" ::: "memory");  // what the instructions read is in memory
  const BlockAddresses addresses{
      {x, x + 3 * pixel, x + 6 * pixel, x + 9 * pixel}, 4 * pixel, prefetch, prefetch_step, 3 * prefetch_step};
  conv_whole_lanes<B, P>(acc, addresses, weights, typename MakeIndices<kWidth>::type{});
}
#else
#define POWERLAB_WHOLE_BLOCKS 0
constexpr bool kWholeBlocks = false;

template <int B, int P>
static inline void conv_whole(Vec (&)[B][P], const float*, std::int64_t, const float*, const char*, std::int64_t) {}
#endif

}  // namespace powerlab::engine::POWERLAB_TIER
