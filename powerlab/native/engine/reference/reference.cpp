#include "reference/reference.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace powerlab::engine::reference {
namespace {

template <typename Function>
void for_each(const Tensor& out, Function function) {
  for (int n = 0; n < out.n; ++n) {
    for (int c = 0; c < out.c; ++c) {
      for (int y = 0; y < out.h; ++y) {
        for (int x = 0; x < out.w; ++x) function(n, c, y, x);
      }
    }
  }
}

double limit(double value, Clamp clamp) {
  return std::min(std::max(value < 0 ? clamp.slope * value : value, clamp.low), clamp.high);
}

bool inside(const Tensor& t, int y, int x) { return y >= 0 && y < t.h && x >= 0 && x < t.w; }

}  // namespace

void conv(const Tensor& x, const Tensor& weights, const std::vector<double>& bias, const Tensor* residual,
          const Window& window, int groups, Clamp clamp, Tensor& out) {
  const int group_outputs = out.c / groups;
  for_each(out, [&](int n, int o, int oy, int ox) {
    double sum = bias[static_cast<std::size_t>(o)];
    for (int i = 0; i < weights.c; ++i) {
      for (int ky = 0; ky < window.kernel_h; ++ky) {
        for (int kx = 0; kx < window.kernel_w; ++kx) {
          const int y = oy * window.stride_h - window.top + ky * window.dilation_h;
          const int column = ox * window.stride_w - window.left + kx * window.dilation_w;
          sum += x.at(n, o / group_outputs * weights.c + i, y, column, 0.0) * weights.at(o, i, ky, kx, 0.0);
        }
      }
    }
    const double added = residual ? residual->at(n, o, oy, ox, 0.0) : 0;
    out.at(n, o, oy, ox) = clamp.adds_last ? limit(sum, clamp) + added : limit(sum + added, clamp);
  });
}

void resize_nearest(const Tensor& x, int scale_h, int scale_w, Tensor& out) {
  for_each(out, [&](int n, int c, int y, int column) {
    out.at(n, c, y, column) = x.at(n, c, y / scale_h, column / scale_w);
  });
}

void pool_max(const Tensor& x, const Window& window, Tensor& out) {
  for_each(out, [&](int n, int c, int oy, int ox) {
    double most = -std::numeric_limits<double>::infinity();
    for (int ky = 0; ky < window.kernel_h; ++ky) {
      for (int kx = 0; kx < window.kernel_w; ++kx) {
        const int y = oy * window.stride_h - window.top + ky * window.dilation_h;
        const int column = ox * window.stride_w - window.left + kx * window.dilation_w;
        most = std::max(most, x.at(n, c, y, column, -std::numeric_limits<double>::infinity()));
      }
    }
    out.at(n, c, oy, ox) = most;
  });
}

void pool_average(const Tensor& x, const Window& window, bool count_padding, Tensor& out) {
  for_each(out, [&](int n, int c, int oy, int ox) {
    double sum = 0;
    int count = 0;
    for (int ky = 0; ky < window.kernel_h; ++ky) {
      for (int kx = 0; kx < window.kernel_w; ++kx) {
        const int y = oy * window.stride_h - window.top + ky, column = ox * window.stride_w - window.left + kx;
        sum += x.at(n, c, y, column, 0.0);
        count += count_padding || inside(x, y, column);
      }
    }
    out.at(n, c, oy, ox) = sum / count;
  });
}

void pool_global_average(const Tensor& x, Tensor& out) {
  for_each(out, [&](int n, int c, int, int) {
    double sum = 0;
    for (int y = 0; y < x.h; ++y) {
      for (int column = 0; column < x.w; ++column) sum += x.at(n, c, y, column, 0.0);
    }
    out.at(n, c, 0, 0) = sum / (static_cast<double>(x.h) * x.w);
  });
}

void pool_lp(const Tensor& x, const Window& window, double p, Tensor& out) {
  Tensor powers = x;
  for (double& value : powers.values) value = std::pow(std::abs(value), p);
  const std::vector<double> rows(static_cast<std::size_t>(out.h), 1), columns(static_cast<std::size_t>(out.w), 1);
  pool_shares(powers, window, rows, columns, out);
  for (double& value : out.values) value = std::pow(value, 1 / p);
}

void pool_shares(const Tensor& x, const Window& window, const std::vector<double>& rows,
                 const std::vector<double>& columns, Tensor& out) {
  for_each(out, [&](int n, int c, int oy, int ox) {
    double sum = 0;
    for (int ky = 0; ky < window.kernel_h; ++ky) {
      for (int kx = 0; kx < window.kernel_w; ++kx) {
        sum += x.at(n, c, oy * window.stride_h - window.top + ky * window.dilation_h,
                    ox * window.stride_w - window.left + kx * window.dilation_w, 0.0);
      }
    }
    out.at(n, c, oy, ox) = sum * rows[static_cast<std::size_t>(oy)] * columns[static_cast<std::size_t>(ox)];
  });
}

void interpolate(const Tensor& x, const std::vector<std::vector<Tap>>& rows,
                 const std::vector<std::vector<Tap>>& columns, double outside, Tensor& out) {
  for_each(out, [&](int n, int c, int oy, int ox) {
    double sum = 0;
    for (const Tap& row : rows[static_cast<std::size_t>(oy)]) {
      for (const Tap& column : columns[static_cast<std::size_t>(ox)]) {
        if (row.place < 0 || column.place < 0) {
          out.at(n, c, oy, ox) = outside;
          return;
        }
        sum += row.weight * column.weight * x.at(n, c, row.place, column.place, 0.0);
      }
    }
    out.at(n, c, oy, ox) = sum;
  });
}

