// Moving tensors between layouts.
#pragma once

#include <string.h>

#include "kernels/transpose_tile.hpp"

namespace powerlab::engine::POWERLAB_TIER {

// A row of an image of three channels, pixel by pixel: a third of the time that it takes channel by channel.
static inline void interleave_three(const float* x, std::int64_t plane, float* out, std::int64_t pixels) {
  for (std::int64_t i = 0; i < pixels; ++i) {
    out[3 * i] = x[i];
    out[3 * i + 1] = x[plane + i];
    out[3 * i + 2] = x[2 * plane + i];
  }
}

// Pixels that follow on each other in x and in out: rows, or parts of whole planes where rows follow on each other.
struct Segments {
  std::int64_t parts, pixels;  // parts of a plane, at most so many pixels each
};
constexpr std::int64_t kSegmentPixels = 256;

static inline Segments segments(const View& planes, const View& blocks) {
  const bool flat = blocks.row == blocks.w * blocks.pixel && planes.row == planes.w;
  const std::int64_t all = static_cast<std::int64_t>(planes.h) * planes.w;
  if (!flat) return {planes.h, planes.w};
  return {(all + kSegmentPixels - 1) / kSegmentPixels, kSegmentPixels};
}

// One segment of one block of channels, as it lies in planes and in blocks.
struct Segment {
  float *planes, *blocks;
  std::int64_t pixels;
  int channels;
};

static inline Segment segment_of(const View& planes, const View& blocks, const Segments& all, std::int64_t unit) {
  const std::int64_t part = unit % all.parts, block = unit / all.parts % blocks.blocks;
  const std::int64_t n = unit / all.parts / blocks.blocks, c = block * kWidth;
  const bool rows = all.parts == planes.h && all.pixels == planes.w;
  const std::int64_t left = static_cast<std::int64_t>(planes.h) * planes.w - part * all.pixels;
  return {
      planes.data + n * planes.image + c * planes.plane + part * all.pixels,
      blocks.data + n * blocks.image + block * blocks.plane + (rows ? part * blocks.row : part * all.pixels * kWidth),
      left < all.pixels ? left : all.pixels, planes.c - c < kWidth ? static_cast<int>(planes.c - c) : kWidth};
}

// Channels that are not there become zero.
static void segment_to_blocks(const Segment& segment, std::int64_t plane) {
  std::int64_t i = 0;
  for (; i + kWidth <= segment.pixels; i += kWidth) {
    Vec tile[kWidth];
    for (int c = 0; c < kWidth; ++c)
      tile[c] = c < segment.channels ? load_unaligned(segment.planes + c * plane + i) : Vec{};
    transpose_tile(tile);
    for (int p = 0; p < kWidth; ++p) store(segment.blocks + (i + p) * kWidth, tile[p]);
  }
  for (; i < segment.pixels; ++i) {
    float* out = segment.blocks + i * kWidth;
    for (int c = 0; c < segment.channels; ++c) out[c] = segment.planes[c * plane + i];
    for (int c = segment.channels; c < kWidth; ++c) out[c] = 0.0f;
  }
}

static void segment_to_planes(const Segment& segment, std::int64_t plane) {
  std::int64_t i = 0;
  for (; i + kWidth <= segment.pixels; i += kWidth) {
    Vec tile[kWidth];
    for (int p = 0; p < kWidth; ++p) tile[p] = load(segment.blocks + (i + p) * kWidth);
    transpose_tile(tile);
    for (int c = 0; c < segment.channels; ++c) store_unaligned(segment.planes + c * plane + i, tile[c]);
  }
  for (; i < segment.pixels; ++i) {
    for (int c = 0; c < segment.channels; ++c) segment.planes[c * plane + i] = segment.blocks[i * kWidth + c];
  }
}

// Planar x to blocks of any number of channels, of which an interleaved image has one. Channels that are not there
// become zero.
static void rows_to_blocks(const Step& s, int thread, int threads) {
  const Range rows = row_share(s.out, thread, threads);
  const int lanes = static_cast<int>(s.out.pixel);
  for (std::int64_t unit = rows.begin; unit < rows.end; ++unit) {
    const Row r = row_of(unit, s.out);
    float* out = row_start(s.out, r);
    const float* x = row_start(s.x, {r.n, r.block * lanes, r.y});
    if (lanes == 3 && s.x.c == 3) {
      interleave_three(x, s.x.plane, out, s.out.w);
      continue;
    }
    for (int lane = 0; lane < lanes; ++lane) {
      const bool there = r.block * lanes + lane < s.x.c;
      for (int i = 0; i < s.out.w; ++i) out[i * s.out.pixel + lane] = there ? x[lane * s.x.plane + i] : 0.0f;
    }
  }
}

// Blocks of any number of channels to planar out.
static void rows_to_planes(const Step& s, int thread, int threads) {
  const Range rows = row_share(s.out, thread, threads);
  for (std::int64_t unit = rows.begin; unit < rows.end; ++unit) {
    const Row r = row_of(unit, s.out);
    const float* x = row_start(s.x, {r.n, r.block / s.x.pixel, r.y}) + r.block % s.x.pixel;
    float* out = row_start(s.out, r);
    for (int i = 0; i < s.out.w; ++i) out[i] = x[i * s.x.pixel];
  }
}

// Planar x to blocked or interleaved out: the number of channels in a block is out's pixel stride.
static void reorder_to_blocks(const Step& s, int thread, int threads) {
  if (s.out.pixel != kWidth) return rows_to_blocks(s, thread, threads);
  const Segments all = segments(s.x, s.out);
  const Range own = share(s.out.n * s.out.blocks * all.parts, thread, threads);
  for (std::int64_t unit = own.begin; unit < own.end; ++unit) {
    segment_to_blocks(segment_of(s.x, s.out, all, unit), s.x.plane);
  }
}

// Blocked x to planar out.
static void reorder_to_planes(const Step& s, int thread, int threads) {
  if (s.x.pixel != kWidth) return rows_to_planes(s, thread, threads);
  const Segments all = segments(s.out, s.x);
  const Range own = share(s.x.n * s.x.blocks * all.parts, thread, threads);
  for (std::int64_t unit = own.begin; unit < own.end; ++unit) {
    segment_to_planes(segment_of(s.out, s.x, all, unit), s.out.plane);
  }
}

// x whose channels follow on each other, pixel by pixel, to blocked out. Channels that are not there become zero.
static void channels_to_blocks(const Step& s, int thread, int threads) {
  const Range rows = row_share(s.out, thread, threads);
  for (std::int64_t unit = rows.begin; unit < rows.end; ++unit) {
    const Row r = row_of(unit, s.out);
    const int left = s.out.c - static_cast<int>(r.block) * kWidth;
    const float* x = row_start(s.x, r);
    float* out = row_start(s.out, r);
    for (int i = 0; i < s.out.w; ++i, x += s.x.pixel, out += kWidth) {
      store(out, left < kWidth ? load_lanes(x, left) : load_unaligned(x));
    }
  }
}

// Rows of w * pixel floats, between views of equal sizes and any strides.
static void copy(const Step& s, int thread, int threads) {
  const Range rows = row_share(s.out, thread, threads);
  const std::size_t bytes = static_cast<std::size_t>(s.out.w * s.out.pixel) * sizeof(float);
  for (std::int64_t unit = rows.begin; unit < rows.end; ++unit) {
    const Row r = row_of(unit, s.out);
    memcpy(row_start(s.out, r), row_start(s.x, r), bytes);
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
