// A convolution of bytes that a max pool ends: out = largest(conv(x)), windows cut at the edges of what lies between.
//
// That is the largest tensor of most networks that begin so. Of it a thread has a band of rows, in its scratch: it
// makes the rows of x that some rows of windows see, takes their largest bytes, and keeps the rows that the next
// windows see too. Rows that the windows of two threads see are made by both.
//
// `parts[0]` is the pool. Its views have no data: x says how the band lies, and how many rows it has; out.h, how many
// rows the convolution makes. All else is as conv_bytes.hpp says, but no residual is added, and threads share rows.
// Scratch: the band, for each thread `scratch.image` floats.
#pragma once

#include "kernels/bytes/conv_bytes.hpp"
#include "kernels/bytes/pool_bytes.hpp"

namespace powerlab::engine::POWERLAB_TIER {

// Moves `rows` rows of the band, from row `from` on, to its begin.
static inline void keep_rows(const View& band, std::int64_t from, std::int64_t rows) {
  for (int block = 0; block < band.blocks; ++block) {
    float* plane = band.data + block * band.plane;
    memmove(plane, plane + from * band.row, static_cast<size_t>(rows * band.row) * sizeof(float));
  }
}

template <int N = 1>
static void conv_pool_bytes(const Step& s, int thread, int threads) {
  const Step& pool = s.parts[0];
  const std::int64_t stride = pool.stride_h, height = pool.out.h;
  const std::int64_t together = (pool.x.h - pool.kernel_h) / stride + 1;
  const Range rows = share(static_cast<std::int64_t>(s.out.n) * s.out.h, thread, threads);
  View band = pool.x;
  band.data = s.scratch.data + thread * s.scratch.image;
  Step conv = s, largest = pool;
  conv.x.n = 1;
  conv.out = band;
  conv.next = nullptr;
  largest.out = s.out;
  largest.out.n = 1;
  Range seen{0, 0};  // rows of the convolution that the band begins with
  for (std::int64_t at = rows.begin, count; at < rows.end; at += count) {
    const std::int64_t n = at / s.out.h, y = at % s.out.h;
    const std::int64_t left = rows.end - at < s.out.h - y ? rows.end - at : s.out.h - y;
    count = left < together ? left : together;
    const std::int64_t top = y * stride - pool.pad_top, bottom = top + (count - 1) * stride + pool.kernel_h;
    const Range needed{top < 0 ? 0 : top, bottom < height ? bottom : height};
    const bool goes_on = at > rows.begin && y > 0 && needed.begin < seen.end;
    const std::int64_t kept = goes_on ? seen.end - needed.begin : 0;
    if (kept > 0) keep_rows(band, needed.begin - seen.begin, kept);
    conv.x.data = s.x.data + n * s.x.image + (needed.begin + kept) * s.stride_h * s.x.row;
    conv.out.data = band.data + kept * band.row;
    conv.out.h = static_cast<std::int32_t>(needed.end - needed.begin - kept);
    if (conv.out.h > 0) conv_bytes<false, N>(conv, 0, 1);
    largest.x = band;
    largest.x.h = static_cast<std::int32_t>(needed.end - needed.begin);
    largest.pad_top = static_cast<std::int32_t>(needed.begin - top);
    largest.out.h = static_cast<std::int32_t>(count);
    largest.out.data = row_start(s.out, {n, 0, y});
    pool_max_bytes(largest, 0, 1);
    seen = needed;
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
