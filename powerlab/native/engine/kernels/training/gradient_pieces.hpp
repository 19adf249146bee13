// The gradient of a convolution's weights: dw[o][i][ky][kx] = sum over images and pixels of dy[o] * x[i], x being the
// pixel that the tap met.
//
// x, y (the gradient of the result): blocked; the padding is the halo of x. operands: dw (groups, outputs, inputs, kh,
// kw). numbers: groups of it that lie in one group of blocks; outside its own part such a group has no weights.
//
// A tile of output blocks x input channels stays in registers while the pixels of a piece pass, some rows or a part of
// one: dy is a vector of outputs, x one number for all of them, as in conv_direct with pixels and channels exchanged.
// The pieces are added up in scratch, so that no sum is longer than a piece and the number of pieces. Threads share
// weights, never pixels: the order of a sum depends on the sizes alone.
//
// Several input blocks read a piece of a 1 x 1 convolution in turn, each in a plane of its own: the processor does not
// see where they go on, so a tile fetches the pixels of the next piece. Bursts of prefetches, and those of dy, were
// slower; a kernel with more taps reads its pixels often enough.
//
// Products says what a lane of x is and how it is multiplied, and brings the dy and x of a piece into that form, for
// which it takes kRoom floats of scratch. Its Registers are there as long as a step runs. Sums of an input block at a
// tap are [lane][output], or [output][lane] where kOutputsFirst says so.
#pragma once

#include "kernels/vec.hpp"

