// Test tensors: seeded random values, and their way into and out of the kernels' layouts.
#pragma once

#include <bit>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "kernels/step.hpp"
#include "reference/reference.hpp"

namespace powerlab::engine::test {

// The same sequence on every machine: values in [-1, 1), exact in float.
class Random {
 public:
  explicit Random(std::uint64_t seed = 1) : state_(seed) {}
  double next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<double>(static_cast<std::int32_t>(state_ >> 33 << 8) >> 8) / (1 << 23);
  }
  // An integer from low to high, both included.
  int whole(int low, int high) { return low + static_cast<int>((next() + 1) / 2 * (high - low + 1)); }
  bool coin() { return next() < 0; }
  void fill(std::vector<double>& values) {
    for (double& value : values) value = next();
  }

 private:
  std::uint64_t state_;
};

// The nearest bfloat16, the even one of two that are as near.
inline std::uint16_t bfloat16_bits(double value) {
  const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(value));
  return static_cast<std::uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}
inline double of_bfloat16(std::uint16_t half) { return std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16); }
inline double nearest_bfloat16(double value) { return of_bfloat16(bfloat16_bits(value)); }

// Exactly as much memory as asked for, aligned like the plan's, so that the address sanitizer sees every overrun.
class Floats {
 public:
  explicit Floats(std::size_t count, float value = 0)
      : data_(static_cast<float*>(::operator new[](count * sizeof(float), std::align_val_t{64}))), count_(count) {
    for (std::size_t i = 0; i < count; ++i) data_[i] = value;
  }
  float* data() { return data_.get(); }
  float& operator[](std::size_t i) { return data_[i]; }
  std::size_t size() const { return count_; }

 private:
  struct Delete {
    void operator()(float* p) const { ::operator delete[](p, std::align_val_t{64}); }
  };
  std::unique_ptr<float[], Delete> data_;
  std::size_t count_;
};

// A matrix or several, each element at i * strides: what a general kernel sees of `data`.
inline Strided strided(float* data, std::vector<std::int64_t> sizes, std::vector<std::int64_t> strides) {
  Strided made{};
  made.data = data;
  made.element = Element::kFloat;
  made.rank = static_cast<std::int32_t>(sizes.size());
  for (std::size_t axis = 0; axis < sizes.size(); ++axis) {
    made.size[axis] = sizes[axis];
    made.stride[axis] = strides[axis];
  }
  return made;
}

// The view of a tensor in blocks of so many channels, a pixel of which takes so many floats, within a halo.
inline View view_in_blocks(float* memory, int n, int c, int h, int w, int channels, int pixel, int halo) {
  View view{};
  view.n = n;
  view.c = c;
  view.h = h;
  view.w = w;
  view.blocks = (c + channels - 1) / channels;
  view.pixel = pixel;
  view.row = static_cast<std::int64_t>(w + 2 * halo) * pixel;
  view.plane = (h + 2 * halo) * view.row;
  view.image = view.blocks * view.plane;
  view.data = memory + halo * (view.row + view.pixel);
  view.top = view.left = view.bottom = view.right = halo;
  return view;
}

// A tensor in blocks of `lanes` channels with a halo of zeros; memory nobody has written holds not-a-number.
struct Placed {
  Floats memory;
  View view;

  Placed(int n, int c, int h, int w, int lanes, int halo)
      : memory(size(n, c, h, w, lanes, halo), std::numeric_limits<float>::quiet_NaN()),
        view(view_in_blocks(memory.data(), n, c, h, w, lanes, lanes, halo)) {}

  static std::size_t size(int n, int c, int h, int w, int lanes, int halo) {
    return static_cast<std::size_t>(n) * ((c + lanes - 1) / lanes) * lanes * (h + 2 * halo) * (w + 2 * halo);
  }

  float& at(int n, int c, int y, int x) {
    const auto lanes = static_cast<int>(view.pixel);
    return view.data[n * view.image + c / lanes * view.plane + y * view.row + x * view.pixel + c % lanes];
  }

  // The halo becomes zero; channels that fill up the last block become not-a-number, since no kernel may count on them.
  void put(const reference::Tensor& t) {
    for (std::size_t i = 0; i < memory.size(); ++i) memory[i] = 0;
    for (int n = 0; n < t.n; ++n) {
      for (int c = 0; c < view.blocks * view.pixel; ++c) {
        for (int y = 0; y < t.h; ++y) {
          for (int x = 0; x < t.w; ++x) {
            at(n, c, y, x) =
                c < t.c ? static_cast<float>(t.at(n, c, y, x, 0.0)) : std::numeric_limits<float>::quiet_NaN();
          }
        }
      }
    }
  }
};

// How many floats outside the tensor itself, halo included, no longer hold what `Placed` put there; channels that fill
// up the last block do not count, since kernels may write them. For a tensor that `put` was not called on.
inline int written_outside(Placed& placed) {
  const View& v = placed.view;
  std::vector<bool> inside(placed.memory.size());
  for (int n = 0; n < v.n; ++n) {
    for (int c = 0; c < v.blocks * v.pixel; ++c) {
      for (int y = 0; y < v.h; ++y) {
        for (int x = 0; x < v.w; ++x)
          inside[static_cast<std::size_t>(&placed.at(n, c, y, x) - placed.memory.data())] = true;
      }
    }
  }
  int count = 0;
  for (std::size_t i = 0; i < inside.size(); ++i) count += !inside[i] && placed.memory[i] == placed.memory[i];
  return count;
}

// How many elements of two tensors of one shape differ in their bits.
inline int different_bits(Placed& left, Placed& right) {
  int count = 0;
  for (int n = 0; n < left.view.n; ++n) {
    for (int c = 0; c < left.view.c; ++c) {
      for (int y = 0; y < left.view.h; ++y) {
        for (int x = 0; x < left.view.w; ++x) {
          count +=
              std::bit_cast<std::uint32_t>(left.at(n, c, y, x)) != std::bit_cast<std::uint32_t>(right.at(n, c, y, x));
        }
      }
    }
  }
  return count;
}

// Largest difference over the largest expected magnitude; infinite where a result is not a number.
inline double error(Placed& found, const reference::Tensor& expected) {
  double difference = 0, magnitude = 1e-30;
  for (int n = 0; n < expected.n; ++n) {
    for (int c = 0; c < expected.c; ++c) {
      for (int y = 0; y < expected.h; ++y) {
        for (int x = 0; x < expected.w; ++x) {
          const double value = found.at(n, c, y, x), right = expected.at(n, c, y, x, 0.0);
          const double d = value > right ? value - right : right - value;
          if (!(d <= 1e30)) return std::numeric_limits<double>::infinity();
          difference = d > difference ? d : difference;
          magnitude = std::abs(right) > magnitude ? std::abs(right) : magnitude;
        }
      }
    }
  }
  return difference / magnitude;
}

}  // namespace powerlab::engine::test
