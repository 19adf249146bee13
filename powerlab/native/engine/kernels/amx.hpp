// Tiles of AMX (Intel, "Architecture Instruction Set Extensions", chapter 3): eight registers of up to 16 rows of 64
// bytes. One instruction adds, for each row of a and each column of b, products of words of four bytes to 32-bit sums,
// or of two bfloat16 to float32 sums.
//
// Where POWERLAB_AMX_MODEL is defined, plain C++ does what the manual says the instructions do, and throws where they
// would fault: the kernels' tests run on processors without AMX, too. Numbers of tiles are part of an instruction, so
// the leaves are macros.
#pragma once

#include "kernels/vec.hpp"

#if defined(POWERLAB_AMX_MODEL)
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <stdexcept>
#endif

namespace powerlab::engine::POWERLAB_TIER {

constexpr int kTileRows = 16, kTileRowBytes = 64, kTiles = 8;

// What LDTILECFG reads: palette 1, then how many bytes of a row and how many rows each tile has.
struct alignas(64) TileConfig {
  std::uint8_t palette = 1, start_row = 0, reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};
};

#if defined(POWERLAB_AMX_MODEL)

typedef std::int32_t TileWord __attribute__((may_alias, aligned(1)));

struct TileModel {
  TileConfig config;
  bool configured = false;
  std::uint8_t bytes[kTiles][kTileRows][kTileRowBytes];

  void configure(const TileConfig& wanted) {
    for (int i = 0; i < kTiles; ++i) require(wanted.rows[i] <= kTileRows && wanted.row_bytes[i] <= kTileRowBytes);
    config = wanted;
    configured = true;
    std::fill_n(&bytes[0][0][0], sizeof bytes, std::uint8_t{0});
  }
  void release() { configured = false; }
  void zero(int tile) {
    require(configured);
    std::fill_n(&bytes[tile][0][0], sizeof bytes[tile], std::uint8_t{0});
  }
  void load(int tile, const void* base, std::int64_t stride) {
    zero(tile);
    for (int row = 0; row < config.rows[tile]; ++row)
      std::copy_n(static_cast<const std::uint8_t*>(base) + row * stride, config.row_bytes[tile], bytes[tile][row]);
  }
  void store(int tile, void* base, std::int64_t stride) const {
    require(configured);
    for (int row = 0; row < config.rows[tile]; ++row)
      std::copy_n(bytes[tile][row], config.row_bytes[tile], static_cast<std::uint8_t*>(base) + row * stride);
  }
  // Unsigned bytes of a times signed ones of b.
  void multiply_bytes(int sums, int a, int b) {
    require_product(sums, a, b);
    for (int row = 0; row < config.rows[sums]; ++row) {
      TileWord* to = reinterpret_cast<TileWord*>(bytes[sums][row]);
      for (int k = 0; k < config.row_bytes[a]; ++k) {
        for (int column = 0; column < config.row_bytes[b] / 4; ++column)
          to[column] += bytes[a][row][k] * static_cast<std::int8_t>(bytes[b][k / 4][4 * column + k % 4]);
      }
    }
  }
  // bfloat16: first and second numbers of the words have sums of their own, and both are added to the tile's at the
  // end. Numbers below the smallest normal one count as zero, read or made.
  void multiply_pairs(int sums, int a, int b) {
    require_product(sums, a, b);
    for (int row = 0; row < config.rows[sums]; ++row) {
      for (int column = 0; column < config.row_bytes[b] / 4; ++column) {
        float both[2] = {};
        for (int k = 0; k < config.row_bytes[a] / 4; ++k) {
          for (int half = 0; half < 2; ++half) {
            const float x = pair(bytes[a][row], k, half), w = pair(bytes[b][k], column, half);
            both[half] = flushed(std::fma(x, w, both[half]));
          }
        }
        TileWord* to = reinterpret_cast<TileWord*>(bytes[sums][row]) + column;
        *to = std::bit_cast<std::int32_t>(
            flushed(flushed(std::bit_cast<float>(static_cast<std::int32_t>(*to))) + flushed(both[0] + both[1])));
      }
    }
  }
  static float pair(const std::uint8_t* bytes, int word, int half) {
    const std::uint8_t* at = bytes + 4 * word + 2 * half;
    return flushed(
        std::bit_cast<float>(static_cast<std::uint32_t>(at[0]) << 16 | static_cast<std::uint32_t>(at[1]) << 24));
  }
  static float flushed(float value) {
    return std::abs(value) < std::numeric_limits<float>::min() ? std::copysign(0.0f, value) : value;
  }
  void require_product(int sums, int a, int b) const {
    require(configured && config.rows[sums] == config.rows[a] && config.row_bytes[sums] == config.row_bytes[b]);
    require(config.row_bytes[a] == 4 * config.rows[b]);
  }
  static void require(bool sound) {
    if (!sound) throw std::logic_error("an instruction of AMX would fault here");
  }
};

inline thread_local TileModel tile_model;
#define POWERLAB_TILE_CONFIGURE(config) tile_model.configure(config)
#define POWERLAB_TILE_RELEASE() tile_model.release()
#define POWERLAB_TILE_ZERO(tile) tile_model.zero(tile)
#define POWERLAB_TILE_LOAD(tile, base, stride) tile_model.load(tile, base, stride)
#define POWERLAB_TILE_STORE(tile, base, stride) tile_model.store(tile, base, stride)
#define POWERLAB_TILE_MULTIPLY_BYTES(sums, a, b) tile_model.multiply_bytes(sums, a, b)
#define POWERLAB_TILE_MULTIPLY_PAIRS(sums, a, b) tile_model.multiply_pairs(sums, a, b)

#else

// GCC's header names eight bytes of the configuration as read: the fence has all of it written before.
static inline void configure_tiles(const TileConfig& config) {
  asm volatile("" : : "r"(&config) : "memory");
  _tile_loadconfig(&config);
}
#define POWERLAB_TILE_CONFIGURE(config) configure_tiles(config)
#define POWERLAB_TILE_RELEASE() _tile_release()
#define POWERLAB_TILE_ZERO(tile) _tile_zero(tile)
#define POWERLAB_TILE_LOAD(tile, base, stride) _tile_loadd(tile, base, stride)
#define POWERLAB_TILE_STORE(tile, base, stride) _tile_stored(tile, base, stride)
#define POWERLAB_TILE_MULTIPLY_BYTES(sums, a, b) _tile_dpbusd(sums, a, b)
#define POWERLAB_TILE_MULTIPLY_PAIRS(sums, a, b) _tile_dpbf16ps(sums, a, b)

#endif

}  // namespace powerlab::engine::POWERLAB_TIER
