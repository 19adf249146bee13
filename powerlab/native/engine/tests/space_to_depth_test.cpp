// Folding: every element of every channel, with images that end within a stride, begin in the padding, or miss it.
#include <string>

#include "tests/test.hpp"

namespace powerlab::engine::test {

void check_space_to_depth(const KernelTable& table, Report& report) {
  struct Case {
    int images, channels, h, w, stride, top, left, out_h, out_w;
  };
  const Case cases[] = {{1, 3, 22, 21, 4, 2, 3, 6, 7}, {2, 5, 8, 8, 2, 0, 0, 4, 4},   {1, 1, 3, 2, 4, 1, 0, 1, 1},
                        {2, 2, 9, 11, 2, 3, 1, 6, 7},  {1, 4, 12, 12, 4, 0, 5, 3, 6}, {1, 3, 4, 4, 4, 9, 9, 5, 5}};
  for (const Case& c : cases) {
    Random random;
    reference::Tensor x(c.images, c.channels, c.h, c.w);
    random.fill(x.values);
    reference::Tensor expected(c.images, c.channels * c.stride * c.stride, c.out_h, c.out_w);
    for (int n = 0; n < expected.n; ++n) {
      for (int folded = 0; folded < expected.c; ++folded) {
        const int dx = folded % c.stride, dy = folded / c.stride % c.stride, channel = folded / c.stride / c.stride;
        for (int y = 0; y < c.out_h; ++y) {
          for (int column = 0; column < c.out_w; ++column) {
            expected.at(n, folded, y, column) =
                x.at(n, channel, y * c.stride - c.top + dy, column * c.stride - c.left + dx, 0.0);
          }
        }
      }
    }
    Placed planes(c.images, c.channels, c.h, c.w, 1, 0);
    planes.put(x);
    Step step{};
    step.x = planes.view;
    step.stride_h = step.stride_w = c.stride;
    step.pad_top = c.top;
    step.pad_left = c.left;
    const std::string what = std::string(table.tier) + " space_to_depth of " + std::to_string(c.h) + "x" +
                             std::to_string(c.w) + " by " + std::to_string(c.stride);
    for (const int threads : {1, 3}) {
      Placed out(c.images, expected.c, c.out_h, c.out_w, table.vector_width, 1);
      step.out = out.view;
      run_kernel(table, "space_to_depth", step, threads);
      report.check(what, error(out, expected), 0);
      report.check(what + ", written outside", written_outside(out), 0);
    }
    const View like = Placed(c.images, expected.c, c.out_h, c.out_w, table.vector_width, 1).view;
    report.check(what + ", shares of 3 threads", misowned(table, "space_to_depth", step, like, 3), 0);
  }
}

}  // namespace powerlab::engine::test
