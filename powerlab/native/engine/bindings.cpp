// Python's view of the engine core: `powerlab.native._native.engine`. Plans are for powerlab/engine/runtime/plan.py
// alone.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "arena.hpp"
#include "byte_weights.hpp"
#include "direct_weights.hpp"
#include "halves.hpp"
#include "memory.hpp"
#include "plan.hpp"
#include "plan_group.hpp"
#include "rounds.hpp"
#include "suppression.hpp"
#include "thread_pool.hpp"
#include "tiers/registry.hpp"
#include "winograd_weights.hpp"
#include "work_queue.hpp"

namespace nb = nanobind;

namespace powerlab {
namespace {

using engine::Place;
using engine::Plan;
using engine::PlanGroup;
using engine::Step;
using engine::ThreadPool;
using engine::View;
using engine::WorkQueue;
using InputArray = nb::ndarray<const float, nb::c_contig, nb::device::cpu>;
using OutputArray = nb::ndarray<float, nb::c_contig, nb::device::cpu>;

struct Buffers {
  std::vector<const float*> inputs;
  std::vector<float*> outputs;
};

Buffers pointers(const std::vector<InputArray>& inputs, const std::vector<OutputArray>& outputs) {
  Buffers buffers;
  for (const InputArray& array : inputs) buffers.inputs.push_back(array.data());
  for (const OutputArray& array : outputs) buffers.outputs.push_back(array.data());
  return buffers;
}

void run(Plan& plan, const std::vector<InputArray>& inputs, const std::vector<OutputArray>& outputs) {
  const Buffers buffers = pointers(inputs, outputs);
  const nb::gil_scoped_release release;
  plan.run(buffers.inputs, buffers.outputs);
}

std::vector<std::int64_t> run_timed(Plan& plan, const std::vector<InputArray>& inputs,
                                    const std::vector<OutputArray>& outputs) {
  const Buffers buffers = pointers(inputs, outputs);
  const nb::gil_scoped_release release;
  return plan.run_timed(buffers.inputs, buffers.outputs);
}

std::int64_t repeat(Plan& plan, const std::vector<InputArray>& inputs, const std::vector<OutputArray>& outputs,
                    std::int64_t first, std::int64_t last, std::int64_t times) {
  const Buffers buffers = pointers(inputs, outputs);
  const nb::gil_scoped_release release;
  return plan.repeat(buffers.inputs, buffers.outputs, first, last, times);
}

// What the slices of a group read and write, and the slices, which point into it.
struct Sliced {
  std::vector<Buffers> buffers;
  std::vector<PlanGroup::Slice> slices;
};

Sliced sliced(const std::vector<Plan*>& plans, const std::vector<std::vector<InputArray>>& inputs,
              const std::vector<std::vector<OutputArray>>& outputs) {
  if (inputs.size() != plans.size() || outputs.size() != plans.size()) {
    throw std::invalid_argument("every plan of a group has inputs and outputs; please report this as a bug.");
  }
  Sliced all;
  for (std::size_t i = 0; i < plans.size(); ++i) all.buffers.push_back(pointers(inputs[i], outputs[i]));
  for (std::size_t i = 0; i < plans.size(); ++i) {
    all.slices.push_back({plans[i], all.buffers[i].inputs, all.buffers[i].outputs});
  }
  return all;
}

// An array that lies as the plan wants it is kept, as long as the plan lives; any other is copied.
int add_constant(Plan& plan, const InputArray& values) {
  if (reinterpret_cast<std::uintptr_t>(values.data()) % engine::kAlignment != 0) {
    return plan.add_constant(std::span<const float>(values.data(), values.size()));
  }
  return plan.keep_constant(std::shared_ptr<const float[]>(values.data(), [values](const float*) {}));
}

nb::dict tier_dict(const engine::KernelTable& table) {
  nb::dict tier;
  tier["name"] = table.tier;
  tier["vector_width"] = table.vector_width;
  tier["tile_blocks"] = table.tile_blocks;
  tier["tile_pixels"] = table.tile_pixels;
  tier["tall_blocks"] = table.tall_blocks;
  tier["tall_pixels"] = table.tall_pixels;
  tier["long_pixels"] = table.long_pixels;
  const auto bytes = engine::byte_tables(table);
  tier["bytes"] = bytes.empty() ? "" : bytes.front()->name;
  tier["byte_form"] = bytes.empty() ? "" : bytes.front()->form;
  tier["byte_tile_blocks"] = bytes.empty() ? 0 : bytes.front()->tile_blocks;
  tier["byte_tile_pixels"] = bytes.empty() ? 0 : bytes.front()->tile_pixels;
  tier["narrow_tile_blocks"] = bytes.empty() ? 0 : bytes.front()->narrow_blocks;
  tier["narrow_tile_pixels"] = bytes.empty() ? 0 : bytes.front()->narrow_pixels;
  tier["depthwise_neighbours"] = bytes.empty() ? 0 : bytes.front()->depthwise_neighbours;
  const engine::PairTable* pairs = engine::pair_table(table, "bf16");
  tier["pairs"] = pairs ? pairs->name : "";
  tier["pair_tile_blocks"] = pairs ? pairs->tile_blocks : 0;
  tier["pair_tile_pixels"] = pairs ? pairs->tile_pixels : 0;
  tier["pair_block"] = pairs ? pairs->block : 0;
  const engine::PairTable* halves = engine::pair_table(table, "fp16");
  tier["halves"] = halves ? halves->name : "";
  tier["half_tile_blocks"] = halves ? halves->tile_blocks : 0;
  tier["half_tile_pixels"] = halves ? halves->tile_pixels : 0;
  tier["half_block"] = halves ? halves->block : 0;
  return tier;
}

void bind_view(nb::module_& module) {
  // All at once: a plan has hundreds of them, and Python takes longer to set one number than to make an object.
  nb::class_<View>(module, "View")
      .def(
          "__init__",
          [](View* view, std::int32_t n, std::int32_t c, std::int32_t h, std::int32_t w, std::int32_t blocks,
             std::int64_t pixel, std::int64_t row, std::int64_t plane, std::int64_t image, std::int32_t top,
             std::int32_t left, std::int32_t bottom, std::int32_t right) {
            new (view) View{nullptr, image, plane, row, pixel, n, c, h, w, blocks, top, left, bottom, right};
          },
          nb::arg("n"), nb::arg("c"), nb::arg("h"), nb::arg("w"), nb::arg("blocks"), nb::arg("pixel"), nb::arg("row"),
          nb::arg("plane"), nb::arg("image"), nb::arg("top"), nb::arg("left"), nb::arg("bottom"), nb::arg("right"));
}

void bind_step(nb::module_& module) {
  nb::class_<Step>(module, "Step")
      .def("__init__", [](Step* step) { new (step) Step{}; })
      .def_rw("x", &Step::x)
      .def_rw("y", &Step::y)
      .def_rw("out", &Step::out)
      .def_rw("scratch", &Step::scratch)
      .def_rw("kernel_h", &Step::kernel_h)
      .def_rw("kernel_w", &Step::kernel_w)
      .def_rw("stride_h", &Step::stride_h)
      .def_rw("stride_w", &Step::stride_w)
      .def_rw("dilation_h", &Step::dilation_h)
      .def_rw("dilation_w", &Step::dilation_w)
      .def_rw("pad_top", &Step::pad_top)
      .def_rw("pad_left", &Step::pad_left)
      .def_rw("slope", &Step::slope)
      .def_rw("adds_last", &Step::adds_last)
      .def_rw("low", &Step::low)
      .def_rw("high", &Step::high)
      .def_rw("x_slope", &Step::x_slope)
      .def_rw("x_low", &Step::x_low)
      .def_rw("x_high", &Step::x_high)
      .def_rw("groups", &Step::groups)
      .def_rw("joined_inputs", &Step::joined_inputs)
      .def_rw("joined_outputs", &Step::joined_outputs)
      .def_rw("lanes", &Step::lanes)
      .def_rw("last_lanes", &Step::last_lanes)
      .def_rw("chunk_blocks", &Step::chunk_blocks)
      .def_rw("chunk_tiles", &Step::chunk_tiles)
      .def_rw("channel_split", &Step::channel_split)
      .def_rw("unit_blocks", &Step::unit_blocks)
      .def_rw("count_padding", &Step::count_padding)
      .def_rw("size", &Step::size)
      .def_rw("alpha", &Step::alpha)
      .def_rw("beta", &Step::beta)
      .def_rw("offset", &Step::offset)
      .def_rw("rounds", &Step::rounds)
      .def_rw("backwards", &Step::backwards)
      .def_rw("halo", &Step::halo)
      .def_prop_rw(
          "function", [](const Step& step) { return engine::kFunctionNames[step.function]; },
          [](Step& step, const std::string& name) {
            const auto* found = std::find(std::begin(engine::kFunctionNames), std::end(engine::kFunctionNames), name);
            if (found == std::end(engine::kFunctionNames)) {
              throw std::invalid_argument("no convolution ends with the function \"" + name + "\".");
            }
            step.function = static_cast<engine::Function>(found - std::begin(engine::kFunctionNames));
          })
      .def_prop_rw(
          "numbers", [](const Step& step) { return std::vector<std::int64_t>(step.numbers, std::end(step.numbers)); },
          [](Step& step, const std::vector<std::int64_t>& numbers) {
            if (numbers.size() > std::size(step.numbers)) throw std::invalid_argument("a step has four numbers.");
            std::copy(numbers.begin(), numbers.end(), step.numbers);
          });
}

// One operand of a general kernel; sizes and strides have one number an axis.
Plan::Operand operand(engine::Element element, const std::vector<std::int64_t>& sizes,
                      const std::vector<std::int64_t>& strides, const Place& place) {
  Plan::Operand made{};
  if (sizes.size() != strides.size() || sizes.size() > engine::kMostAxes) {
    throw std::invalid_argument("an operand has up to eight axes, and one stride each.");
  }
  made.tensor.element = element;
  made.tensor.rank = static_cast<std::int32_t>(sizes.size());
  std::copy(sizes.begin(), sizes.end(), made.tensor.size);
  std::copy(strides.begin(), strides.end(), made.tensor.stride);
  made.place = place;
  return made;
}

void bind_plan(nb::module_& module) {
  nb::enum_<Place::Space>(module, "Space")
      .value("NONE", Place::Space::kNone)
      .value("ARENA", Place::Space::kArena)
      .value("INPUT", Place::Space::kInput)
      .value("OUTPUT", Place::Space::kOutput);
  nb::class_<Place>(module, "Place")
      .def(
          "__init__",
          [](Place* place, Place::Space space, std::int64_t offset, std::int32_t index, std::int64_t shift,
             std::int64_t share) { new (place) Place{space, offset, index, shift, share}; },
          nb::arg("space") = Place::Space::kNone, nb::arg("offset") = 0, nb::arg("index") = 0, nb::arg("shift") = 0,
          nb::arg("share") = 0);
  nb::class_<Plan::Part>(module, "Part")
      .def(
          "__init__",
          [](Plan::Part* part, const Step& step, int weights, int bias) { new (part) Plan::Part{step, weights, bias}; },
          nb::arg("step"), nb::arg("weights"), nb::arg("bias"));
  nb::class_<engine::PackedWeights>(module, "PackedWeights")
      .def(
          "__init__",
          [](engine::PackedWeights* packed, std::int64_t weights, std::int64_t weight_floats, std::int64_t bias,
             std::int64_t bias_floats) {
            new (packed) engine::PackedWeights{weights, weight_floats, bias, bias_floats};
          },
          nb::arg("weights") = -1, nb::arg("weight_floats") = 0, nb::arg("bias") = -1, nb::arg("bias_floats") = 0);
  nb::enum_<engine::Element>(module, "Element")
      .value("FLOAT", engine::Element::kFloat)
      .value("INT", engine::Element::kInt);
  nb::class_<Plan::Operand>(module, "Operand");
  module.def("operand", &operand, nb::arg("element"), nb::arg("sizes"), nb::arg("strides"), nb::arg("place"));
  nb::class_<ThreadPool>(module, "ThreadPool")
      .def(nb::init<int, std::int64_t>(), nb::arg("threads"), nb::arg("spin_ns"))
      .def_prop_ro("threads", &ThreadPool::threads);
  nb::class_<Plan>(module, "Plan")
      .def(nb::init<const std::string&, std::shared_ptr<ThreadPool>, std::int64_t, const Plan*>(), nb::arg("tier"),
           nb::arg("pool"), nb::arg("arena_floats"), nb::arg("lender").none() = nb::none())
      .def("room_floats", &Plan::room_floats)
      .def("add_constant", &add_constant, nb::arg("values"))
      .def("loop", &Plan::loop, nb::arg("steps"), nb::arg("images"), nb::arg("apart"))
      .def("add", &Plan::add, nb::arg("family"), nb::arg("label"), nb::arg("step"), nb::arg("x"), nb::arg("y"),
           nb::arg("out"), nb::arg("scratch"), nb::arg("weights"), nb::arg("bias"), nb::arg("parts"),
           nb::arg("operands"), nb::arg("packed"), nb::arg("alone"))
      .def("run", &run, nb::arg("inputs"), nb::arg("outputs"))
      .def("run_timed", &run_timed, nb::arg("inputs"), nb::arg("outputs"))
      .def("repeat", &repeat, nb::arg("inputs"), nb::arg("outputs"), nb::arg("first"), nb::arg("last"),
           nb::arg("times"))
      .def("poison", &Plan::poison)
      .def("steps", [](const Plan& plan) {
        nb::list steps;
        for (const auto& step : plan.steps()) steps.append(nb::make_tuple(step.kernel, step.label));
        return steps;
      });
}

void bind_plan_group(nb::module_& module) {
  using Plans = std::vector<Plan*>;
  using Inputs = std::vector<std::vector<InputArray>>;
  using Outputs = std::vector<std::vector<OutputArray>>;
  nb::class_<PlanGroup>(module, "PlanGroup")
      .def(nb::init<int, std::int64_t>(), nb::arg("slices"), nb::arg("spin_ns"))
      .def(
          "run",
          [](PlanGroup& group, const Plans& plans, const Inputs& inputs, const Outputs& outputs) {
            const Sliced all = sliced(plans, inputs, outputs);
            const nb::gil_scoped_release release;
            group.run(all.slices);
          },
          nb::arg("plans"), nb::arg("inputs"), nb::arg("outputs"))
      .def(
          "run_timed",
          [](PlanGroup& group, const Plans& plans, const Inputs& inputs, const Outputs& outputs) {
            const Sliced all = sliced(plans, inputs, outputs);
            const nb::gil_scoped_release release;
            return group.run_timed(all.slices);
          },
          nb::arg("plans"), nb::arg("inputs"), nb::arg("outputs"))
      .def(
          "repeat",
          [](PlanGroup& group, const Plans& plans, const Inputs& inputs, const Outputs& outputs, std::int64_t first,
             std::int64_t last, std::int64_t times) {
            const Sliced all = sliced(plans, inputs, outputs);
            const nb::gil_scoped_release release;
            return group.repeat(all.slices, first, last, times);
          },
          nb::arg("plans"), nb::arg("inputs"), nb::arg("outputs"), nb::arg("first"), nb::arg("last"), nb::arg("times"));
}

void bind_rounds(nb::module_& module) {
  using Pairs = std::vector<std::pair<int, int>>;
  using Gathered = std::vector<std::pair<int, OutputArray>>;
  module.def(
      "run_rounds",
      [](Plan& plan, const std::vector<InputArray>& inputs, const std::vector<OutputArray>& outputs, int number,
         int goes_on, const Pairs& states, const Gathered& gathered, std::int64_t first, std::int64_t most) {
        const Buffers buffers = pointers(inputs, outputs);
        std::vector<std::int64_t> floats;
        for (const OutputArray& array : outputs) floats.push_back(static_cast<std::int64_t>(array.size() / 2));
        engine::Rounds rounds{number, goes_on, states, {}, first, most};
        for (const auto& [output, rows] : gathered) rounds.gathered.push_back({output, rows.data()});
        const nb::gil_scoped_release release;
        return engine::run_rounds(plan, rounds, buffers.inputs, buffers.outputs, floats);
      },
      nb::arg("plan"), nb::arg("inputs"), nb::arg("outputs"), nb::arg("number"), nb::arg("goes_on"), nb::arg("states"),
      nb::arg("gathered"), nb::arg("first"), nb::arg("most"));
}

// Floats in memory of the engine: see memory.hpp.
nb::ndarray<nb::numpy, float, nb::ndim<1>> empty_floats(std::int64_t count) {
  auto floats = std::make_unique<std::shared_ptr<float[]>>(engine::allocate_floats(count));
  float* data = floats->get();
  const nb::capsule owner(floats.get(),
                          [](void* kept) noexcept { delete static_cast<std::shared_ptr<float[]>*>(kept); });
  floats.release();
  return {data, {static_cast<std::size_t>(count)}, owner};
}

void bind_arena(nb::module_& module) {
  using Lives = std::vector<std::tuple<std::int64_t, std::int64_t, std::int64_t>>;
  module.def(
      "place",
      [](const Lives& lives) {
        std::vector<engine::Lifetime> lifetimes;
        lifetimes.reserve(lives.size());
        for (const auto& [size, first, last] : lives) lifetimes.push_back({size, first, last});
        return engine::place(lifetimes);
      },
      nb::arg("lifetimes"));
}

// How weights lie that are seen as (outputs, inputs of a group, taps).
template <typename Weights>
engine::WeightLayout layout_of(const Weights& weights) {
  const auto size = [&](std::size_t axis) { return static_cast<std::int64_t>(weights.shape(axis)); };
  return {size(0), size(1), size(2), weights.stride(0), weights.stride(1), weights.stride(2)};
}

// Does the work now, without the interpreter lock, or lets a queue do it. What the work holds outlives it.
void do_or_queue(WorkQueue* queue, std::function<void()> work) {
  const nb::gil_scoped_release release;
  if (queue) {
    queue->add(std::move(work));
  } else {
    work();
  }
}

void bind_packing(nb::module_& module) {
  nb::class_<WorkQueue>(module, "WorkQueue")
      .def(nb::init<int>(), nb::arg("threads"))
      .def_prop_ro("added", &WorkQueue::added)
      .def("is_done", &WorkQueue::is_done, nb::arg("number"))
      .def("finish", &WorkQueue::finish, nb::call_guard<nb::gil_scoped_release>());
  module.def("empty_floats", &empty_floats, nb::arg("count"));
  using Transform = nb::ndarray<const double, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
  using Kernels = nb::ndarray<const float, nb::ndim<4>, nb::c_contig, nb::device::cpu>;
  module.def(
      "pack_winograd",
      [](const Kernels& weights, const Transform& g, const OutputArray& packed, std::int64_t groups, std::int64_t width,
         std::int64_t tile_blocks, WorkQueue* queue) {
        const auto size = [](std::size_t count) { return static_cast<std::int64_t>(count); };
        const engine::WinogradWeights sizes{.outputs = size(weights.shape(0)),
                                            .inputs = size(weights.shape(1)),
                                            .taps = size(weights.shape(3)),
                                            .groups = groups,
                                            .positions = size(g.shape(0)),
                                            .width = width,
                                            .tile_blocks = tile_blocks};
        do_or_queue(queue, [=] {
          engine::pack_winograd(sizes, {weights.data(), weights.size()}, {g.data(), g.size()},
                                {packed.data(), packed.size()});
        });
      },
      nb::arg("weights"), nb::arg("g"), nb::arg("packed"), nb::arg("groups"), nb::arg("width"), nb::arg("tile_blocks"),
      nb::arg("queue").none() = nb::none());
  using Strided = nb::ndarray<const float, nb::ndim<3>, nb::device::cpu>;
  module.def(
      "pack_direct",
      [](const Strided& weights, const OutputArray& packed, std::int64_t groups, std::int64_t width,
         std::int64_t tile_blocks, std::int64_t lanes, WorkQueue* queue) {
        const engine::DirectWeights sizes{layout_of(weights), groups, width, tile_blocks, lanes};
        do_or_queue(queue, [=] { engine::pack_direct(sizes, weights.data(), {packed.data(), packed.size()}); });
      },
      nb::arg("weights"), nb::arg("packed"), nb::arg("groups"), nb::arg("width"), nb::arg("tile_blocks"),
      nb::arg("lanes"), nb::arg("queue").none() = nb::none());
}

void bind_byte_packing(nb::module_& module) {
  using Bytes = nb::ndarray<const std::int8_t, nb::ndim<3>, nb::device::cpu>;
  using Rows = nb::ndarray<const std::int8_t, nb::ndim<2>, nb::device::cpu>;
  using Sums = nb::ndarray<std::int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
  using Shape = std::tuple<std::int64_t, std::int64_t, std::int64_t>;
  module.def(
      "pack_bytes",
      [](const Bytes& weights, std::int64_t groups, std::int64_t width, std::int64_t tile_vectors, std::int64_t words,
         const std::string& form) {
        const engine::ByteWeights sizes{layout_of(weights), groups, width, tile_vectors, words};
        const std::int64_t bytes = engine::packed_bytes(sizes, form), float_bytes = sizeof(float);
        auto packed = empty_floats((bytes + float_bytes - 1) / float_bytes);
        {
          const nb::gil_scoped_release release;
          auto* const first = reinterpret_cast<std::uint8_t*>(packed.data());
          engine::pack_bytes(sizes, form, weights.data(), {first, static_cast<std::size_t>(bytes)});
          std::fill(first + bytes, first + packed.size() * sizeof(float), std::uint8_t{0});
        }
        return packed;
      },
      nb::arg("weights"), nb::arg("groups"), nb::arg("width"), nb::arg("tile_vectors"), nb::arg("words"),
      nb::arg("form"));
  module.def(
      "packed_byte_floats",
      [](const Shape& shape, std::int64_t groups, std::int64_t width, std::int64_t tile_vectors, std::int64_t words,
         const std::string& form) {
        const auto [outputs, inputs, taps] = shape;
        const engine::ByteWeights sizes{{outputs, inputs, taps, 0, 0, 0}, groups, width, tile_vectors, words};
        return (engine::packed_bytes(sizes, form) + 3) / 4;
      },
      nb::arg("shape"), nb::arg("groups"), nb::arg("width"), nb::arg("tile_vectors"), nb::arg("words"),
      nb::arg("form"));
  module.def(
      "sums_stay_below",
      [](const Bytes& weights, std::int64_t words, int most) {
        const nb::gil_scoped_release release;
        return engine::sums_stay_below(layout_of(weights), weights.data(), words, most);
      },
      nb::arg("weights"), nb::arg("words"), nb::arg("most"));
  module.def(
      "sum_rows",
      [](const Rows& rows, const Sums& sums, const Sums& absolute) {
        const nb::gil_scoped_release release;
        const auto size = [&](std::size_t axis) { return static_cast<std::int64_t>(rows.shape(axis)); };
        engine::sum_rows({rows.data(), size(0), size(1), rows.stride(0), rows.stride(1)}, {sums.data(), sums.size()},
                         {absolute.data(), absolute.size()});
      },
      nb::arg("rows"), nb::arg("sums"), nb::arg("absolute"));
}

void bind_suppression(nb::module_& module) {
  using Boxes = nb::ndarray<const float, nb::ndim<3>, nb::c_contig, nb::device::cpu>;
  module.def(
      "suppress",
      [](const Boxes& corners, const Boxes& scores, std::int64_t most, float overlap, float least) {
        const auto size = [&](std::size_t axis) { return static_cast<std::int64_t>(scores.shape(axis)); };
        if (corners.shape(0) != scores.shape(0) || corners.shape(1) != scores.shape(2) || corners.shape(2) != 4) {
          throw std::invalid_argument("boxes and scores do not fit; please report this as a bug.");
        }
        std::vector<std::int64_t> found;
        {
          const nb::gil_scoped_release release;
          found = engine::suppress({most, overlap, least}, size(0), size(1), size(2), {corners.data(), corners.size()},
                                   {scores.data(), scores.size()});
        }
        return found;
      },
      nb::arg("corners"), nb::arg("scores"), nb::arg("most"), nb::arg("overlap"), nb::arg("least"));
}

void bind_halves(nb::module_& module) {
  using Halves = nb::ndarray<std::uint16_t, nb::c_contig, nb::device::cpu>;
  using ConstHalves = nb::ndarray<const std::uint16_t, nb::c_contig, nb::device::cpu>;
  module.def(
      "to_floats",
      [](const ConstHalves& halves, const OutputArray& floats) {
        const nb::gil_scoped_release release;
        engine::to_floats({halves.data(), halves.size()}, {floats.data(), floats.size()});
      },
      nb::arg("halves"), nb::arg("floats"));
  module.def(
      "to_halves",
      [](const InputArray& floats, const Halves& halves) {
        const nb::gil_scoped_release release;
        engine::to_halves({floats.data(), floats.size()}, {halves.data(), halves.size()});
      },
      nb::arg("floats"), nb::arg("halves"));
}

}  // namespace

void bind_engine(nb::module_& module) {
  bind_view(module);
  bind_step(module);
  bind_plan(module);
  bind_plan_group(module);
  bind_rounds(module);
  bind_arena(module);
  bind_packing(module);
  bind_byte_packing(module);
  bind_suppression(module);
  bind_halves(module);
  module.def("tiers", [] {
    nb::list tiers;
    for (const engine::KernelTable* table : engine::available_tiers()) tiers.append(tier_dict(*table));
    return tiers;
  });
  module.def("find_tier", [](const std::string& name) { return tier_dict(engine::find_tier(name)); }, nb::arg("name"));
}

}  // namespace powerlab
