// What register tiles of words, of four bytes or two 16-bit floats, have in common.
#pragma once

#include "kernels/vec.hpp"

namespace powerlab::engine::POWERLAB_TIER {

typedef std::int32_t Word __attribute__((may_alias));

// The word of pixel p. x3 is x moved on by three pixels: further ones are a multiple of a pixel from one of both.
static inline const Word* word_of(const float* x, const float* x3, std::int64_t pixel, int p) {
  return reinterpret_cast<const Word*>(p < 3   ? x + p * pixel
                                       : p < 6 ? x3 + (p - 3) * pixel
                                               : x3 + p * pixel - 3 * pixel);
}

constexpr int kLineBytes = 64;  // of a cache

// Fetches what is read after this tile's weights, so many bytes of it with every four words. Few tiles, as the seven of
// an image of 7 x 7 pixels, have more than two lines each to ask for.
static inline __attribute__((always_inline)) void fetch_ahead(const char* at, std::int64_t bytes) {
  __builtin_prefetch(at, 0, 2);
  if (bytes > kLineBytes) {
    __builtin_prefetch(at + kLineBytes, 0, 2);
    __builtin_prefetch(at + 2 * kLineBytes, 0, 2);
  }
}

// On AVX-512, four sums at once of the products of a word, in all lanes, and four vectors of weights, three of them in
// registers, the last in memory: so a tile of 4 x 7 leaves GCC a register for the word.
#define POWERLAB_DOT_FOUR(instruction, a, b, c, d, word, x, weights, last)                              \
  asm("vpbroadcastd %5, %4\n\t" instruction " %6, %4, %0\n\t" instruction " %7, %4, %1\n\t" instruction \
      " %8, %4, %2\n\t" instruction " %9, %4, %3"                                                       \
      : "+v"(a), "+v"(b), "+v"(c), "+v"(d), "=&v"(word)                                                 \
      : "m"(*(x)), "v"((weights)[0]), "v"((weights)[1]), "v"((weights)[2]), "m"(last))

}  // namespace powerlab::engine::POWERLAB_TIER
