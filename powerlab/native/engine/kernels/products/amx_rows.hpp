// Products of rows of words with panels in AMX: rows are a tile's pixels. Who includes this includes amx_sums.hpp
// before.
#pragma once

#include "kernels/products/panels.hpp"

namespace powerlab::engine::POWERLAB_TIER {

// Rows that follow on each other, and where their products with a panel belong.
struct RowTile {
  static constexpr int kernel_h = 1, blocks = 1;
  static constexpr std::int64_t x_plane = 0, x_row = 0, x_column = 0, prefetch_step = 0;
  const float* x;
  const void* weights;
  std::int64_t x_pixel;
  const char* prefetch;
  float* out;
  std::int64_t out_row;
  float multiplier;
  int lanes;  // of the last vector, that are columns

  static Vec floats(const float* sums) { return load(sums); }
  Vec factor(int) const { return broadcast(multiplier); }  // of a row
  void skip(int rows) {
    x += rows * x_pixel;
    out += rows * out_row;
  }
};

// Multiplies tiles of rows with a panel of `kVectors`; the next tile may be null.
template <int kVectors, typename Sum, typename Tile>
static __attribute__((noinline)) void multiply_rows(const Tile& tile, int rows, const Tile* next, int next_rows,
                                                    Tiles& tiles) {
  run_tiles<kVectors, Sum>(tile, rows, next, next_rows, tiles,
                           []<int N>(const Tile& t, int count, int first, Count<N>, const Sum* sums) {
                             for (int p = 0; p < count; ++p) {
                               const Vec multiplier = t.factor(p);
                               POWERLAB_UNROLL
                               for (int b = 0; b < N; ++b) {
                                 const Vec product = Tile::floats(sums + b * kTileSums + p * kWidth) * multiplier;
                                 store_columns(t.out + p * t.out_row + (first + b) * kWidth, product,
                                               first + b + 1 < kVectors ? kWidth : t.lanes);
                               }
                             }
                           });
}
template <typename Sum, typename Tile>
constexpr void (*kMultiplyRows[])(const Tile&, int, const Tile*, int, Tiles&) = {
    multiply_rows<1, Sum, Tile>, multiply_rows<2, Sum, Tile>, multiply_rows<3, Sum, Tile>, multiply_rows<4, Sum, Tile>};

// A thread's share of a product whose rows have so many words. part(some, rows) returns a panel's tile of those rows.
template <typename Sum, typename Tile, typename Part>
static inline void multiply_panels(const Step& s, std::int64_t words, int thread, int threads, Part part) {
  const Strided &out = s.operands[0], &a = s.operands[1];
  const int axes = out.rank - 2;
  const std::int64_t rows = out.size[axes], tiles = (rows + kTileRows - 1) / kTileRows;
  const std::int64_t a_row = a.stride[axes], out_row = out.stride[axes];
  const auto begin = [&](std::int64_t tile) { return tile * rows / tiles; };
  Tiles registers(static_cast<int>(words));
  for_panels(s, Panels(out.size[axes + 1]), tiles, thread, threads, [&](const PanelTiles& some) {
    const auto rows_from = [&](std::int64_t row) {
      const float* x = some.a + row * a_row;
      return part(some, RowTile{x, nullptr, a_row, reinterpret_cast<const char*>(x), some.out + row * out_row, out_row,
                                s.alpha, some.lanes});
    };
    for (std::int64_t tile = some.first; tile < some.last; tile += 2) {
      const std::int64_t row = begin(tile), middle = begin(tile + 1), end = begin(tile + 2);
      const Tile one = rows_from(row), next = rows_from(middle);
      kMultiplyRows<Sum, Tile>[some.width - 1](one, static_cast<int>(middle - row),
                                               tile + 1 < some.last ? &next : nullptr, static_cast<int>(end - middle),
                                               registers);
    }
  });
}

}  // namespace powerlab::engine::POWERLAB_TIER
