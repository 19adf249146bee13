// Fully connected layers with weights in fewer bits: out = activate(W x + bias), see formats.hpp.
//
// A thread takes its own units of output blocks, whose weights follow on each other; 8, 4, 2 or 1 images pass over a
// unit's weights at once, the next ones find them in the cache. x and out are as gemv.hpp has them.
#pragma once

#include "kernels/narrow/formats.hpp"
#include "kernels/products/gemv.hpp"

namespace powerlab::engine::POWERLAB_TIER {

template <class W, int B, int P>
static __attribute__((noinline)) void gemv_narrow_unit(const GemvUnit& g) {
  Vec sums[B][P];
  narrow_sums<W, B, P>(sums, {g.x, g.x_image, g.features}, g.weights);
  POWERLAB_UNROLL
  for (int b = 0; b < B; ++b) {
    POWERLAB_UNROLL
    for (int p = 0; p < P; ++p) {
      store(g.out + b * g.out_plane + p * g.out_image,
            activate(sums[b][p] + load(g.bias + b * kWidth), g.slope, g.low, g.high));
    }
  }
}

// Passes have 1 << size images: one that has any number has twice the code, and half of the tier's would be this.
constexpr int kPassSizes = 4;

struct PassTable {
  GemvUnitFunction at[kGemvBlocks * kPassSizes];
};
template <class W, int... I>
constexpr PassTable make_passes(Indices<I...>) {
  return {{&gemv_narrow_unit<W, I / kPassSizes + 1, 1 << I % kPassSizes>...}};
}

// unit_blocks of at most kGemvBlocks.
template <class W>
static void gemv_narrow(const Step& s, int thread, int threads) {
  static constexpr PassTable kPasses = make_passes<W>(typename MakeIndices<kGemvBlocks * kPassSizes>::type{});
  const std::int64_t blocks = s.out.blocks, words = row_words<W>(s.x.c);
  const std::int64_t units = (blocks + s.unit_blocks - 1) / s.unit_blocks;
  const Range own = share(units, thread, threads);
  GemvUnit g = gemv_unit_of(s);
  for (std::int64_t unit = own.begin; unit < own.end; ++unit) {
    const std::int64_t begin = unit * blocks / units, count = (unit + 1) * blocks / units - begin;
    g.weights = s.weights + begin * words * kWidth;
    g.bias = s.bias + begin * kWidth;
    int size = kPassSizes - 1;
    for (std::int64_t first = 0; first < s.out.w; first += 1 << size) {
      while (first + (1 << size) > s.out.w) --size;
      g.x = s.x.data + first * s.x.pixel;
      g.out = s.out.data + begin * s.out.plane + first * s.out.pixel;
      kPasses.at[(count - 1) * kPassSizes + size](g);
      finish(s, {g.out, g.out_plane, g.out_image, count, 1 << size});
    }
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