void multiply(const Tensor& x, const Tensor& y, Clamp clamp, Tensor& out) {
  const bool per_channel = y.h != x.h || y.w != x.w;
  for_each(out, [&](int n, int c, int row, int column) {
    const double factor = per_channel ? y.at(n, c, 0, 0) : y.at(n, c, row, column);
    out.at(n, c, row, column) = limit(x.at(n, c, row, column) * factor, clamp);
  });
}

void function(const Tensor& x, double (*f)(double), Tensor& out) {
  std::transform(x.values.begin(), x.values.end(), out.values.begin(), f);
}

void add(const Tensor& x, const Tensor& y, Clamp clamp, Tensor& out) {
  for (std::size_t i = 0; i < out.values.size(); ++i) out.values[i] = limit(x.values[i] + y.values[i], clamp);
}

void scale_shift(const Tensor& x, const std::vector<double>& scale, const std::vector<double>& shift, Clamp clamp,
                 Tensor& out) {
  for_each(out, [&](int n, int c, int y, int column) {
    const auto i = static_cast<std::size_t>(c);
    out.at(n, c, y, column) = limit(x.at(n, c, y, column, 0.0) * scale[i] + shift[i], clamp);
  });
}

void lrn(const Tensor& x, int size, double alpha, double beta, double offset, Tensor& out) {
  const int before = (size - 1) / 2, after = size - 1 - before;
  for_each(out, [&](int n, int c, int y, int column) {
    double sum = 0;
    for (int i = std::max(0, c - before); i <= std::min(x.c - 1, c + after); ++i) {
      sum += x.at(n, i, y, column, 0.0) * x.at(n, i, y, column, 0.0);
    }
    out.at(n, c, y, column) = x.at(n, c, y, column, 0.0) * std::pow(offset + alpha / size * sum, -beta);
  });
}

void softmax_over_rows(const Tensor& x, Tensor& out) {
  for_each(out, [&](int n, int c, int y, int column) {
    double most = -std::numeric_limits<double>::infinity(), sum = 0;
    for (int i = 0; i < x.h; ++i) most = std::max(most, x.at(n, c, i, column, 0.0));
    for (int i = 0; i < x.h; ++i) sum += std::exp(x.at(n, c, i, column, 0.0) - most);
    out.at(n, c, y, column) = std::exp(x.at(n, c, y, column, 0.0) - most) / sum;
  });
}

void lstm(const Tensor& x, const Tensor& weights, const Tensor& hidden, bool backwards, Tensor& cells, Tensor& out) {
  const auto sigmoid = [](double value) { return 1 / (1 + std::exp(-value)); };
  for (int step = 0; step < x.n; ++step) {
    const int time = backwards ? x.n - 1 - step : step, before = backwards ? time + 1 : time - 1;
    for (int sequence = 0; sequence < out.h; ++sequence) {
      const auto gate = [&](int row) {
        double sum = x.at(time, row, sequence, 0, 0.0);
        for (int i = 0; i < out.c; ++i) {
          const double h = step == 0 ? hidden.at(0, i, sequence, 0, 0.0) : out.at(before, i, sequence, 0, 0.0);
          sum += weights.at(row, i, 0, 0, 0.0) * h;
        }
        return sum;
      };
      for (int unit = 0; unit < out.c; ++unit) {
        const double input = sigmoid(gate(unit)), output = sigmoid(gate(out.c + unit));
        const double forget = sigmoid(gate(2 * out.c + unit)), candidate = std::tanh(gate(3 * out.c + unit));
        double& cell = cells.at(0, unit, sequence, 0);
        cell = forget * cell + input * candidate;
        out.at(time, unit, sequence, 0) = output * std::tanh(cell);
      }
    }
  }
}

void gru(const Tensor& x, const Tensor& weights, const std::vector<double>& inside, const Tensor& hidden,
         bool resets_before, Tensor& out) {
  const auto sigmoid = [](double value) { return 1 / (1 + std::exp(-value)); };
  const int units = out.c;
  std::vector<double> before(static_cast<std::size_t>(units)), reset(before);
  for (int sequence = 0; sequence < out.h; ++sequence) {
    for (int time = 0; time < x.n; ++time) {
      for (int i = 0; i < units; ++i) {
        before[static_cast<std::size_t>(i)] =
            time == 0 ? hidden.at(0, i, sequence, 0, 0.0) : out.at(time - 1, i, sequence, 0, 0.0);
      }
      const auto product = [&](int row, const std::vector<double>& of) {
        double sum = 0;
        for (int i = 0; i < units; ++i) sum += weights.at(row, i, 0, 0, 0.0) * of[static_cast<std::size_t>(i)];
        return sum;
      };
      const auto gate = [&](int row) { return sigmoid(x.at(time, row, sequence, 0, 0.0) + product(row, before)); };
      for (int i = 0; i < units; ++i) {
        reset[static_cast<std::size_t>(i)] = gate(units + i) * before[static_cast<std::size_t>(i)];
      }
      for (int i = 0; i < units; ++i) {
        const int row = 2 * units + i;
        const double inner = resets_before
                                 ? product(row, reset)
                                 : gate(units + i) * (product(row, before) + inside[static_cast<std::size_t>(i)]);
        const double candidate = std::tanh(x.at(time, row, sequence, 0, 0.0) + inner), update = gate(i);
        out.at(time, i, sequence, 0) = (1 - update) * candidate + update * before[static_cast<std::size_t>(i)];
      }
    }
  }
}

}  // namespace powerlab::engine::reference
