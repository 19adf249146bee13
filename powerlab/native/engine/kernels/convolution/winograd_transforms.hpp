// The transforms of Winograd's minimal filtering F(M, R), M outputs of a kernel of R taps, one dimension at a time: B^T
// for the input, A^T for the output (A. Lavin, S. Gray, "Fast Algorithms for Convolutional Neural Networks", CVPR
// 2016). B^T depends on the interpolation points alone, of which M + R - 1 are needed. G is in engine/codegen/pack.py.
#pragma once

#include "kernels/vec.hpp"

namespace powerlab::engine::POWERLAB_TIER {

template <int M, int R>
struct Winograd;

template <>
struct Winograd<2, 3> {
  // B^T d, with interpolation points 0, 1, -1
  static inline void input(const Vec (&d)[4], Vec (&r)[4]) {
    r[0] = d[0] - d[2];
    r[1] = d[1] + d[2];
    r[2] = d[2] - d[1];
    r[3] = d[1] - d[3];
  }
  // A^T m
  static inline void output(const Vec (&m)[4], Vec (&r)[2]) {
    r[0] = m[0] + m[1] + m[2];
    r[1] = m[1] - m[2] - m[3];
  }
};

template <>
struct Winograd<4, 3> {
  // Points 0, 1, -1, 2, -2
  static inline void input(const Vec (&d)[6], Vec (&r)[6]) {
    const Vec even1 = d[4] - d[2] * 4.0f, odd1 = d[3] - d[1] * 4.0f;
    const Vec even2 = d[4] - d[2], odd2 = (d[3] - d[1]) * 2.0f;
    r[0] = d[0] * 4.0f - d[2] * 5.0f + d[4];
    r[1] = even1 + odd1;
    r[2] = even1 - odd1;
    r[3] = even2 + odd2;
    r[4] = even2 - odd2;
    r[5] = d[1] * 4.0f - d[3] * 5.0f + d[5];
  }
  static inline void output(const Vec (&m)[6], Vec (&r)[4]) {
    const Vec sum1 = m[1] + m[2], difference1 = m[1] - m[2], sum2 = m[3] + m[4], difference2 = m[3] - m[4];
    r[0] = m[0] + sum1 + sum2;
    r[1] = difference1 + difference2 * 2.0f;
    r[2] = sum1 + sum2 * 4.0f;
    r[3] = difference1 + difference2 * 8.0f + m[5];
  }
};

template <>
struct Winograd<6, 3> {
  // Points 0, 1, -1, 2, -2, 1/2, -1/2
  static inline void input(const Vec (&d)[8], Vec (&r)[8]) {
    const Vec even1 = d[2] + d[6] - d[4] * 4.25f, odd1 = d[1] + d[5] - d[3] * 4.25f;
    const Vec even2 = d[6] + d[2] * 0.25f - d[4] * 1.25f, odd2 = d[1] * 0.5f - d[3] * 2.5f + d[5] * 2.0f;
    const Vec even3 = d[6] + d[2] * 4.0f - d[4] * 5.0f, odd3 = d[1] * 2.0f - d[3] * 2.5f + d[5] * 0.5f;
    r[0] = d[0] - d[6] + (d[4] - d[2]) * 5.25f;
    r[1] = even1 + odd1;
    r[2] = even1 - odd1;
    r[3] = even2 + odd2;
    r[4] = even2 - odd2;
    r[5] = even3 + odd3;
    r[6] = even3 - odd3;
    r[7] = d[7] - d[1] + (d[3] - d[5]) * 5.25f;
  }
  static inline void output(const Vec (&m)[8], Vec (&r)[6]) {
    const Vec sum1 = m[1] + m[2], difference1 = m[1] - m[2], sum2 = m[3] + m[4], difference2 = m[3] - m[4];
    const Vec sum3 = m[5] + m[6], difference3 = m[5] - m[6];
    r[0] = m[0] + sum1 + sum2 + sum3;
    r[1] = difference1 + difference2 * 2.0f + difference3 * 0.5f;
    r[2] = sum1 + sum2 * 4.0f + sum3 * 0.25f;
    r[3] = difference1 + difference2 * 8.0f + difference3 * 0.125f;
    r[4] = sum1 + sum2 * 16.0f + sum3 * 0.0625f;
    r[5] = m[7] + difference1 + difference2 * 32.0f + difference3 * 0.03125f;
  }
};

template <>
struct Winograd<4, 5> {
  // The points of F(6, 3)
  static inline void input(const Vec (&d)[8], Vec (&r)[8]) { Winograd<6, 3>::input(d, r); }
  static inline void output(const Vec (&m)[8], Vec (&r)[4]) {
    const Vec sum1 = m[1] + m[2], difference1 = m[1] - m[2], sum2 = m[3] + m[4], difference2 = m[3] - m[4];
    const Vec sum3 = m[5] + m[6], difference3 = m[5] - m[6];
    r[0] = m[0] + sum1 + sum2 + sum3;
    r[1] = difference1 + difference2 * 2.0f + difference3 * 0.5f;
    r[2] = sum1 + sum2 * 4.0f + sum3 * 0.25f;
    r[3] = m[7] + difference1 + difference2 * 8.0f + difference3 * 0.125f;
  }
};

}  // namespace powerlab::engine::POWERLAB_TIER
