// What a plan refuses to take up, and what it keeps when called from many threads.
#include <algorithm>
#include <array>
#include <atomic>
#include <limits>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "plan.hpp"
#include "tests/test.hpp"

namespace powerlab::engine::test {
namespace {

constexpr std::int64_t kArenaFloats = 4096;

Place arena(std::int64_t offset) { return {Place::Space::kArena, offset, 0}; }

template <typename Error, typename Call>
bool refuses(Call call) {
  try {
    call();
  } catch (const Error&) {
    return true;
  }
  return false;
}

Step copy_step(const View& x, const View& out) {
  Step step{};
  step.x = x;
  step.out = out;
  return step;
}

// First and one past the last float a view reaches, found by going to every pixel of it and of its halo.
std::pair<std::int64_t, std::int64_t> reach(const View& v) {
  std::int64_t begin = std::numeric_limits<std::int64_t>::max(), end = std::numeric_limits<std::int64_t>::min();
  for (std::int64_t n = 0; n < v.n; ++n) {
    for (std::int64_t block = 0; block < v.blocks; ++block) {
      for (std::int64_t y = -v.top; y < v.h + v.bottom; ++y) {
        for (std::int64_t x = -v.left; x < v.w + v.right; ++x) {
          const std::int64_t at = n * v.image + block * v.plane + y * v.row + x * v.pixel;
          begin = std::min(begin, at);
          end = std::max(end, at + v.pixel);
        }
      }
    }
  }
  return {begin, end};
}

View random_view(Random& random) {
  View v{};
  v.n = random.whole(1, 3);
  v.blocks = random.whole(1, 3);
  v.h = random.whole(1, 4);
  v.w = random.whole(1, 4);
  v.top = random.whole(0, 2);
  v.left = random.whole(0, 2);
  v.bottom = random.whole(0, 2);
  v.right = random.whole(0, 2);
  v.pixel = random.whole(1, 8);
  v.row = (v.left + v.w + v.right) * v.pixel + random.whole(0, 3);
  v.plane = (v.top + v.h + v.bottom) * v.row + random.whole(0, 9);
  v.image = v.blocks * v.plane + random.whole(0, 9);
  v.c = static_cast<std::int32_t>(v.blocks * v.pixel);
  return v;
}

void check_bounds(const KernelTable& table, Report& report) {
  Random random(5);
  Plan plan(table.tier, 1, kArenaFloats, 0);
  const std::string name = std::string(table.tier) + " plan, ";
  for (int round = 0; round < 200; ++round) {
    const View view = random_view(random);
    const auto [begin, end] = reach(view);
    if (end - begin > kArenaFloats) continue;
    const auto add_as = [&](const char* operand, std::int64_t offset) {
      const Place place = arena(offset), none{};
      const std::string which = operand;
      Step step{};
      (which == "x" ? step.x : which == "y" ? step.y : which == "out" ? step.out : step.scratch) = view;
      plan.add("copy", which, step, which == "x" ? place : none, which == "y" ? place : none,
               which == "out" ? place : none, which == "scratch" ? place : none, -1, -1);
    };
    for (const char* operand : {"x", "y", "out", "scratch"}) {
      const auto refused = [&](std::int64_t offset) {
        return refuses<std::invalid_argument>([&] { add_as(operand, offset); });
      };
      report.check(name + operand + " at the start", refused(-begin), 0);
      report.check(name + operand + " at the end", refused(kArenaFloats - end), 0);
      report.check(name + operand + " before the start", !refused(-begin - 1), 0);
      report.check(name + operand + " past the end", !refused(kArenaFloats - end + 1), 0);
    }
  }
}

// A general operand is refused where it reaches outside the arena, backwards too, or is none that a kernel takes.
void check_general_bounds(const KernelTable& table, Report& report) {
  Random random(6);
  Plan plan(table.tier, 1, kArenaFloats, 0);
  const std::string name = std::string(table.tier) + " plan, a general operand ";
  for (int round = 0; round < 200; ++round) {
    Strided tensor{};
    tensor.element = random.coin() ? Element::kInt : Element::kFloat;
    tensor.rank = random.whole(1, 3);
    const std::int64_t floats = tensor.element == Element::kInt ? 2 : 1;
    std::int64_t first = 0, last = 0;
    for (std::int32_t axis = 0; axis < tensor.rank; ++axis) {
      tensor.size[axis] = random.whole(1, 5);
      tensor.stride[axis] = random.whole(-20, 20);
      const std::int64_t reach = (tensor.size[axis] - 1) * tensor.stride[axis];
      (reach < 0 ? first : last) += reach;
    }
    const std::int64_t begin = -first * floats, end = kArenaFloats - (last + 1) * floats;
    const auto refused = [&](const Strided& one, std::int64_t offset) {
      return refuses<std::invalid_argument>(
          [&] { plan.add("copy_strided_f32", "", {}, {}, {}, {}, {}, -1, -1, {}, {{one, arena(offset)}}); });
    };
    report.check(name + "at the start", refused(tensor, begin), 0);
    report.check(name + "at the end", refused(tensor, end), 0);
    report.check(name + "before the start", !refused(tensor, begin - floats), 0);
    report.check(name + "past the end", !refused(tensor, end + floats), 0);
    if (floats == 2) report.check(name + "between two floats", !refused(tensor, begin + 1), 0);
    Strided wrong = tensor;
    wrong.size[0] = 0;
    report.check(name + "of no elements", !refused(wrong, begin), 0);
    wrong = tensor;
    wrong.rank = random.coin() ? 0 : kMostAxes + 1;
    report.check(name + "of no or too many axes", !refused(wrong, begin), 0);
  }
}

// What a step cannot compute with ends the run with its label, and the next run is sound.
void check_faulty_run(const KernelTable& table, Report& report) {
  const std::string name = std::string(table.tier) + " plan, ";
  Strided number{};
  number.element = Element::kInt;
  number.rank = 1;
  number.size[0] = number.stride[0] = 1;
  Plan plan(table.tier, 2, 16, 0);
  const Place x{Place::Space::kInput, 0, 0}, y{Place::Space::kInput, 0, 1}, out{Place::Space::kOutput, 0, 0};
  plan.add("div_strided_i64", "quotient", {}, {}, {}, {}, {}, -1, -1, {}, {{number, out}, {number, x}, {number, y}});
  std::int64_t dividend = 7, divisor = 0, quotient = 0;
  const auto floats = [](std::int64_t& value) { return reinterpret_cast<float*>(&value); };
  const std::array<const float*, 2> inputs{floats(dividend), floats(divisor)};
  const std::array<float*, 1> outputs{floats(quotient)};
  std::string said;
  try {
    plan.run(inputs, outputs);
  } catch (const std::runtime_error& error) {
    said = error.what();
  }
  report.check(name + "a fault is told", said.find("'quotient' divides an integer by 0") == std::string::npos, 0);
  report.check(name + "in a timed run too",
               refuses<std::runtime_error>([&] { plan.run_timed(inputs, outputs); }) ? 0 : 1, 0);
  divisor = 2;
  plan.run(inputs, outputs);
  report.check(name + "the run after a fault", quotient == 3 ? 0 : 1, 0);
}

// Numbers no lowering makes, near all the limits: what is taken up lies inside the arena, computed without overflow.
void check_wild_views(const KernelTable& table, Report& report) {
  Random random(7);
  Plan plan(table.tier, 1, kArenaFloats, 0);
  constexpr std::int64_t kStrides[] = {0,
                                       1,
                                       2,
                                       3,
                                       16,
                                       64,
                                       1000,
                                       kArenaFloats,
                                       -1,
                                       -9,
                                       1L << 31,
                                       1L << 62,
                                       std::numeric_limits<std::int64_t>::max(),
                                       std::numeric_limits<std::int64_t>::min()};
  constexpr std::int32_t kSizes[] = {
      1, 1, 2, 3, 4, 0, -1, 1000, std::numeric_limits<std::int32_t>::max(), std::numeric_limits<std::int32_t>::min()};
  const auto stride = [&] { return kStrides[random.whole(0, 100) < 80 ? random.whole(0, 6) : random.whole(0, 13)]; };
  const auto size = [&] { return kSizes[random.whole(0, 100) < 90 ? random.whole(0, 3) : random.whole(0, 9)]; };
  const auto halo = [&] { return random.whole(0, 100) < 70 ? 0 : size(); };
  int taken = 0, outside = 0;
  for (int round = 0; round < 20000; ++round) {
    View v{};
    v.image = stride(), v.plane = stride(), v.row = stride(), v.pixel = stride();
    v.n = size(), v.c = size(), v.h = size(), v.w = size(), v.blocks = size();
    v.top = halo(), v.left = halo(), v.bottom = halo(), v.right = halo();
    Place place = arena(random.whole(0, 100) < 80 ? random.whole(0, kArenaFloats) : stride());
    try {
      plan.add("copy", "", copy_step(View{}, v), {}, {}, place, {}, -1, -1);
    } catch (const std::invalid_argument&) {
      continue;
    }
    ++taken;
    const std::int64_t block = std::max<std::int64_t>(table.vector_width, (v.c - 1) / std::max(v.blocks, 1) + 1);
    const auto begin = static_cast<double>(place.offset) - static_cast<double>(v.top) * static_cast<double>(v.row) -
                       static_cast<double>(v.left) * static_cast<double>(v.pixel);
    const auto end =
        static_cast<double>(place.offset) + (v.n - 1.0) * static_cast<double>(v.image) +
        (v.blocks - 1.0) * static_cast<double>(v.plane) + (v.h - 1.0 + v.bottom) * static_cast<double>(v.row) +
        (v.w - 1.0 + v.right) * static_cast<double>(v.pixel) + static_cast<double>(std::min({v.pixel, v.plane, block}));
    outside += begin < 0 || end > static_cast<double>(kArenaFloats) || v.n < 1 || v.blocks < 1 || v.h < 1 || v.w < 1;
  }
  report.check(std::string(table.tier) + " plan, wild views outside the arena", outside, 0);
  report.check(std::string(table.tier) + " plan, wild views inside it", taken > 200 ? 0 : 1, 0);
}

void check_refusals(const KernelTable& table, Report& report) {
  const std::string name = std::string(table.tier) + " plan, ";
  const auto refused = [&](const std::string& what, bool was) { report.check(name + what, was ? 0 : 1, 0); };
  Plan plan(table.tier, 1, kArenaFloats, 0);
  const Placed tensor(1, 1, 1, 4, 1, 0);
  const Step step = copy_step(tensor.view, tensor.view);
  const auto add = [&](const char* family, int weights, int bias) {
    return [&plan, &step, family, weights, bias] {
      plan.add(family, "", step, arena(0), {}, arena(64), {}, weights, bias);
    };
  };
  refused("an unknown kernel", refuses<std::invalid_argument>(add("conv_fancy", -1, -1)));
  refused("an empty kernel", refuses<std::invalid_argument>(add("", -1, -1)));
  refused("weights that are not there", refuses<std::out_of_range>(add("copy", 0, -1)));
  const std::vector<float> one{1};
  report.check(name + "first constant", plan.add_constant(one), 0);
  refused("a bias that is not there", refuses<std::out_of_range>(add("copy", 0, 1)));
  report.check(name + "steps after refusals", static_cast<double>(plan.steps().size()), 0);
  refused("no threads", refuses<std::invalid_argument>([&] { Plan none(table.tier, 0, 16, 0); }));
  refused("an unknown tier", refuses<std::invalid_argument>([&] { Plan none("abacus", 1, 16, 0); }));
}

void check_external_places(const KernelTable& table, Report& report) {
  const std::string name = std::string(table.tier) + " plan, ";
  Placed a(1, 1, 1, 8, 1, 0), b(1, 1, 1, 8, 1, 0), out(1, 1, 1, 8, 1, 0);
  for (int i = 0; i < 8; ++i) {
    a.at(0, 0, 0, i) = static_cast<float>(i);
    b.at(0, 0, 0, i) = static_cast<float>(100 + i);
  }
  View half = a.view;
  half.w = 4;
  Plan plan(table.tier, 2, 16, 0);
  // The last four of the second input and the first four of the first one, swapped on the way out.
  plan.add("copy", "b", copy_step(half, half), {Place::Space::kInput, 4, 1}, {}, {Place::Space::kOutput, 0, 0}, {}, -1,
           -1);
  plan.add("copy", "a", copy_step(half, half), {Place::Space::kInput, 0, 0}, {}, {Place::Space::kOutput, 4, 0}, {}, -1,
           -1);
  const std::array<const float*, 2> inputs{a.view.data, b.view.data};
  const std::array<float*, 1> outputs{out.view.data};
  plan.run(inputs, outputs);
  int wrong = 0;
  for (int i = 0; i < 4; ++i) wrong += out.at(0, 0, 0, i) != static_cast<float>(104 + i);
  for (int i = 4; i < 8; ++i) wrong += out.at(0, 0, 0, i) != static_cast<float>(i - 4);
  report.check(name + "offsets into inputs and outputs", wrong, 0);
  const std::array<const float*, 1> one_input{a.view.data};
  const auto too_few = [&] { plan.run(one_input, outputs); };
  report.check(name + "one input of two", refuses<std::invalid_argument>(too_few) ? 0 : 1, 0);
  const auto no_output = [&] { plan.run(inputs, {}); };
  report.check(name + "no output", refuses<std::invalid_argument>(no_output) ? 0 : 1, 0);
  plan.run(inputs, outputs);  // a refused run leaves the plan as it was
  Plan empty(table.tier, 3, 0, 0);
  empty.run({}, {});
  report.check(name + "no steps", static_cast<double>(empty.run_timed({}, {}).size()), 0);
}

// Steps that are run image by image: what lies between them holds one image, what comes from and goes outside all.
void check_loop(const KernelTable& table, bool apart, Report& report) {
  const std::string name = std::string(table.tier) + (apart ? " plan, threads apart, " : " plan, ");
  constexpr int kImages = 3, kFloats = 4;
  Placed in(1, 1, 1, kImages * kFloats, 1, 0), out(1, 1, 1, kImages * kFloats, 1, 0);
  for (int i = 0; i < kImages * kFloats; ++i) in.at(0, 0, 0, i) = static_cast<float>(i);
  View image = in.view;
  image.w = kFloats;
  const Step step = copy_step(image, image);
  const Place from{Place::Space::kInput, 0, 0, kFloats}, to{Place::Space::kOutput, 0, 0, kFloats};
  const Place between{Place::Space::kArena, 0, 0, 0, apart ? 16 : 0};
  Plan plan(table.tier, 2, 32, 0);
  plan.loop(2, kImages, apart);
  plan.add("copy", "in", step, from, {}, between, {}, -1, -1);
  plan.add("copy", "out", step, between, {}, to, {}, -1, -1);
  const std::array<const float*, 1> inputs{in.view.data};
  const std::array<float*, 1> outputs{out.view.data};
  const auto wrong = [&] {
    int count = 0;
    for (int i = 0; i < kImages * kFloats; ++i) count += out.at(0, 0, 0, i) != in.at(0, 0, 0, i);
    return count;
  };
  plan.run(inputs, outputs);
  report.check(name + "image by image", wrong(), 0);
  std::fill_n(out.view.data, kImages * kFloats, 0.0f);
  report.check(name + "durations", static_cast<double>(plan.run_timed(inputs, outputs).size()), 2);
  report.check(name + "image by image, timed", wrong(), 0);
  std::fill_n(out.view.data, kImages * kFloats, 0.0f);
  plan.repeat(inputs, outputs, 0, 2, 2);
  report.check(name + "image by image, repeated", wrong(), 0);
  report.check(name + "a loop after steps", refuses<std::invalid_argument>([&] { plan.loop(1, 2); }) ? 0 : 1, 0);
  Plan moved(table.tier, 2, 16, 0);
  moved.loop(1, kImages, apart);
  const auto past_the_end = [&] {
    moved.add("copy", "in", step, from, {}, {Place::Space::kArena, 0, 0, apart ? 0 : 7, apart ? 16 : 0}, {}, -1, -1);
  };
  report.check(name + "the last image, or thread, outside", refuses<std::invalid_argument>(past_the_end) ? 0 : 1, 0);
}

// Constants are copies: the caller's may change or go away.
void check_constants(const KernelTable& table, Report& report) {
  const int v = table.vector_width;
  Placed x(1, v, 1, 1, v, 0), out(1, v, 1, 1, v, 0);
  for (int c = 0; c < v; ++c) x.at(0, c, 0, 0) = 1;
  Plan plan(table.tier, 1, 16, 0);
  std::vector<float> factor(static_cast<std::size_t>(v), 3.0f), summand(static_cast<std::size_t>(v), 0.5f);
  const int weights = plan.add_constant(factor), bias = plan.add_constant(summand);
  Step step = copy_step(x.view, out.view);
  step.low = -1000;
  step.high = 1000;
  plan.add("scale_shift", "s", step, {Place::Space::kInput, 0, 0}, {}, {Place::Space::kOutput, 0, 0}, {}, weights,
           bias);
  factor.assign(factor.size(), 0);
  summand.clear();
  for (int i = 0; i < 100; ++i) plan.add_constant(std::vector<float>(1000, 9.0f));
  const std::array<const float*, 1> inputs{x.view.data};
  const std::array<float*, 1> outputs{out.view.data};
  plan.run(inputs, outputs);
  int wrong = 0;
  for (int c = 0; c < v; ++c) wrong += out.at(0, c, 0, 0) != 3.5f;
  report.check(std::string(table.tier) + " plan, constants are kept", wrong, 0);
}

// Callers take turns: each finds its own numbers in its own output.
void check_callers(const KernelTable& table, Report& report) {
  constexpr int kCallers = 4, kFloats = 64;
  Placed rows(1, 1, 1, kFloats, 1, 0);
  Plan plan(table.tier, 2, kFloats, 0);
  plan.add("copy", "in", copy_step(rows.view, rows.view), {Place::Space::kInput, 0, 0}, {}, arena(0), {}, -1, -1);
  plan.add("copy", "out", copy_step(rows.view, rows.view), arena(0), {}, {Place::Space::kOutput, 0, 0}, {}, -1, -1);
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int caller = 0; caller < kCallers; ++caller) {
    callers.emplace_back([&plan, &wrong, caller] {
      for (int run = 0; run < 25; ++run) {
        const std::vector<float> x(kFloats, static_cast<float>(1000 * caller + run));
        std::vector<float> y(kFloats);
        const std::array<const float*, 1> inputs{x.data()};
        const std::array<float*, 1> outputs{y.data()};
        run % 5 == 0 ? static_cast<void>(plan.run_timed(inputs, outputs)) : plan.run(inputs, outputs);
        wrong += x != y;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  report.check(std::string(table.tier) + " plan, several callers", wrong.load(), 0);
}

}  // namespace

void check_plan_bounds(const KernelTable& table, Report& report) {
  check_bounds(table, report);
  check_general_bounds(table, report);
  check_faulty_run(table, report);
  check_wild_views(table, report);
  check_refusals(table, report);
  check_external_places(table, report);
  for (const bool apart : {false, true}) check_loop(table, apart, report);
  check_constants(table, report);
  check_callers(table, report);
}

}  // namespace powerlab::engine::test
