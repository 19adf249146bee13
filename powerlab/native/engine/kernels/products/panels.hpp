// Products of computed matrices: the right side's columns in panels, and the tiles of rows that a thread multiplies.
#pragma once

#include "kernels/strided/axes.hpp"

namespace powerlab::engine::POWERLAB_TIER {

// The vectors of so many columns, dealt to panels of nearly equal size: what a register tile takes, at most.
struct Panels {
  std::int64_t columns, vectors, count;
  explicit Panels(std::int64_t all)
      : columns(all),
        vectors((all + kWidth - 1) / kWidth),
        count((vectors + POWERLAB_TILE_BLOCKS - 1) / POWERLAB_TILE_BLOCKS) {}
  std::int64_t begin(std::int64_t panel) const { return panel * vectors / count; }
  std::int64_t width(std::int64_t panel) const { return begin(panel + 1) - begin(panel); }  // vectors
  // Lanes of a panel's last vector that are columns.
  int lanes(std::int64_t panel) const {
    const std::int64_t left = columns - (begin(panel + 1) - 1) * kWidth;
    return static_cast<int>(left < kWidth ? left : kWidth);
  }
  // The panel in which a vector lies.
  std::int64_t of(std::int64_t vector) const { return ((vector + 1) * count - 1) / vectors; }
};

// The first of some numbers a stride apart; where fewer than a vector are left, the others are 0.
static inline Vec load_apart(const float* from, std::int64_t stride, std::int64_t left) {
  const int lanes = left <= 0 ? 0 : left < kWidth ? static_cast<int>(left) : kWidth;
  if (stride == 1) return lanes == kWidth ? load_unaligned(from) : load_lanes(from, lanes);
  alignas(4 * kWidth) float gathered[kWidth] = {};
  for (int lane = 0; lane < lanes; ++lane) gathered[lane] = from[lane * stride];
  return load(gathered);
}

// So many lanes of a vector, all or the first.
static inline __attribute__((always_inline)) void store_columns(float* to, Vec columns, int lanes) {
  if (lanes == kWidth) {
    store_unaligned(to, columns);
  } else {
    store_lanes(to, columns, lanes);
  }
}

// A panel, and tiles of rows, one below the other, that it is multiplied with.
struct PanelTiles {
  const float *a, *b;         // of the batch
  float* out;                 // likewise, the first column of the panel
  std::int64_t begin, width;  // vectors
  int lanes;                  // of the last of them, that are columns
  std::int64_t first, last;   // tiles
};

// Hands a thread's share of a product to `multiply`, panel by panel. Operands: out, [batch ...][rows][columns], whose
// columns follow on each other; a, packed b, [batch ...].
template <typename Multiply>
static inline void for_panels(const Step& s, const Panels& panels, std::int64_t tiles, int thread, int threads,
                              Multiply multiply) {
  const Strided &out = s.operands[0], &a = s.operands[1], &packed = s.operands[2];
  const int axes = out.rank - 2;
  const Range units = share(count_of(out, axes) * tiles, thread, threads);
  PanelTiles some;
  for (std::int64_t unit = units.begin; unit < units.end; unit += some.last - some.first) {
    const std::int64_t batch = unit / tiles;
    some.first = unit % tiles;
    some.last = units.end - unit < tiles - some.first ? some.first + units.end - unit : tiles;
    some.a = static_cast<const float*>(a.data) + offset_of(a, axes, batch);
    some.b = static_cast<const float*>(packed.data) + offset_of(packed, axes, batch);
    float* out_data = static_cast<float*>(out.data) + offset_of(out, axes, batch);
    for (std::int64_t panel = 0; panel < panels.count; ++panel) {
      some.begin = panels.begin(panel);
      some.width = panels.width(panel);
      some.out = out_data + some.begin * kWidth;
      some.lanes = panels.lanes(panel);
      multiply(some);
    }
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
