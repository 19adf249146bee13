// Products of matrices that are computed while the network runs, many at once: out = a b.
//
// A tile of up to kTilePixels rows x kTileBlocks vectors of columns stays in registers while the reduction runs over a
// chunk of the inner axis; every step broadcasts one value of each row of a and multiplies it with one vector of b a
// block. b is packed by a step of its own. As K. Goto and R. van de Geijn, "Anatomy of high-performance matrix
// multiplication" (2008), describe it: a chunk of some panels of b stays in the second-level cache while the rows of a
// pass over it, tile by tile. Some tiles at a time meet all these panels, so that a is in that cache, too.
//
// a is read where it lies, whatever its strides, unless there is scratch: then a chunk of these tiles is packed into
// it first. In a transposed matrix the values of a tile's rows lie side by side, but those of the next step a whole row
// of memory away, often in the same set of the nearest cache, and every panel would fetch them again.
//
// Packed b: [batch][panel][inner][vector of the panel][v]; its ceil(columns / v) vectors are dealt to ceil(vectors /
// kTileBlocks) panels of nearly equal size, and what fills up the last vector is 0.
#pragma once

#include "kernels/convolution/conv_direct.hpp"
#include "kernels/products/panels.hpp"
#include "kernels/strided/axes.hpp"
#include "kernels/strided/strided.hpp"
#include "kernels/transpose_tile.hpp"

