// Convolution 1 x 1 of an input that is scaled, shifted and activated first (K. He et al., "Identity Mappings in Deep
// Residual Networks", ECCV 2016): out = activate(conv(activate_x(x * scale + shift)) + bias + y).
//
// A thread takes up to chunk_tiles * kTilePixels of its pixels at a time, counted through rows and images. It brings
// chunk_blocks blocks of them into scratch, changed as they are to be read, and lets all output channels take them up
// through conv_direct's register tile; sums wait in scratch, too, until they are whole and go to out. So x is read
// once, its new form never leaves the cache, and tiles are full however wide the rows are and whatever halo they have.
//
// Weights: [chunk of input blocks][output unit][input block][lane][block of the unit][v], units as in conv_direct.
// Bias: one float a channel of out; then the scales and the shifts of x, one float a channel each; all filled up.
// Scratch, for each thread `scratch.image` floats: input [block of the chunk][pixel][v], then sums
// [output block][pixel][v]; an odd number of vectors between blocks keeps them out of one another's cache sets.
#pragma once

#include "kernels/convolution/conv_direct.hpp"

namespace powerlab::engine::POWERLAB_TIER {

// Pixels of one row that follow on each other.
struct PixelRun {
  std::int64_t n, y, x, count;
};
static inline PixelRun pixel_run(const View& v, Range pixels) {
  const std::int64_t x = pixels.begin % v.w, left = v.w - x, wanted = pixels.end - pixels.begin;
  return {pixels.begin / v.w / v.h, pixels.begin / v.w % v.h, x, left < wanted ? left : wanted};
}

static inline std::int64_t odd_vectors(std::int64_t pixels) { return (pixels | 1) * kWidth; }

// The blocks of x in `blocks` at the pixels, changed, as [block][pixel][v].
template <bool Rectified>  // no slope and no upper limit: what nearly all networks have
static void preactivate(const Step& s, Range blocks, Range pixels, float* to, std::int64_t to_plane) {
  const Vec low = broadcast(s.x_low);
  for (std::int64_t block = blocks.begin; block < blocks.end; ++block) {
    const float* channels = s.bias + (s.out.blocks + block) * kWidth;
    const Vec scale = load(channels), shift = load(channels + s.x.blocks * kWidth);
    float* out = to + (block - blocks.begin) * to_plane;
    for (std::int64_t at = pixels.begin; at < pixels.end;) {
      const PixelRun run = pixel_run(s.x, {at, pixels.end});
      const float* x = row_start(s.x, {run.n, block, run.y}) + run.x * s.x.pixel;
      for (std::int64_t i = 0; i < run.count; ++i) {
        const Vec v = load(x + i * s.x.pixel) * scale + shift;
        store(out + i * kWidth, Rectified ? (v < low ? low : v) : activate(v, s.x_slope, s.x_low, s.x_high));
      }
      out += run.count * kWidth;
      at += run.count;
    }
  }
}

// Asks for the blocks of x in `blocks` at the pixels, to be in the second-level cache when they are taken up.
static inline void prefetch_pixels(const Step& s, Range blocks, Range pixels) {
  constexpr std::int64_t kLine = kWidth < 16 ? 16 / kWidth : 1;  // pixels
  for (std::int64_t at = pixels.begin; at < pixels.end;) {
    const PixelRun run = pixel_run(s.x, {at, pixels.end});
    const float* x = row_start(s.x, {run.n, blocks.begin, run.y}) + run.x * s.x.pixel;
    for (std::int64_t block = blocks.begin; block < blocks.end; ++block, x += s.x.plane) {
      for (std::int64_t i = 0; i < run.count; i += kLine) __builtin_prefetch(x + i * s.x.pixel, 0, 2);
    }
    at += run.count;
  }
}

// What one unit of output channels takes up at a time: the input blocks in `blocks` at `pixels`, and what to ask for
// meanwhile: the blocks in `next`, weights that follow.
struct PreactivatedPart {
  Range blocks, next, pixels;
};

// Adds to the sums of one unit what the input blocks give; `weights` are those of the unit and the blocks.
static void preactivated_multiply(const Step& s, const ConvUnit& unit, const PreactivatedPart& part, const float* input,
                                  const float* weights, float* sums) {
  const Range blocks = part.blocks;
  const std::int64_t pixels = part.pixels.end - part.pixels.begin;
  ConvTile t{};
  t.blocks = static_cast<int>(blocks.end - blocks.begin);
  t.lanes = kWidth;
  t.last_lanes = blocks.end == s.x.blocks ? s.last_lanes : kWidth;
  const std::int64_t steps = (t.blocks - 1) * kWidth + t.last_lanes;
  const std::int64_t most = tile_pixels(unit.blocks), tiles = (pixels + most - 1) / most;
  const std::int64_t tile_bytes = steps * unit.blocks * kWidth * 4 / tiles;
  t.weights = weights;
  t.bias = s.bias + unit.first_block * kWidth;
  t.prefetch_step = tile_bytes / steps;
  t.x_plane = odd_vectors(pixels);
  t.x_pixel = kWidth;
  t.out_plane = odd_vectors(pixels);
  t.out_pixel = kWidth;
  t.kernel_h = t.kernel_w = 1;
  t.first = blocks.begin == 0;
  const char* next_weights = reinterpret_cast<const char*>(weights) + steps * unit.blocks * kWidth * 4;
  for (std::int64_t tile = 0; tile < tiles; ++tile) {
    const std::int64_t begin = tile * pixels / tiles, end = (tile + 1) * pixels / tiles;
    t.x = input + begin * kWidth;
    t.out = sums + unit.first_block * t.out_plane + begin * kWidth;
    t.prefetch = next_weights + tile * tile_bytes;
    t.count = 1;
    conv_run(conv_function(conv_functions(1, kWidth), unit.blocks, end - begin), t);
    prefetch_pixels(s, part.next, {part.pixels.begin + begin, part.pixels.begin + end});
  }
}

// Sums [block][pixel][v] to out, with the residual and the activation.
static void preactivated_output(const Step& s, Range blocks, Range pixels, const float* sums, std::int64_t sums_plane) {
  for (std::int64_t block = blocks.begin; block < blocks.end; ++block) {
    const float* from = sums + block * sums_plane;
    for (std::int64_t at = pixels.begin; at < pixels.end;) {
      const PixelRun run = pixel_run(s.out, {at, pixels.end});
      const Row row{run.n, block, run.y};
      float* out = row_start(s.out, row) + run.x * s.out.pixel;
      const float* y = s.y.data ? row_start(s.y, row) + run.x * s.y.pixel : nullptr;
      for (std::int64_t i = 0; i < run.count; ++i) {
        store(out + i * s.out.pixel, with_residual(load(from + i * kWidth), y ? y + i * s.y.pixel : nullptr, s));
      }
      finish(s, {out, 0, s.out.pixel, 1, run.count});
      from += run.count * kWidth;
      at += run.count;
    }
  }
}

static void conv_preactivated(const Step& s, int thread, int threads) {
  const int pixel_parts = threads / s.channel_split;
  const int channel_part = thread / pixel_parts, pixel_part = thread % pixel_parts;
  if (channel_part >= s.channel_split) return;  // threads that do not divide evenly
  const Range own = share(static_cast<std::int64_t>(s.out.n) * s.out.h * s.out.w, pixel_part, pixel_parts);
  const std::int64_t most = static_cast<std::int64_t>(s.chunk_tiles) * kTilePixels;
  const std::int64_t chunks = (own.end - own.begin + most - 1) / most;
  const Range units = share(conv_group_units(s), channel_part, s.channel_split);
  if (units.begin == units.end) return;
  const ConvUnit first = conv_unit(s, units.begin), last = conv_unit(s, units.end - 1);
  const bool rectified = s.x_slope == 1 && s.x_high == __builtin_inff();
  float* input = s.scratch.data + thread * s.scratch.image;
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    const Range part = share(own.end - own.begin, static_cast<int>(chunk), static_cast<int>(chunks));
    const Range pixels{own.begin + part.begin, own.begin + part.end};
    const std::int64_t count = pixels.end - pixels.begin, plane = odd_vectors(count);
    float* sums = input + s.chunk_blocks * plane;
    for (std::int64_t begin = 0; begin < s.x.blocks; begin += s.chunk_blocks) {
      const std::int64_t end = begin + s.chunk_blocks < s.x.blocks ? begin + s.chunk_blocks : s.x.blocks;
      const std::int64_t next = end + s.chunk_blocks < s.x.blocks ? end + s.chunk_blocks : s.x.blocks;
      const std::int64_t steps = (end - begin - 1) * kWidth + (end == s.x.blocks ? s.last_lanes : kWidth);
      (rectified ? preactivate<true> : preactivate<false>)(s, {begin, end}, pixels, input, plane);
      const float* weights = s.weights + begin * kWidth * s.out.blocks * kWidth;
      for (std::int64_t u = units.begin; u < units.end; ++u) {
        const ConvUnit unit = conv_unit(s, u);
        const Range asked =
            share(next - end, static_cast<int>(u - units.begin), static_cast<int>(units.end - units.begin));
        preactivated_multiply(s, unit, {{begin, end}, {end + asked.begin, end + asked.end}, pixels}, input,
                              weights + unit.first_block * steps * kWidth, sums);
      }
    }
    preactivated_output(s, {first.first_block, last.first_block + last.blocks}, pixels, sums, plane);
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
