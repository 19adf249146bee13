// Fully connected layers for a few images: out = activate(W x + bias), as fast as W comes from memory.
//
// A thread takes its own units of output blocks, whose weights follow on each other: one stream, read once, in order. A
// unit's sums for all images stay in registers while the reduction runs over the features; every step broadcasts one
// feature of each image and multiplies it with one weight vector a block.
//
// x: images are the pixels of one row, features lie one behind the other. out: likewise, channels in blocks.
// Weights: [unit][feature][block of the unit][v]; the output blocks are dealt to ceil(blocks / unit_blocks) units of
// nearly equal size.
#pragma once

#include "kernels/convolution/conv_direct.hpp"

namespace powerlab::engine::POWERLAB_TIER {

constexpr int kGemvBlocks = 4;
constexpr int kGemvImages = 8;

// How far ahead weights are fetched, in floats.
constexpr int kGemvAhead = 2048;

struct GemvUnit {
  const float* x;
  const float* weights;
  const float* bias;
  float* out;
  std::int64_t x_image, out_plane, out_image;
  int features;
  float slope, low, high;
};

template <int B, int P>
static __attribute__((noinline)) void gemv_unit(const GemvUnit& g) {
  Vec acc[B][P];
  POWERLAB_UNROLL
  for (int b = 0; b < B; ++b) {
    POWERLAB_UNROLL
    for (int p = 0; p < P; ++p) acc[b][p] = load(g.bias + b * kWidth);
  }
  const float* weights = g.weights;
  const std::int64_t image = g.x_image;
  for (int feature = 0; feature < g.features; ++feature) {
    const float* x = g.x + feature;
    const float* x3 = x + 3 * image;
    const float* x6 = x3 + 3 * image;
    Vec w[B];
    POWERLAB_UNROLL
    for (int b = 0; b < B; ++b) {
      w[b] = load(weights + b * kWidth);
      // Into the second level. Past the caches (hint 0) takes twice as long on Intel's Emerald Rapids, with weights
      // that fit into the last level and with weights that do not.
      __builtin_prefetch(weights + kGemvAhead + b * kWidth, 0, 2);
    }
    weights += B * kWidth;
    POWERLAB_UNROLL
    for (int p = 0; p < P; ++p) {
      const float value = p < 3 ? x[p * image] : p < 6 ? x3[(p - 3) * image] : x6[(p - 6) * image];
      POWERLAB_UNROLL
      for (int b = 0; b < B; ++b) acc[b][p] += w[b] * value;
    }
  }
  POWERLAB_UNROLL
  for (int b = 0; b < B; ++b) {
    POWERLAB_UNROLL
    for (int p = 0; p < P; ++p) {
      store(g.out + b * g.out_plane + p * g.out_image, activate(acc[b][p], g.slope, g.low, g.high));
    }
  }
}

using GemvUnitFunction = void (*)(const GemvUnit&);

struct GemvUnitTable {
  GemvUnitFunction at[kGemvBlocks * kGemvImages];
};
template <int... I>
constexpr GemvUnitTable make_gemv_units(Indices<I...>) {
  return {{&gemv_unit<I / kGemvImages + 1, I % kGemvImages + 1>...}};
}
static constexpr GemvUnitTable kGemvUnits = make_gemv_units(typename MakeIndices<kGemvBlocks * kGemvImages>::type{});

// What all units of a step have in common.
static inline GemvUnit gemv_unit_of(const Step& s) {
  GemvUnit g{};
  g.x = s.x.data;
  g.x_image = s.x.pixel;
  g.out_plane = s.out.plane;
  g.out_image = s.out.pixel;
  g.features = s.x.c;
  g.slope = s.slope;
  g.low = s.low;
  g.high = s.high;
  return g;
}

// At most kGemvImages images, and unit_blocks of at most kGemvBlocks.
static void gemv(const Step& s, int thread, int threads) {
  const std::int64_t blocks = s.out.blocks, features = s.x.c;
  const std::int64_t units = (blocks + s.unit_blocks - 1) / s.unit_blocks;
  const Range own = share(units, thread, threads);
  GemvUnit g = gemv_unit_of(s);
  for (std::int64_t unit = own.begin; unit < own.end; ++unit) {
    const std::int64_t begin = unit * blocks / units, end = (unit + 1) * blocks / units;
    g.weights = s.weights + begin * features * kWidth;
    g.bias = s.bias + begin * kWidth;
    g.out = s.out.data + begin * s.out.plane;
    kGemvUnits.at[(end - begin - 1) * kGemvImages + (s.out.w - 1)](g);
    finish(s, {g.out, g.out_plane, g.out_image, end - begin, s.out.w});
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