namespace powerlab::engine::POWERLAB_TIER {

// Operands: packed, [batch][inner x vectors x v] in one row each; b, [batch ...][inner][columns]. `alpha` times b.
static void pack_matrix(const Step& s, int thread, int threads) {
  const Strided &packed = s.operands[0], &b = s.operands[1];
  const int batch_axes = b.rank - 2;
  const std::int64_t inner = b.size[b.rank - 2], columns = b.size[b.rank - 1];
  const std::int64_t down = b.stride[b.rank - 2], across = b.stride[b.rank - 1];
  const Panels panels(columns);
  const std::int64_t whole = inner * panels.vectors * kWidth;
  const Range units = share(count_of(b, batch_axes) * panels.vectors, thread, threads);
  for (std::int64_t unit = units.begin; unit < units.end; ++unit) {
    const std::int64_t batch = unit / panels.vectors, vector = unit % panels.vectors, panel = panels.of(vector);
    const std::int64_t first = panels.begin(panel), step = (panels.begin(panel + 1) - first) * kWidth;
    const float* from = static_cast<const float*>(b.data) + offset_of(b, batch_axes, batch) + vector * kWidth * across;
    float* to = static_cast<float*>(packed.data) + batch * whole + first * kWidth * inner + (vector - first) * kWidth;
    const std::int64_t left = columns - vector * kWidth, lanes = left < kWidth ? left : kWidth;
    if (lanes < kWidth) {
      for (std::int64_t i = 0; i < inner; ++i) store(to + i * step, Vec{});
    }
    if (across == 1 && lanes == kWidth) {
      for (std::int64_t i = 0; i < inner; ++i) store(to + i * step, load_unaligned(from + i * down) * s.alpha);
    } else {
      for (std::int64_t i = 0; i < inner; i += kWidth) {
        const std::int64_t rows = inner - i < kWidth ? inner - i : kWidth;
        if (down == 1 && rows == kWidth) {
          Vec tile[kWidth];
          for (int lane = 0; lane < kWidth; ++lane) {
            tile[lane] = lane < lanes ? load_unaligned(from + lane * across + i) : Vec{};
          }
          transpose_tile(tile);
          for (int row = 0; row < kWidth; ++row) store(to + (i + row) * step, tile[row] * s.alpha);
          continue;
        }
        for (std::int64_t lane = 0; lane < lanes; ++lane) {
          const float* source = from + lane * across + i * down;
          float* target = to + i * step + lane;
          for (std::int64_t row = 0; row < rows; ++row) target[row * step] = source[row * down] * s.alpha;
        }
      }
    }
  }
}

// The work of a run of tiles of equal height, one below the other, on one chunk of the inner axis.
struct MatmulTile {
  const float *a, *b;
  float* out;
  std::int64_t a_row, a_inner, a_next, out_row, inner;  // a_next: from one tile of the run to the next
  int lanes;                                            // of the last vector, that are columns
  bool first;
  std::int64_t count;  // tiles of the run
};

static inline std::int64_t smaller(std::int64_t a, std::int64_t b) { return a < b ? a : b; }

// The rows of a product, dealt to tiles of nearly equal height.
struct RowTiles {
  std::int64_t count, low, higher;  // the first `higher` tiles have one row more than `low`
  explicit RowTiles(std::int64_t rows)
      : count((rows + kTilePixels - 1) / kTilePixels), low(rows / count), higher(rows % count) {}
  std::int64_t height(std::int64_t tile) const { return low + (tile < higher); }
  std::int64_t begin(std::int64_t tile) const { return tile * low + (tile < higher ? tile : higher); }
};

// Packs a chunk of some tiles: [tile][inner][kTilePixels]. a: the first tile's.
static void pack_rows(const RowTiles& rows, Range tiles, const float* a, std::int64_t a_row, std::int64_t a_inner,
                      std::int64_t inner, float* packed) {
  for (std::int64_t i = 0; i < inner; ++i) {
    const float* from = a + i * a_inner;
    float* to = packed + i * kTilePixels;
    for (std::int64_t tile = tiles.begin; tile < tiles.end; ++tile, to += inner * kTilePixels) {
      const std::int64_t height = rows.height(tile);
      if (height == kTilePixels && a_row == 1) {
        for (int p = 0; p < kTilePixels; ++p) to[p] = from[p];
      } else {
        for (std::int64_t p = 0; p < height; ++p) to[p] = from[p * a_row];
      }
      from += height * a_row;
    }
  }
}

// Moves on to the next tile of a run; false where there is none.
static inline bool matmul_next(MatmulTile& t, std::int64_t rows) {
  t.a += t.a_next;
  t.out += rows * t.out_row;
  return --t.count > 0;
}

template <int B, int P>
static __attribute__((noinline)) void matmul_tile(MatmulTile& t) {
  const bool full = t.lanes == kWidth;
  do {
    Vec acc[B][P];
    POWERLAB_UNROLL
    for (int b = 0; b < B; ++b) {
      POWERLAB_UNROLL
      for (int p = 0; p < P; ++p) {
        const float* held = t.out + p * t.out_row + b * kWidth;
        acc[b][p] = t.first ? Vec{} : b + 1 < B || full ? load_unaligned(held) : load_lanes(held, t.lanes);
      }
    }
    const float *a = t.a, *b = t.b;
    if (t.a_inner == 1) {
      const char* nothing = reinterpret_cast<const char*>(b);
      std::int64_t left = t.inner;
      for (; kWholeBlocks && left >= kWidth; left -= kWidth, a += kWidth, b += kWidth * B * kWidth) {
        conv_whole<B, P>(acc, a, t.a_row, b, nothing, 0);
      }
      conv_lanes<B, P>(acc, a, t.a_row, static_cast<int>(left), b, nothing, 0);
    } else {
      for (std::int64_t i = 0; i < t.inner; ++i, a += t.a_inner, b += B * kWidth) {
        conv_lane<B, P>(acc, a, a + 3 * t.a_row, t.a_row, b);
      }
    }
    POWERLAB_UNROLL
    for (int v = 0; v < B; ++v) {
      POWERLAB_UNROLL
      for (int p = 0; p < P; ++p) {
        float* to = t.out + p * t.out_row + v * kWidth;
        if (v + 1 < B || full) {
          *reinterpret_cast<UnalignedVec*>(to) = acc[v][p];
        } else {
          store_lanes(to, acc[v][p], t.lanes);
        }
      }
    }
  } while (kRuns && matmul_next(t, P));
}

using MatmulTileFunction = void (*)(MatmulTile&);

struct MatmulTileTable {
  MatmulTileFunction at[kTileBlocks * kTilePixels];
};
template <int... I>
constexpr MatmulTileTable make_matmul_tiles(Indices<I...>) {
  return {{&matmul_tile<I / kTilePixels + 1, I % kTilePixels + 1>...}};
}
static constexpr MatmulTileTable kMatmulTiles =
    make_matmul_tiles(typename MakeIndices<kTileBlocks * kTilePixels>::type{});

// Some tiles of rows, panels of columns and a chunk of the inner axis of one product.
struct MatmulBlock {
  const float *a, *b;  // a: from the first tile and the chunk on, packed or not; b: of the batch
  float* out;          // from the first tile on
  std::int64_t columns, inner, k;
  Range tiles, panels;
  bool packed;
};

// t: its strides, the chunk's length and whether it is the first.
static inline void multiply_block(MatmulTile& t, const MatmulBlock& block, const RowTiles& rows, const Panels& panels) {
  const std::int64_t top = rows.begin(block.tiles.begin);
  for (std::int64_t panel = block.panels.begin; panel < block.panels.end; ++panel) {
    const std::int64_t begin = panels.begin(panel), width = panels.begin(panel + 1) - begin;
    t.lanes = static_cast<int>(smaller(block.columns - (begin + width - 1) * kWidth, kWidth));
    t.b = block.b + begin * kWidth * block.inner + block.k * width * kWidth;
    for (std::int64_t tile = block.tiles.begin; tile < block.tiles.end;) {
      const std::int64_t height = rows.height(tile), row = rows.begin(tile);
      const std::int64_t end = tile < rows.higher ? smaller(rows.higher, block.tiles.end) : block.tiles.end;
      t.count = end - tile;
      t.a_next = block.packed ? t.inner * kTilePixels : height * t.a_row;
      t.a = block.a + (block.packed ? (tile - block.tiles.begin) * t.a_next : (row - top) * t.a_row);
      t.out = block.out + begin * kWidth + (row - top) * t.out_row;
      do {
        kMatmulTiles.at[(width - 1) * kTilePixels + (height - 1)](t);
      } while (!kRuns && matmul_next(t, height));
      tile = end;
    }
  }
}

// Operands: out, [batch ...][rows][columns], whose columns follow on each other; a, [batch ...][rows][inner]; packed b.
// All batch axes are those of out; axes along which packed b is the same have a stride of 0.
// number[0]: how much of the inner axis is a chunk; number[1]: panels taken together; number[2]: tiles of rows taken
// together, as many as a thread's scratch has room for, if there is any.
static void matmul(const Step& s, int thread, int threads) {
  const Strided &out = s.operands[0], &a = s.operands[1], &packed = s.operands[2];
  const int batch_axes = out.rank - 2;
  const std::int64_t columns = out.size[batch_axes + 1], inner = a.size[batch_axes + 1];
  const std::int64_t a_row = a.stride[batch_axes], a_inner = a.stride[batch_axes + 1];
  const Panels panels(columns);
  const RowTiles rows(out.size[batch_axes]);
  const std::int64_t chunk = s.numbers[0], together = s.numbers[1], row_tiles = s.numbers[2];
  const std::int64_t groups = (panels.count + together - 1) / together;
  const Range units = share(count_of(out, batch_axes) * groups * rows.count, thread, threads);
  float* const packed_rows = s.scratch.data ? s.scratch.data + thread * s.scratch.image : nullptr;
  MatmulTile t;
  t.a_row = packed_rows ? 1 : a_row;
  t.a_inner = packed_rows ? kTilePixels : a_inner;
  t.out_row = out.stride[batch_axes];
  for (std::int64_t unit = units.begin; unit < units.end;) {
    const std::int64_t group = unit / rows.count % groups, batch = unit / rows.count / groups;
    const Range mine = {unit % rows.count, smaller(unit % rows.count + units.end - unit, rows.count)};
    unit += mine.end - mine.begin;
    const float* a_data = static_cast<const float*>(a.data) + offset_of(a, batch_axes, batch);
    float* out_data = static_cast<float*>(out.data) + offset_of(out, batch_axes, batch);
    MatmulBlock block;
    block.b = static_cast<const float*>(packed.data) + offset_of(packed, batch_axes, batch);
    block.columns = columns;
    block.inner = inner;
    block.panels = {group * together, smaller(group * together + together, panels.count)};
    block.packed = packed_rows != nullptr;
    for (std::int64_t k = 0; k < inner; k += chunk) {
      t.inner = smaller(inner - k, chunk);
      t.first = k == 0;
      block.k = k;
      for (std::int64_t first = mine.begin; first < mine.end; first += row_tiles) {
        block.tiles = {first, smaller(first + row_tiles, mine.end)};
        block.a = a_data + rows.begin(first) * a_row + k * a_inner;
        block.out = out_data + rows.begin(first) * t.out_row;
        if (packed_rows) {
          pack_rows(rows, block.tiles, block.a, a_row, a_inner, t.inner, packed_rows);
          block.a = packed_rows;
        }
        multiply_block(t, block, rows, panels);
      }
    }
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
