#include "plan.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "plan_group.hpp"
#include "rounds.hpp"
#include "tests/test.hpp"

namespace powerlab::engine::test {
namespace {

constexpr int kChannels = 5, kSize = 6;
constexpr std::size_t kElements = 2 * kChannels * kSize * kSize;

Place arena(std::int64_t offset) { return {Place::Space::kArena, offset, 0}; }

// input -> blocks with a halo -> 3 x 3 sums through a depthwise convolution of ones -> output
struct Network {
  Placed rows, blocks, sums;
  Plan plan;

  // Of step i one thread computes all where bit i of `alone` is set.
  Network(const KernelTable& table, int threads, unsigned alone = 0)
      : rows(2, kChannels, kSize, kSize, 1, 0),
        blocks(2, kChannels, kSize, kSize, table.vector_width, 1),
        sums(2, kChannels, kSize, kSize, table.vector_width, 0),
        plan(table.tier, threads, static_cast<std::int64_t>(blocks.memory.size() + sums.memory.size()), 1000) {
    const Place first = arena(blocks.view.row + blocks.view.pixel);
    const Place second = arena(static_cast<std::int64_t>(blocks.memory.size()));
    const int width = table.vector_width;
    const std::vector<float> ones(static_cast<std::size_t>(9 * width * blocks.view.blocks), 1.0f);
    const std::vector<float> zeros(static_cast<std::size_t>(width * blocks.view.blocks), 0.0f);
    const int weights = plan.add_constant(ones), bias = plan.add_constant(zeros);
    Step step{};
    step.low = -std::numeric_limits<float>::infinity();
    step.high = std::numeric_limits<float>::infinity();
    step.x = rows.view;
    step.out = blocks.view;
    plan.add("reorder_to_blocks", "in", step, {Place::Space::kInput, 0, 0}, {}, first, {}, -1, -1, {}, {}, {},
             (alone & 1) != 0);
    step.x = blocks.view;
    step.out = sums.view;
    step.kernel_h = step.kernel_w = 3;
    step.stride_h = step.stride_w = step.dilation_h = step.dilation_w = step.pad_top = step.pad_left = 1;
    plan.add("conv_depthwise", "sum", step, first, {}, second, {}, weights, bias, {}, {}, {}, (alone & 2) != 0);
    step.x = sums.view;
    step.out = rows.view;
    plan.add("reorder_to_planes", "out", step, second, {}, {Place::Space::kOutput, 0, 0}, {}, -1, -1, {}, {}, {},
             (alone & 4) != 0);
  }
};

template <typename Call>
bool refuses(Call call) {
  try {
    call();
  } catch (const std::invalid_argument&) {
    return true;
  }
  return false;
}

// Steps repeated by themselves find what they read unchanged: the result stays as a whole run leaves it.
void check_repeated(const std::string& name, Plan& plan, std::span<const float* const> inputs,
                    std::span<float* const> outputs, Placed& out, const reference::Tensor& expected, Report& report) {
  plan.poison();
  plan.repeat(inputs, outputs, 0, 2, 1);
  plan.repeat(inputs, outputs, 1, 2, 7);
  std::fill_n(out.view.data, kElements, 0.0f);
  const std::int64_t took_ns = plan.repeat(inputs, outputs, 2, 3, 5);
  report.check(name + " repeated", error(out, expected), 1e-6);
  report.check(name + " repeated in no time", took_ns > 0 ? 0 : 1, 0);
  for (const auto& [first, last, times] : {std::array{-1, 1, 1}, {1, 1, 1}, {2, 4, 1}, {0, 1, 0}}) {
    const bool refused =
        refuses([&, from = first, to = last, n = times] { plan.repeat(inputs, outputs, from, to, n); });
    report.check(name + " repeats steps there are not", refused ? 0 : 1, 0);
  }
}

// A constant is kept with its owner, and let go with the plan; one that vectors cannot be loaded from is refused.
void check_kept_constants(const std::string& name, Plan& plan, Report& report) {
  auto floats = std::make_shared<Floats>(64);
  const std::shared_ptr<const float[]> values(floats, floats->data());
  const int first = plan.keep_constant(values), second = plan.add_constant(std::array{1.0f});
  report.check(name + " constant", second - first, 1);
  report.check(name + " constant, owners", static_cast<double>(floats.use_count()), 3);
  const std::shared_ptr<const float[]> crooked(floats, floats->data() + 1);
  report.check(name + " crooked constant", refuses([&] { plan.keep_constant(crooked); }) ? 0 : 1, 0);
}

// The vectors of pointers are the caller's; the plan itself asks for no memory, on any of its threads.
void check_runs_allocate_nothing(const std::string& name, Plan& plan, std::span<const float* const> inputs,
                                 std::span<float* const> outputs, Report& report) {
  plan.run(inputs, outputs);
  const std::int64_t before = allocations();
  for (int run = 0; run < 20; ++run) plan.run(inputs, outputs);
  const std::int64_t asked_for = allocations() - before;  // before a name is made, which asks for memory too
  report.check(name + " allocations", static_cast<double>(asked_for), 0);
}

// Plans that run beside each other compute what each does by itself, ask for no memory, and what one throws is thrown.
void check_group(const KernelTable& table, std::span<const float* const> inputs, const reference::Tensor& expected,
                 Report& report) {
  constexpr int kSlices = 3, kRuns = 20;
  const std::string name = std::string(table.tier) + " group";
  for (const int threads : {1, 2}) {
    std::vector<std::unique_ptr<Network>> networks;
    std::vector<Placed> outs;
    outs.reserve(kSlices);  // their views point into them
    for (int i = 0; i < kSlices; ++i) {
      networks.push_back(std::make_unique<Network>(table, threads));
      outs.emplace_back(2, kChannels, kSize, kSize, 1, 0);
    }
    std::vector<float*> outputs;
    for (const Placed& out : outs) outputs.push_back(out.view.data);
    std::vector<PlanGroup::Slice> slices;
    for (std::size_t i = 0; i < networks.size(); ++i) {
      slices.push_back({&networks[i]->plan, inputs, std::span(outputs).subspan(i, 1)});
    }
    PlanGroup group(kSlices, 1000);
    group.run(slices);
    const std::int64_t before = allocations();
    for (int run = 0; run < kRuns; ++run) group.run(slices);
    const std::int64_t asked_for = allocations() - before;
    report.check(name + " allocations", static_cast<double>(asked_for), 0);
    for (Placed& out : outs) report.check(name, error(out, expected), 1e-6);
    report.check(name + " timed", group.run_timed(slices).size() == 3 ? 0 : 1, 0);
    report.check(name + " repeated", group.repeat(slices, 0, 3, 2) > 0 ? 0 : 1, 0);
    slices[1].inputs = {};
    report.check(name + " fault", refuses([&] { group.run(slices); }) ? 0 : 1, 0);
    slices[1].inputs = inputs;
    for (const Placed& out : outs) std::fill_n(out.view.data, kElements, 0.0f);
    group.run(slices);
    for (Placed& out : outs) report.check(name + " after a fault", error(out, expected), 1e-6);
    slices.pop_back();
    report.check(name + " of other plans", refuses([&] { group.run(slices); }) ? 0 : 1, 0);
  }
}

}  // namespace

// Which steps one thread computes changes no result, and each step has a time.
void check_alone(const KernelTable& table, std::span<const float* const> inputs, std::span<float* const> outputs,
                 Placed& out, const reference::Tensor& expected, Report& report) {
  for (unsigned alone = 1; alone < 8; ++alone) {
    Network network(table, 2, alone);
    const std::string name = std::string(table.tier) + " plan, alone " + std::to_string(alone);
    for (int run = 0; run < 20; ++run) {
      network.plan.poison();
      std::fill_n(out.view.data, kElements, 0.0f);
      network.plan.run(inputs, outputs);
      report.check(name, error(out, expected), 1e-6);
    }
    const std::vector<std::int64_t> took_ns = network.plan.run_timed(inputs, outputs);
    report.check(name + " in no time", *std::min_element(took_ns.begin(), took_ns.end()) > 0 ? 0 : 1, 0);
    check_repeated(name, network.plan, inputs, outputs, out, expected, report);
  }
}

// Each round adds 1.5 to a state, and the number of the round to another, until a third, which is an input, is reached.
void check_loop_rounds(const KernelTable& table, Report& report) {
  const std::string name = std::string(table.tier) + " rounds";
  Plan plan(table.tier, 2, 64, 1000);
  const auto one = [](Element element, Place place) {
    Strided tensor{};
    tensor.element = element;
    tensor.rank = 1;
    tensor.size[0] = tensor.stride[0] = 1;
    return Plan::Operand{tensor, place};
  };
  const auto input = [](int index) { return Place{Place::Space::kInput, 0, index}; };
  const auto output = [](int index) { return Place{Place::Space::kOutput, 0, index}; };
  const std::array steps{1.5f};
  const auto number = one(Element::kInt, input(0)), sum = one(Element::kInt, input(1)),
             limit = one(Element::kInt, input(4));
  plan.add("add_strided_f32", "state", {}, {}, {}, {}, {}, -1, -1, {},
           {one(Element::kFloat, output(0)), one(Element::kFloat, input(2)), one(Element::kFloat, input(3))});
  plan.add("add_strided_i64", "sum", {}, {}, {}, {}, {}, -1, -1, {}, {one(Element::kInt, output(1)), sum, number});
  plan.add("less_strided_i64", "goes on", {}, {}, {}, {}, {}, -1, -1, {},
           {one(Element::kInt, output(2)), number, limit});
  for (const std::int64_t last : {0, 1, 6, 100}) {
    const std::int64_t unused = 0, begin = 10;
    const std::array state{2.0f};
    const auto floats = [](const std::int64_t& value) { return reinterpret_cast<const float*>(&value); };
    const std::vector<const float*> inputs{floats(unused), floats(begin), state.data(), steps.data(), floats(last)};
    std::array<float, 2> states{};
    std::array<std::int64_t, 2> sums{}, go{};
    std::vector<float> gathered(8, -1.0f);
    const std::array<float*, 3> outputs{states.data(), reinterpret_cast<float*>(sums.data()),
                                        reinterpret_cast<float*>(go.data())};
    const std::array<std::int64_t, 3> sizes{1, 2, 2};
    const Rounds rounds{.number = 0,
                        .goes_on = 2,
                        .states = {{2, 0}, {1, 1}},
                        .gathered = {{0, gathered.data()}},
                        .first = 0,
                        .most = 8};
    const std::int64_t done = run_rounds(plan, rounds, inputs, outputs, sizes),
                       expected = std::min<std::int64_t>(last + 1, 8);
    const auto half = static_cast<std::size_t>((done - 1) % 2);
    report.check(name, static_cast<double>(done - expected), 0);
    report.check(name + " state", states[half] - (2 + 1.5 * static_cast<double>(expected)), 1e-6);
    report.check(name + " sum", static_cast<double>(sums[half] - (10 + expected * (expected - 1) / 2)), 0);
    report.check(name + " gathered", gathered[static_cast<std::size_t>(expected - 1)] - states[half], 0);
    if (expected < 8) report.check(name + " not made", gathered[static_cast<std::size_t>(expected)] + 1, 0);
    Rounds endless = rounds;
    endless.goes_on = -1;
    report.check(name + " that nothing ends", run_rounds(plan, endless, inputs, outputs, sizes) == 8 ? 0 : 1, 0);
  }
}

void check_allocations(Report& report) {
  const std::int64_t before = allocations();
  if (before < 0) return;
  const std::vector<float> asked(1000);
  const Floats aligned(1000);
  const std::int64_t seen = allocations() - before;
  report.check("allocations seen", static_cast<double>(seen), 2);
}

void check_plan(const KernelTable& table, Report& report) {
  reference::Tensor x(2, kChannels, kSize, kSize), ones(kChannels, 1, 3, 3), expected(2, kChannels, kSize, kSize);
  Random random;
  random.fill(x.values);
  for (double& value : ones.values) value = 1;
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  reference::conv(x, ones, std::vector<double>(kChannels), nullptr, {3, 3, 1, 1, 1, 1, 1, 1}, kChannels,
                  {-kInfinity, kInfinity}, expected);
  Placed in(2, kChannels, kSize, kSize, 1, 0), out(2, kChannels, kSize, kSize, 1, 0);
  in.put(x);
  const std::array<const float*, 1> inputs{in.view.data};
  const std::array<float*, 1> outputs{out.view.data};
  const std::string name = std::string(table.tier) + " plan";
  for (const int threads : {1, 2, 3}) {
    Network network(table, threads);
    for (int run = 0; run < 20; ++run) {
      if (run % 5 == 0) network.plan.poison();
      std::fill_n(out.view.data, kElements, 0.0f);
      network.plan.run(inputs, outputs);
      report.check(name, error(out, expected), 1e-6);
    }
    report.check(name + " timed", network.plan.run_timed(inputs, outputs).size() == 3 ? 0 : 1, 0);
    check_repeated(name, network.plan, inputs, outputs, out, expected, report);
    report.check(name + " without inputs", refuses([&] { network.plan.run({}, outputs); }) ? 0 : 1, 0);
    Step outside{};
    outside.out = network.sums.view;
    const auto add = [&] { network.plan.add("copy", "", outside, {}, {}, arena(1 << 20), {}, -1, -1); };
    report.check(name + " outside its arena", refuses(add) ? 0 : 1, 0);
    check_kept_constants(name, network.plan, report);
    check_runs_allocate_nothing(name, network.plan, inputs, outputs, report);
  }
  check_group(table, inputs, expected, report);
  check_alone(table, inputs, outputs, out, expected, report);
  check_loop_rounds(table, report);
}

}  // namespace powerlab::engine::test
