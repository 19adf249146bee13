// How the pixels of a convolution's result are cut into tiles: rows of them, or all rows of an image as one.
#pragma once

#include "kernels/vec.hpp"

namespace powerlab::engine::POWERLAB_TIER {

struct ImageRows {
  std::int64_t of_image, width;
  std::int64_t pixels;  // of x from row to row, where an image is one row; 0: it is not

  std::int64_t tiles(int most) const { return (width + most - 1) / most; }
};
static inline ImageRows image_rows(const Step& s) { return {s.out.h, s.out.w, 0}; }

// All rows of an image as one, where that takes so many fewer tiles of up to `most` pixels that it is worth it: what
// lies between them in x is multiplied, too, for nothing, and where a row ends within a tile, its results are stored in
// parts. `is_long`: sums take so many products that what ends them hardly counts.
static inline ImageRows merged_rows(const Step& s, int most, bool is_long) {
  const ImageRows rows = image_rows(s);
  if (s.stride_h != 1 || s.stride_w != 1) return rows;
  const std::int64_t pixels = s.x.row / s.x.pixel;
  const ImageRows one = {1, (s.out.h - 1) * pixels + s.out.w, pixels};
  const std::int64_t merged = one.tiles(most), apart = s.out.h * rows.tiles(most);
  return (is_long ? merged < apart : 5 * merged <= 4 * apart) ? one : rows;
}

// Where a tile lies, if rows are merged: its out and residual are then those of the image's first pixel.
struct TileOfRows {
  std::int64_t first;              // of its pixels
  std::int64_t row_pixels, width;  // of x from row to row, 0: rows are not merged; of a row of the result
  std::int64_t out_row, residual_row;
};

// f(tile, first pixel, pixels) for each part of a tile's pixels that lies in one row; the tile is then that part's.
template <typename Tile, typename F>
static inline void for_rows(const Tile& t, int pixels, F f) {
  const TileOfRows& rows = t.rows;
  if (rows.row_pixels == 0) return f(t, 0, pixels);
  for (int at = 0; at < pixels;) {
    const std::int64_t row = (rows.first + at) / rows.row_pixels, column = (rows.first + at) % rows.row_pixels;
    const int left = pixels - at, wide = static_cast<int>(rows.width - column);
    if (wide > 0) {
      Tile part = t;
      part.out += row * rows.out_row + column * t.out_pixel;
      if (t.residual) part.residual += row * rows.residual_row + column * t.residual_pixel;
      f(part, at, wide < left ? wide : left);
    }
    at += static_cast<int>(rows.row_pixels - column);
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
