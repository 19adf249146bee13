// A tier no processor asks for: four lanes and register tiles of 3 x 7 and 5 x 2, so that kernels cannot count on the
// even tiles the real tiers have. With it come the Winograd transforms, which are checked as identities: exactly, in
// whole numbers.
#define POWERLAB_TIER odd
#define POWERLAB_VECTOR_WIDTH 4
#define POWERLAB_TILE_BLOCKS 3
#define POWERLAB_TILE_PIXELS 7
#define POWERLAB_TALL_BLOCKS 5
#define POWERLAB_TALL_PIXELS 2
#include <cmath>
#include <string>

#include "tests/packing.hpp"
#include "tests/test.hpp"
#include "tiers/tier.cpp"

namespace powerlab::engine::test {
namespace {

template <int M, int R>
struct Transforms {
  static constexpr int kSize = M + R - 1;

  // Makes every G w whole; so floats hold every value below exactly.
  static constexpr double kWhole = R == 3 ? 24 : 90;

  // A^T [(G taps) . (B^T data)], one dimension.
  static void run(const double (&taps)[R], const double (&data)[kSize], double (&out)[M]) {
    const auto g = winograd_g(M, R);
    odd::Vec d[kSize], product[kSize], r[M];
    for (int i = 0; i < kSize; ++i) d[i] = odd::broadcast(static_cast<float>(data[i]));
    odd::Winograd<M, R>::input(d, product);
    for (int i = 0; i < kSize; ++i) {
      double weight = 0;
      for (int tap = 0; tap < R; ++tap)
        weight += g[static_cast<std::size_t>(i)][static_cast<std::size_t>(tap)] * taps[tap];
      product[i] *= odd::broadcast(static_cast<float>(weight));
    }
    odd::Winograd<M, R>::output(product, r);
    for (int i = 0; i < M; ++i) out[i] = static_cast<double>(r[i][0]);
  }

  static void check(const std::string& what, const double (&taps)[R], const double (&data)[kSize], double allowed,
                    Report& report) {
    double out[M], wrong = 0;
    run(taps, data, out);
    for (int i = 0; i < M; ++i) {
      double sum = 0;
      for (int tap = 0; tap < R; ++tap) sum += taps[tap] * data[i + tap];
      wrong += !(std::abs(out[i] - sum) <= allowed);
    }
    report.check("Winograd F(" + std::to_string(M) + ", " + std::to_string(R) + ") of " + what, wrong, 0);
  }

  // Both sides are bilinear: where they agree on every pair of unit vectors they agree everywhere.
  static void check_all(double allowed_for_many, Report& report) {
    for (int tap = 0; tap < R; ++tap) {
      for (int at = 0; at < kSize; ++at) {
        double taps[R] = {}, data[kSize] = {};
        taps[tap] = kWhole;
        data[at] = 1;
        check("tap " + std::to_string(tap) + " and pixel " + std::to_string(at), taps, data, 0, report);
      }
    }
    Random random(4);
    for (int round = 0; round < 50; ++round) {
      double taps[R], data[kSize];
      for (double& tap : taps) tap = kWhole * random.whole(-9, 9);
      for (double& value : data) value = random.whole(-99, 99);
      check("integers", taps, data, allowed_for_many, report);
    }
  }
};

}  // namespace

const KernelTable& odd_tier() { return odd::kTable; }

void check_winograd_identities(Report& report) {
  Transforms<2, 3>::check_all(0, report);
  Transforms<4, 3>::check_all(0, report);
  Transforms<4, 5>::check_all(1, report);  // sums of some 10^6 are rounded
}

}  // namespace powerlab::engine::test
