// Two or three convolutions in one pass, as in the inverted residuals of M. Sandler et al., "MobileNetV2", CVPR 2018:
// a dense head, a depthwise convolution, and perhaps a 1x1 tail that adds the residual: out = tail(depthwise(head(x))).
// What lies between them stays in the cache: it would be the largest tensors of such networks.
//
// `parts` are the convolutions. Their views say how operands lie; where, the kernel decides: parts[0].x is x, and
// parts[0].out and parts[1].x the ring, in which a thread keeps the rows of the head's result that the depthwise
// convolution still needs, with the columns of zeros that pad them. parts[1].x.h counts the ring's rows. With a tail,
// parts[1].out is a band of rows without a halo; without one, it is out.
//
// With a tail, a thread takes chunk_tiles rows of out at a time, through all channels. Without one it takes a unit of
// channels at a time through all its rows, so that the ring holds one unit only. Rows that two threads need are
// computed by both.
//
// Scratch, for each thread `scratch.image` floats: the ring, then the band.
#pragma once

#include "kernels/convolution/conv_depthwise.hpp"
#include "kernels/convolution/conv_direct.hpp"

namespace powerlab::engine::POWERLAB_TIER {

// One thread's part of one image, and where its scratch lies.
struct ChainImage {
  const Step* step;
  std::int64_t n;
  Range rows;  // of out
  float* ring;
  float* band;
};

static void chain_convolve(const Step& s, const ConvUnit& unit, bool far) {
  const std::int64_t row_tiles = conv_row_tiles(s);
  for (int chunk = 0; chunk < s.x.blocks; chunk += s.chunk_blocks) {
    const int chunk_end = chunk + s.chunk_blocks < s.x.blocks ? chunk + s.chunk_blocks : s.x.blocks;
    conv_pass(s, unit, {0, s.x.blocks}, chunk, chunk_end, {0, s.out.h * row_tiles}, false, far);
  }
}

// The rows of the head's result, counted from its first one, that rows `out` of the depthwise convolution read.
static inline Range chain_needs(const Step& depthwise, Range out) {
  const std::int64_t reach = (depthwise.kernel_h - 1) * static_cast<std::int64_t>(depthwise.dilation_h) + 1;
  return {out.begin * depthwise.stride_h - depthwise.pad_top,
          (out.end - 1) * depthwise.stride_h - depthwise.pad_top + reach};
}

// Rows of the head's result for one unit of its channels, into the ring.
static void chain_head(const ChainImage& image, const ConvUnit& unit, float* ring, Range rows) {
  const Step& whole = image.step->parts[0];
  const Step& depthwise = image.step->parts[1];
  const View& x = image.step->x;
  const std::int64_t slots = depthwise.x.h;
  Step s = whole;
  s.out.n = 1;
  for (std::int64_t y = rows.begin; y < rows.end; y += s.out.h) {
    const std::int64_t slot = (y + depthwise.pad_top) % slots;
    const bool inside = y >= 0 && y < whole.out.h;
    const std::int64_t limit = !inside ? y + 1 : rows.end < whole.out.h ? rows.end : whole.out.h;
    s.out.h = static_cast<std::int32_t>(limit - y < slots - slot ? limit - y : slots - slot);
    s.out.data = ring + slot * s.out.row;
    if (inside) {
      s.x = x;
      s.x.data = x.data + image.n * x.image + y * s.stride_h * x.row;
      chain_convolve(s, unit, kRuns && s.kernel_h * s.kernel_w == 1);
    } else {
      for (int block = 0; block < unit.blocks; ++block) {
        float* zeros = s.out.data + (unit.first_block + block) * s.out.plane;
        for (int column = 0; column < s.out.w; ++column) store(zeros + column * s.out.pixel, Vec{});
      }
    }
  }
}

// Rows `rows` of the depthwise convolution for one unit of channels, the rows of the head before `known` being there.
static void chain_unit(const ChainImage& image, const ConvUnit& unit, float* ring, Range rows, std::int64_t known,
                       const View& out) {
  const Step& depthwise = image.step->parts[1];
  const Range needed = chain_needs(depthwise, rows);
  chain_head(image, unit, ring, {needed.begin > known ? needed.begin : known, needed.end});
  Step s = depthwise;
  s.out = out;
  const DepthwiseKind& kind = depthwise_kind(s);
  const std::int64_t slots = s.x.h;
  for (int b = 0; b < unit.blocks; ++b) {
    const std::int64_t block = unit.first_block + b;
    const float* plane = ring + block * s.x.plane - s.pad_left * s.x.pixel;
    const RowRing window{plane, s.x.row, rows.begin * s.stride_h % slots, slots};
    depthwise_rows(s, kind, window, block, rows.end - rows.begin, out.data + block * out.plane, nullptr);
  }
}

// The tail's part of rows `rows`, which lie in the band; they are one long row where out and the residual allow it.
static void chain_tail(const ChainImage& image, Range rows) {
  const Step& step = *image.step;
  Step s = step.parts[2];
  const auto count = static_cast<std::int32_t>(rows.end - rows.begin);
  const auto lies_flat = [](const View& v) { return v.row == v.w * v.pixel; };
  s.x = step.parts[1].out;
  s.x.data = image.band;
  s.out = step.out;
  s.out.data = row_start(step.out, {image.n, 0, rows.begin});
  s.y = step.y;
  if (step.y.data) s.y.data = row_start(step.y, {image.n, 0, rows.begin});
  s.out.n = 1;
  s.out.h = count;
  if (lies_flat(s.x) && lies_flat(s.out) && (!s.y.data || lies_flat(s.y))) {
    s.out.h = 1;
    s.out.w *= count;
  }
  const std::int64_t units = conv_group_units(s);
  for (std::int64_t unit = 0; unit < units; ++unit) chain_convolve(s, conv_unit(s, unit), false);
}

static Range chain_band(Range rows, std::int64_t height, int i) {
  const std::int64_t count = rows.end - rows.begin;
  const Range part = share(count, i, static_cast<int>((count + height - 1) / height));
  return {rows.begin + part.begin, rows.begin + part.end};
}

// Band by band through all channels, with the tail.
static void chain_with_tail(const ChainImage& image) {
  const Step& step = *image.step;
  View band = step.parts[1].out;
  band.data = image.band;
  const std::int64_t units = conv_group_units(step.parts[0]);
  std::int64_t known = chain_needs(step.parts[1], image.rows).begin;
  std::int64_t y = image.rows.begin;
  for (int i = 0; y < image.rows.end; ++i) {
    const Range rows = chain_band(image.rows, step.chunk_tiles, i);
    for (std::int64_t unit = 0; unit < units; ++unit) {
      chain_unit(image, conv_unit(step.parts[0], unit), image.ring, rows, known, band);
    }
    chain_tail(image, rows);
    known = chain_needs(step.parts[1], rows).end;
    y = rows.end;
  }
}

// One unit of channels, band by band; the ring holds that unit only.
static void chain_without_tail(const ChainImage& image, const ConvUnit& unit) {
  const Step& step = *image.step;
  float* ring = image.ring - unit.first_block * step.parts[1].x.plane;
  std::int64_t known = chain_needs(step.parts[1], image.rows).begin;
  std::int64_t y = image.rows.begin;
  for (int i = 0; y < image.rows.end; ++i) {
    const Range rows = chain_band(image.rows, step.chunk_tiles, i);
    View out = step.out;
    out.data = row_start(out, {image.n, 0, rows.begin});
    chain_unit(image, unit, ring, rows, known, out);
    known = chain_needs(step.parts[1], rows).end;
    y = rows.end;
  }
}

// The columns of zeros in the ring.
static void chain_pad(const View& ring, float* data, std::int64_t blocks) {
  for (std::int64_t block = 0; block < blocks; ++block) {
    for (int slot = 0; slot < ring.h; ++slot) {
      float* row = data + block * ring.plane + slot * ring.row;
      for (int column = -ring.left; column < 0; ++column) store(row + column * ring.pixel, Vec{});
      for (int column = ring.w; column < ring.w + ring.right; ++column) store(row + column * ring.pixel, Vec{});
    }
  }
}

static void conv_chain(const Step& s, int thread, int threads) {
  const int row_parts = threads / s.channel_split;
  const int channel_part = thread / row_parts, row_part = thread % row_parts;
  if (channel_part >= s.channel_split) return;  // threads that do not divide evenly
  const View& ring = s.parts[1].x;
  const bool tail = s.part_count == 3;
  const Range units = share(conv_group_units(s.parts[0]), channel_part, s.channel_split);
  const Range rows = share(static_cast<std::int64_t>(s.out.n) * s.out.h, row_part, row_parts);
  float* scratch = s.scratch.data + thread * s.scratch.image;
  ChainImage image{&s, 0, {0, 0}, scratch + ring.left * ring.pixel, scratch + ring.image};
  chain_pad(ring, image.ring, ring.blocks);
  for (std::int64_t begin = rows.begin; begin < rows.end; begin += image.rows.end - image.rows.begin) {
    image.n = begin / s.out.h;
    const std::int64_t first = image.n * s.out.h;
    image.rows = {begin - first, rows.end - first < s.out.h ? rows.end - first : s.out.h};
    if (tail) {
      chain_with_tail(image);
    } else {
      for (std::int64_t unit = units.begin; unit < units.end; ++unit) {
        chain_without_tail(image, conv_unit(s.parts[0], unit));
      }
    }
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
