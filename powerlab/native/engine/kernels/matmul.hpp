// Products of matrices that are computed while the network runs, many at once: out = a b.
//
// A tile of up to kTilePixels rows x kTileBlocks vectors of columns stays in registers while the reduction runs over a
// chunk of the inner axis; every step broadcasts one value of each row of a and multiplies it with one vector of b a
// block. a is read where it lies, whatever its strides; b is packed by a step of its own. As K. Goto and R. van de
// Geijn, "Anatomy of high-performance matrix multiplication" (2008), describe it: a chunk of some panels of b stays in
// the second-level cache while all rows of a pass over it, tile by tile.
//
// Packed b: [batch][panel][inner][vector of the panel][v]; its ceil(columns / v) vectors are dealt to ceil(vectors /
// kTileBlocks) panels of nearly equal size, and what fills up the last vector is 0.
#pragma once

#include "kernels/axes.hpp"
#include "kernels/conv_direct.hpp"
#include "kernels/panels.hpp"
#include "kernels/strided.hpp"
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
  std::int64_t a_row, a_inner, out_row, inner;
  int lanes;  // of the last vector, that are columns
  bool first;
  std::int64_t count;  // tiles of the run
};

// Moves on to the next tile of a run; false where there is none.
static inline bool matmul_next(MatmulTile& t, std::int64_t rows) {
  t.a += rows * t.a_row;
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
      conv_lanes<B, P>(acc, a, t.a_row, static_cast<int>(t.inner), b, nothing, 0);
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

// Operands: out, [batch ...][rows][columns], whose columns follow on each other; a, [batch ...][rows][inner]; packed b.
// All batch axes are those of out; axes along which packed b is the same have a stride of 0.
// number[0]: how much of the inner axis is a chunk; number[1]: panels taken together.
static void matmul(const Step& s, int thread, int threads) {
  const Strided &out = s.operands[0], &a = s.operands[1], &packed = s.operands[2];
  const int batch_axes = out.rank - 2;
  const std::int64_t rows = out.size[batch_axes], columns = out.size[batch_axes + 1], inner = a.size[batch_axes + 1];
  const Panels panels(columns);
  const std::int64_t chunk = s.numbers[0], together = s.numbers[1];
  const std::int64_t tiles = (rows + kTilePixels - 1) / kTilePixels, groups = (panels.count + together - 1) / together;
  const std::int64_t low = rows / tiles, higher = rows % tiles;  // so many tiles have one row more, and come first
  const Range units = share(count_of(out, batch_axes) * groups * tiles, thread, threads);
  MatmulTile t;
  t.a_row = a.stride[batch_axes];
  t.a_inner = a.stride[batch_axes + 1];
  t.out_row = out.stride[batch_axes];
  for (std::int64_t unit = units.begin; unit < units.end;) {
    const std::int64_t group = unit / tiles % groups, batch = unit / tiles / groups;
    const std::int64_t first_tile = unit % tiles;
    const std::int64_t last_tile = units.end - unit < tiles - first_tile ? first_tile + units.end - unit : tiles;
    unit += last_tile - first_tile;
    const float* a_data = static_cast<const float*>(a.data) + offset_of(a, batch_axes, batch);
    const float* b_data = static_cast<const float*>(packed.data) + offset_of(packed, batch_axes, batch);
    float* out_data = static_cast<float*>(out.data) + offset_of(out, batch_axes, batch);
    const std::int64_t first_panel = group * together;
    const std::int64_t last_panel = first_panel + together < panels.count ? first_panel + together : panels.count;
    for (std::int64_t k = 0; k < inner; k += chunk) {
      t.inner = inner - k < chunk ? inner - k : chunk;
      t.first = k == 0;
      for (std::int64_t panel = first_panel; panel < last_panel; ++panel) {
        const std::int64_t begin = panels.begin(panel), width = panels.begin(panel + 1) - begin;
        const std::int64_t left = columns - (begin + width - 1) * kWidth;
        t.lanes = static_cast<int>(left < kWidth ? left : kWidth);
        t.b = b_data + begin * kWidth * inner + k * width * kWidth;
        for (std::int64_t tile = first_tile; tile < last_tile;) {
          const std::int64_t height = low + (tile < higher), row = tile * low + (tile < higher ? tile : higher);
          const std::int64_t end = tile < higher && higher < last_tile ? higher : last_tile;  // of those as high
          t.count = end - tile;
          t.a = a_data + row * t.a_row + k * t.a_inner;
          t.out = out_data + row * t.out_row + begin * kWidth;
          do {
            kMatmulTiles.at[(width - 1) * kTilePixels + (height - 1)](t);
          } while (!kRuns && matmul_next(t, height));
          tile = end;
        }
      }
    }
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
