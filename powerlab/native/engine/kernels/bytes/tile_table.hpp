// The register tiles of a table of kernels on bytes, by how many vectors and pixels they have.
#pragma once

#if defined(__ARM_FEATURE_MATMUL_INT8)
#include "kernels/bytes/matrix_tile.hpp"
#elif defined(__aarch64__)
#include "kernels/bytes/lane_tile.hpp"
#else
#include "kernels/bytes/register_tile.hpp"
#endif

namespace powerlab::engine::POWERLAB_TIER {

using ByteTileFunction = void (*)(ByteTile&);
template <int N>
struct ByteTileTable {
  ByteTileFunction at[kByteTileBlocks<N> * kByteTilePixels<N>];
};
template <bool F, int N, int... I>
constexpr ByteTileTable<N> make_byte_tiles(Indices<I...>) {
  return {{byte_tile<F, N, I / kByteTilePixels<N> + 1, I % kByteTilePixels<N> + 1>...}};
}
template <bool F, int N>
constexpr ByteTileTable<N> kByteTiles =
    make_byte_tiles<F, N>(typename MakeIndices<kByteTileBlocks<N> * kByteTilePixels<N>>::type{});

// Registers want nothing before or after a step.
struct ByteTiles {
  explicit ByteTiles(const Step&) {}
  static std::int64_t at_once(std::int64_t tiles) { return tiles; }
  static void begin(std::int64_t, std::int64_t) {}
};

template <bool F, int N>
static inline void run_byte_tile(ByteTile& t, std::int64_t vectors, std::int64_t pixels, ByteTiles&) {
  kByteTiles<F, N>.at[(vectors - 1) * kByteTilePixels<N> + (pixels - 1)](t);
}
template <bool F, int N>
static inline void end_byte_tiles(std::int64_t, ByteTiles&) {}

}  // namespace powerlab::engine::POWERLAB_TIER