namespace powerlab::engine::POWERLAB_TIER {

#if defined(__AVX512F__)
constexpr int kGradientBlocks = 3, kGradientLanes = 8;
#elif defined(__aarch64__)
constexpr int kGradientBlocks = 6, kGradientLanes = 4;
#else
constexpr int kGradientBlocks = 3, kGradientLanes = 4;
#endif

constexpr std::int64_t kGradientPixels = 128;  // of a piece: its operands stay in the first-level cache
constexpr std::int64_t kGradientTogether = 4;  // input blocks that read a piece of dy one after the other, of 1 x 1

struct GradientTile {
  const float *x, *dy;
  std::int64_t x_row, x_pixel, dy_row, dy_plane;
  std::int64_t rows, pixels;
  std::int64_t x_next;  // from a pixel to that of the next piece, which is fetched meanwhile; 0: nothing is
  float* sums;          // [lane][block][v], or [block][v][lane]
};

template <typename Products, int B, int C>
static __attribute__((noinline)) void gradient_tile(const GradientTile& t) {
  Vec acc[B][C] = {};
  const std::int64_t x_pixel = t.x_pixel, dy_plane = t.dy_plane, x_next = t.x_next;
  for (std::int64_t row = 0; row < t.rows; ++row) {
    const float *x = t.x + row * t.x_row, *dy = t.dy + row * t.dy_row;
    POWERLAB_UNROLL_BY_2
    for (std::int64_t left = t.pixels; left > 0; --left, x += x_pixel, dy += kWidth) {
      Vec d[B];
      POWERLAB_UNROLL
      for (int b = 0; b < B; ++b) d[b] = load(dy + b * dy_plane);
      __builtin_prefetch(x + x_next);
      POWERLAB_UNROLL
      for (int c = 0; c < C; ++c) {
        const typename Products::Lane value = Products::lane(x + c);
        POWERLAB_UNROLL
        for (int b = 0; b < B; ++b) acc[b][c] = Products::add(acc[b][c], d[b], value);
      }
    }
  }
  float* sums = t.sums;
  POWERLAB_UNROLL
  for (int c = 0; c < C; ++c) {
    POWERLAB_UNROLL
    for (int b = 0; b < B; ++b) {
      float* at = sums + (c * B + b) * kWidth;
      store(at, load(at) + acc[b][c]);
    }
  }
}

// All lanes of an input block, as many at a time as a tile has.
template <typename Products, int B>
static void gradient_lanes(GradientTile t, std::int64_t lanes) {
  std::int64_t lane = 0;
  const auto tile = [&](auto function, int taken) {
    function(t);
    lane += taken;
    t.x += taken;
    t.sums += taken * B * kWidth;
  };
  while (lanes - lane > kGradientLanes / 2) tile(&gradient_tile<Products, B, kGradientLanes>, kGradientLanes);
  if (lane < lanes) tile(&gradient_tile<Products, B, kGradientLanes / 2>, kGradientLanes / 2);
}

template <typename Products, int... I>
static inline void gradient_blocks(std::int64_t blocks, const GradientTile& t, std::int64_t lanes, Indices<I...>) {
  using Function = void (*)(GradientTile, std::int64_t);
  static constexpr Function at[] = {&gradient_lanes<Products, I + 1>...};
  at[blocks - 1](t, lanes);
}

// The rows of the result whose tap of kernel row `ky` meets the image.
static inline Range gradient_rows(const Step& s, std::int64_t ky) {
  const std::int64_t first = ky * s.dilation_h - s.pad_top, stride = s.stride_h;
  const std::int64_t begin = first < 0 ? (-first + stride - 1) / stride : 0;
  const std::int64_t fit = s.x.h - first <= 0 ? 0 : (s.x.h - first + stride - 1) / stride;
  const std::int64_t end = fit < s.y.h ? fit : s.y.h;
  return {begin, begin < end ? end : begin};
}

// A few weights: of one kernel row, some output blocks and some input blocks of a group.
struct GradientUnit {
  std::int64_t group, first_out, outs, first_in, ins, ky;
};

// room: what Products needs.
template <typename Products>
static void sum_gradients(const Step& s, const GradientUnit& u, std::int64_t in_channels, float* room, float* sums) {
  const std::int64_t in_blocks = s.x.blocks / s.groups, out_blocks = s.y.blocks / s.groups;
  const std::int64_t sum_floats = u.outs * kWidth * kWidth;  // of an input block at one tap
  for (std::int64_t i = 0; i < u.ins * s.kernel_w * sum_floats; ++i) sums[i] = 0.0f;
  const Range rows = gradient_rows(s, u.ky);
  const std::int64_t taps = std::int64_t{s.kernel_h} * s.kernel_w;
  const std::int64_t width = s.y.w, pieces = (width + kGradientPixels - 1) / kGradientPixels;
  const std::int64_t together = pieces > 1 ? 1 : kGradientPixels / width;  // rows of a piece
  for (std::int64_t n = 0; n < s.x.n; ++n) {
    for (std::int64_t row = rows.begin; row < rows.end; row += together) {
      for (std::int64_t piece = 0; piece < pieces; ++piece) {
        const std::int64_t begin = piece * width / pieces, end = (piece + 1) * width / pieces;
        GradientTile t;
        t.rows = rows.end - row < together ? rows.end - row : together;
        t.pixels = end - begin;
        t.x_row = s.x.row * s.stride_h;
        t.x_pixel = s.x.pixel * s.stride_w;
        t.x_next = taps > 1 ? 0 : pieces > 1 ? t.pixels * t.x_pixel : together * t.x_row;
        t.dy_row = s.y.row;
        t.dy_plane = s.y.plane;
        t.dy = s.y.data + n * s.y.image + (u.group * out_blocks + u.first_out) * s.y.plane + row * s.y.row +
               begin * kWidth;
        t = Products::outputs(t, u.outs, room);
        const std::int64_t y = row * s.stride_h + u.ky * s.dilation_h - s.pad_top;
        for (std::int64_t block = 0; block < u.ins; ++block) {
          const std::int64_t left = in_channels - (u.first_in + block) * kWidth;
          for (std::int64_t kx = 0; kx < s.kernel_w; ++kx) {
            const std::int64_t x = begin * s.stride_w + kx * s.dilation_w - s.pad_left;
            t.x = s.x.data + n * s.x.image + (u.group * in_blocks + u.first_in + block) * s.x.plane + y * s.x.row +
                  x * s.x.pixel;
            t.sums = sums + (block * s.kernel_w + kx) * sum_floats;
            Products::multiply(u.outs, Products::inputs(t, room), left < kWidth ? left : kWidth);
          }
        }
      }
    }
  }
}

// Output by output: what lies together is written together. Outputs lie so many bytes apart, often powers of 2, that
// their lines would drive each other out of the cache.
template <bool kOutputsFirst>
static void put_gradients(const Step& s, const GradientUnit& u, const float* sums) {
  const Strided& dw = s.operands[0];
  const std::int64_t merged = s.numbers[0], outputs = dw.size[1], inputs = dw.size[2], span = u.outs * kWidth;
  for (std::int64_t o = 0; o < span; ++o) {
    const std::int64_t output = u.first_out * kWidth + o, part = output / outputs;
    if (part >= merged) break;
    float* row = static_cast<float*>(dw.data) + (u.group * merged + part) * dw.stride[0] +
                 output % outputs * dw.stride[1] + u.ky * dw.stride[3];
    for (std::int64_t block = 0; block < u.ins; ++block) {
      const std::int64_t first = (u.first_in + block) * kWidth - part * inputs;  // within the part
      const std::int64_t begin = first < 0 ? -first : 0, end = inputs - first < kWidth ? inputs - first : kWidth;
      const float* from = sums + block * s.kernel_w * kWidth * span + o * (kOutputsFirst ? kWidth : 1);
      for (std::int64_t lane = begin; lane < end; ++lane) {
        float* to = row + (first + lane) * dw.stride[2];
        for (std::int64_t kx = 0; kx < s.kernel_w; ++kx)
          to[kx * dw.stride[4]] = from[kx * kWidth * span + lane * (kOutputsFirst ? 1 : span)];
      }
    }
  }
}

template <typename Products>
static void conv_weight_gradient(const Step& s, int thread, int threads) {
  const std::int64_t in_blocks = s.x.blocks / s.groups, out_blocks = s.y.blocks / s.groups;
  const std::int64_t units = (out_blocks + kGradientBlocks - 1) / kGradientBlocks;
  const std::int64_t together = s.kernel_h * s.kernel_w == 1 ? kGradientTogether : 1;
  const std::int64_t parts = (in_blocks + together - 1) / together;
  const std::int64_t in_channels = s.operands[0].size[2] * s.numbers[0];
  float* room = s.scratch.data + thread * s.scratch.image;
  float* sums = room + Products::kRoom;
  [[maybe_unused]] const typename Products::Registers registers{};
  const Range own = share(s.groups * units * parts * s.kernel_h, thread, threads);
  for (std::int64_t i = own.begin; i < own.end; ++i) {
    const std::int64_t rest = i / s.kernel_h, part = rest % parts, unit = rest / parts % units;
    GradientUnit u;
    u.group = rest / parts / units;
    u.first_out = unit * out_blocks / units;
    u.outs = (unit + 1) * out_blocks / units - u.first_out;
    u.first_in = part * in_blocks / parts;
    u.ins = (part + 1) * in_blocks / parts - u.first_in;
    u.ky = i % s.kernel_h;
    sum_gradients<Products>(s, u, in_channels, room, sums);
    put_gradients<Products::kOutputsFirst>(s, u, sums);
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
