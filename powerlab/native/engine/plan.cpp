#include "plan.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <utility>

#include "tiers/registry.hpp"

namespace powerlab::engine {
namespace {

// Writes what lies around each plane of `v`: zeros, or a word of zero points. Arena memory is shared over time, so
// every run does it anew.
void fill_halo(const View& v, std::int32_t word, int thread, int threads) {
  if (v.top + v.left + v.bottom + v.right == 0) return;
  const std::int64_t planes = static_cast<std::int64_t>(v.n) * v.blocks;
  const auto fill = [word](float* from, float* to) {
    if (word == 0) {
      std::fill(from, to, 0.0f);
    } else {
      for (; from < to; ++from) std::memcpy(from, &word, sizeof word);
    }
  };
  const std::int64_t left = v.left * v.pixel, right = v.right * v.pixel, inner = v.w * v.pixel;
  for (std::int64_t i = planes * thread / threads; i < planes * (thread + 1) / threads; ++i) {
    float* plane = v.data + i / v.blocks * v.image + i % v.blocks * v.plane;
    for (std::int64_t y = -v.top; y < v.h + v.bottom; ++y) {
      float* row = plane + y * v.row;
      if (y < 0 || y >= v.h) {
        fill(row - left, row + inner + right);
      } else {
        fill(row - left, row);
        fill(row + inner, row + inner + right);
      }
    }
  }
}

constexpr std::size_t kLooksAhead = 4;  // steps, for one whose weights to fetch

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

}  // namespace

Plan::Plan(const std::string& tier, int threads, std::int64_t arena_floats, std::int64_t spin_ns)
    : Plan(tier, std::make_shared<ThreadPool>(threads, spin_ns), arena_floats) {}

Plan::Plan(const std::string& tier, std::shared_ptr<ThreadPool> pool, std::int64_t arena_floats, const Plan* lender)
    : table_(find_tier(tier)),
      arena_floats_(arena_floats),
      room_floats_(lender ? std::max(lender->room_floats_, arena_floats) : arena_floats),
      arena_(lender && lender->room_floats_ == room_floats_ ? lender->arena_ : allocate_arena(arena_floats)),
      pool_(std::move(pool)) {}

int Plan::add_constant(std::span<const float> values) {
  std::shared_ptr<float[]> copy = allocate_floats(static_cast<std::int64_t>(values.size()));
  std::copy(values.begin(), values.end(), copy.get());
  std::fill_n(copy.get() + values.size(), kTailFloats, 0.0f);
  return keep_constant(std::move(copy));
}

int Plan::keep_constant(std::shared_ptr<const float[]> values) {
  if (reinterpret_cast<std::uintptr_t>(values.get()) % kAlignment != 0) {
    throw std::invalid_argument("a plan keeps aligned constants only; please report this as a bug.");
  }
  constants_.push_back(std::move(values));
  return static_cast<int>(constants_.size()) - 1;
}

const float* Plan::constant(int number) const {
  return number < 0 ? nullptr : constants_.at(static_cast<std::size_t>(number)).get();
}

const float* Plan::packed_at(std::int64_t offset, std::int64_t floats) const {
  if (offset < 0 || floats < 0 || offset > arena_floats_ - floats || offset % (kAlignment / 4) != 0) {
    throw std::invalid_argument("packed weights of the plan lie outside the arena; please report this as a bug.");
  }
  return arena_.get() + offset;
}

void Plan::check(const View& v, const Place& place, bool written) const {
  if (place.space != Place::Space::kArena) return;
  // Where a product may not fit into 64 bits, a size or a stride is larger than the arena: no sum overflows below.
  const auto bounded = [this](std::int64_t sizes, std::int64_t stride) {
    return sizes >= 0 && stride >= 0 && (stride == 0 || sizes <= arena_floats_ / stride);
  };
  const std::int64_t last_image = std::int64_t{v.n} - 1, last_block = std::int64_t{v.blocks} - 1;
  const std::int64_t last_row = std::int64_t{v.h} - 1 + v.bottom, last_column = std::int64_t{v.w} - 1 + v.right;
  const std::int64_t moves = steps_.size() < looped_ ? images_ - 1 : 0;
  if (place.offset < 0 || place.offset > arena_floats_ || v.bottom < 0 || v.right < 0 || v.c < 0 || v.h < 1 ||
      v.w < 1 || v.pixel > arena_floats_ || v.plane > arena_floats_ || !bounded(last_image, v.image) ||
      !bounded(last_block, v.plane) || !bounded(last_row, v.row) || !bounded(last_column, v.pixel) ||
      !bounded(v.top, v.row) || !bounded(v.left, v.pixel) || !bounded(moves, place.shift) ||
      !bounded(pool_->threads(), place.share)) {
    throw std::invalid_argument("a step of the plan reaches outside the arena; please report this as a bug.");
  }
  // Where pixels lie apart, as those of one phase of a transposed convolution, they are a block of channels each.
  const std::int64_t block = std::max<std::int64_t>(table_.vector_width, (v.c - 1) / v.blocks + 1);
  std::int64_t channels = last_block * v.plane + std::min({v.pixel, v.plane, block});
  // A fully connected layer's x: channels follow on each other, and no more than there are is read.
  if (v.plane < v.pixel && !written) channels = std::min<std::int64_t>(channels, v.c);
  const std::int64_t begin = place.offset - v.top * v.row - v.left * v.pixel;
  const std::int64_t shares = apart_ ? pool_->threads() - 1 : 0;
  const std::int64_t end = place.offset + moves * place.shift + shares * place.share + last_image * v.image +
                           last_row * v.row + last_column * v.pixel + channels;
  if (begin < 0 || end > arena_floats_) {
    throw std::invalid_argument("a step of the plan reaches outside the arena; please report this as a bug.");
  }
}

void Plan::check(const Strided& tensor, const Place& place) const {
  const auto refuse = [] {
    throw std::invalid_argument("a general step of the plan has an impossible operand; please report this as a bug.");
  };
  const std::int64_t floats = tensor.element == Element::kInt ? 2 : 1;  // of an element
  if (tensor.rank < 1 || tensor.rank > kMostAxes || place.offset % floats != 0) refuse();
  constexpr std::int64_t kMost = std::int64_t{1} << 56;  // floats no memory has; sums of so many do not overflow
  if (place.offset < 0 || place.offset > kMost) refuse();
  std::int64_t first = 0, last = 0;
  for (std::int32_t axis = 0; axis < tensor.rank; ++axis) {
    const std::int64_t stride = tensor.stride[axis];
    if (tensor.size[axis] < 1 || tensor.size[axis] > kMost || stride > kMost || stride < -kMost) refuse();
    if (stride != 0 && tensor.size[axis] - 1 > kMost / (stride < 0 ? -stride : stride)) refuse();
    const std::int64_t reach = (tensor.size[axis] - 1) * stride;
    (reach < 0 ? first : last) += reach;
  }
  // How long inputs and outputs are is the caller's matter; none begins before its start.
  const bool arena = place.space == Place::Space::kArena;
  if (place.offset + first * floats < 0 || (arena && place.offset + (last + 1) * floats > arena_floats_)) {
    throw std::invalid_argument("a step of the plan reaches outside the arena; please report this as a bug.");
  }
}

void Plan::loop(std::int64_t steps, std::int64_t images, bool apart) {
  if (!steps_.empty() || steps < 0 || images < 1) {
    throw std::invalid_argument("a plan's loop comes before its steps; please report this as a bug.");
  }
  looped_ = static_cast<std::size_t>(steps);
  images_ = images;
  apart_ = apart;
}

void Plan::add(const std::string& family, const std::string& label, Step step, Place x, Place y, Place out,
               Place scratch, int weights, int bias, const std::vector<Part>& parts,
               const std::vector<Operand>& operands, const PackedWeights& packed, bool alone) {
  const Kernel& kernel = find_kernel(table_, family);
  check(step.x, x, false);
  check(step.y, y, false);
  check(step.out, out, true);
  check(step.scratch, scratch, true);
  const auto data = [this](const Place& place) {
    return place.space == Place::Space::kArena ? arena_.get() + place.offset : nullptr;
  };
  step.x.data = data(x);
  step.y.data = data(y);
  step.out.data = data(out);
  step.scratch.data = data(scratch);
  step.weights = packed.weights < 0 ? constant(weights) : packed_at(packed.weights, packed.weight_floats);
  step.bias = packed.bias < 0 ? constant(bias) : packed_at(packed.bias, packed.bias_floats);
  auto kept = std::make_unique<Step[]>(parts.size());
  for (std::size_t i = 0; i < parts.size(); ++i) {
    kept[i] = parts[i].step;
    kept[i].weights = constant(parts[i].weights);
    kept[i].bias = constant(parts[i].bias);
  }
  step.parts = kept.get();
  step.part_count = static_cast<std::int32_t>(parts.size());
  auto tensors = std::make_unique<Strided[]>(operands.size());
  std::vector<Place> places;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    check(operands[i].tensor, operands[i].place);
    tensors[i] = operands[i].tensor;
    tensors[i].data = data(operands[i].place);
    places.push_back(operands[i].place);
  }
  step.operands = tensors.get();
  step.operand_count = static_cast<std::int32_t>(operands.size());
  phases_.clear();
  steps_.push_back(
      {step, &kernel, x, y, out, scratch, label, std::move(kept), std::move(tensors), std::move(places), alone});
}

void Plan::bind(std::span<const float* const> inputs, std::span<float* const> outputs) {
  const auto set = [&](auto& operand, const Place& place) {
    const auto index = static_cast<std::size_t>(place.index);
    if (place.space == Place::Space::kInput) {
      if (index >= inputs.size()) throw std::invalid_argument("the plan was given too few inputs.");
      operand.data = const_cast<float*>(inputs[index]) + place.offset;  // kernels never write to what they read
    } else if (place.space == Place::Space::kOutput) {
      if (index >= outputs.size()) throw std::invalid_argument("the plan was given too few outputs.");
      operand.data = outputs[index] + place.offset;
    }
  };
  for (PlannedStep& planned : steps_) {
    planned.fault = kSound;
    for (std::size_t i = 0; i < planned.places.size(); ++i) set(planned.operands[i], planned.places[i]);
    set(planned.step.x, planned.x);
    set(planned.step.y, planned.y);
    set(planned.step.out, planned.out);
  }
}

std::vector<Plan::Phase> Plan::phases_of(std::size_t first, std::size_t last) const {
  std::vector<Phase> phases;
  const auto add = [&](std::size_t step, std::int64_t image) {
    if (steps_[step].alone && pool_->threads() > 1) {
      if (phases.empty() || !phases.back().alone || phases.back().image != image) {
        phases.push_back({static_cast<std::int32_t>(step), 0, image, 0, true});
      }
      phases.back().last = static_cast<std::int32_t>(step) + 1;
      return;
    }
    for (std::int32_t round = 0; round < std::max(steps_[step].step.rounds, 1); ++round) {
      phases.push_back({static_cast<std::int32_t>(step), round, image});
    }
  };
  const std::size_t looped = std::min(last, looped_);
  if (apart_ && first < looped) {
    phases.push_back({static_cast<std::int32_t>(first), 0, 0, static_cast<std::int32_t>(looped)});
    first = looped;
  }
  for (std::int64_t image = 0; image < images_ && first < looped; ++image) {
    for (std::size_t i = first; i < looped; ++i) add(i, image);
  }
  for (std::size_t i = std::max(first, looped); i < last; ++i) add(i, 0);
  return phases;
}

void Plan::run_phases(const std::vector<Phase>& phases, std::int64_t times, bool timed) {
  struct Run {
    Plan* plan;
    const std::vector<Phase>& phases;
    const Phase& at(std::int64_t number) const { return phases[static_cast<std::size_t>(number) % phases.size()]; }
  } run{this, phases};
  const auto share = [](void* context, std::int64_t phase, int number) {
    const Run& all = *static_cast<Run*>(context);
    all.plan->run_share(all.at(phase), phase / static_cast<std::int64_t>(all.phases.size()), number);
  };
  const auto finished = [](void* context, std::int64_t phase) {
    const Run& all = *static_cast<Run*>(context);
    all.plan->finish(all.at(phase));
  };
  before_ns_ = now_ns();
  claimed_ = 0;
  if (!timed) durations_ns_.clear();
  if (phases.empty()) return;
  pool_->run(share, &run, static_cast<std::int64_t>(phases.size()) * times,
             timed ? static_cast<ThreadPool::Finished>(finished) : nullptr);
}

void Plan::run_share(const Phase& phase, std::int64_t turn, int share) {
  if (phase.alone) {
    if (share == 0) run_alone(phase);
  } else if (phase.last > 0) {
    run_images(phase, turn, share);
  } else {
    run_round(static_cast<std::size_t>(phase.step), phase.round, phase.image, share);
  }
}

void Plan::run_round(std::size_t number, std::int32_t round, std::int64_t image, int share) {
  PlannedStep& planned = steps_[number];
  const bool alone = planned.alone || (apart_ && number < looped_);
  Step step = planned.step;
  step.fault = &planned.fault;
  step.x.data += image * planned.x.shift + share * planned.x.share;
  step.y.data += image * planned.y.shift + share * planned.y.share;
  step.out.data += image * planned.out.shift + share * planned.out.share;
  step.scratch.data += share * planned.scratch.share;
  step.round = round;
  step.next = next_of(number);
  const int own = alone ? 0 : share, shares = alone ? 1 : pool_->threads();
  if (round == 0) fill_halo(step.out, step.halo, own, shares);
  planned.kernel->run(step, own, shares);
}

void Plan::run_images(const Phase& phase, std::int64_t turn, int share) {
  const auto first = static_cast<std::size_t>(phase.step), last = static_cast<std::size_t>(phase.last);
  std::int64_t image = claimed_.load(std::memory_order_relaxed);
  for (;;) {
    if (image >= (turn + 1) * images_) return;
    if (!claimed_.compare_exchange_weak(image, image + 1, std::memory_order_relaxed)) continue;
    std::int64_t before = durations_ns_.empty() ? 0 : now_ns();
    for (std::size_t i = first; i < last; ++i) {
      for (std::int32_t round = 0; round < std::max(steps_[i].step.rounds, 1); ++round) {
        run_round(i, round, image - turn * images_, share);
      }
      if (durations_ns_.empty()) continue;
      const std::int64_t now = now_ns();
      apart_ns_[static_cast<std::size_t>(share) * steps_.size() + i] += now - std::exchange(before, now);
    }
    image = claimed_.load(std::memory_order_relaxed);
  }
}

void Plan::run_alone(const Phase& phase) {
  std::int64_t before = durations_ns_.empty() ? 0 : now_ns();
  for (std::int32_t i = phase.step; i < phase.last; ++i) {
    const auto step = static_cast<std::size_t>(i);
    for (std::int32_t round = 0; round < std::max(steps_[step].step.rounds, 1); ++round) {
      run_round(step, round, phase.image, 0);
    }
    if (durations_ns_.empty()) continue;
    const std::int64_t now = now_ns();
    durations_ns_[step] += now - std::exchange(before, now);
  }
}

const Step* Plan::next_of(std::size_t step) const {
  const std::size_t end = std::min(steps_.size(), step + 1 + kLooksAhead);
  for (std::size_t i = step + 1; i < end; ++i) {
    if (steps_[i].kernel == steps_[step].kernel) return &steps_[i].step;
  }
  return nullptr;
}

void Plan::finish(const Phase& phase) {
  const std::int64_t now = now_ns(), took = now - std::exchange(before_ns_, now);
  if (phase.alone) return;
  if (phase.last == 0) {
    durations_ns_[static_cast<std::size_t>(phase.step)] += took;
    return;
  }
  // Steps of different images ran beside each other: each gets its part of the time that all of them took.
  const auto steps = static_cast<std::int64_t>(steps_.size());
  std::vector<std::int64_t> used_ns(steps_.size());
  for (std::size_t i = 0; i < apart_ns_.size(); ++i) used_ns[i % steps_.size()] += apart_ns_[i];
  const auto all_ns = static_cast<double>(std::accumulate(used_ns.begin(), used_ns.end(), std::int64_t{1}));
  for (std::int64_t i = phase.step; i < std::min<std::int64_t>(phase.last, steps); ++i) {
    const auto step = static_cast<std::size_t>(i);
    durations_ns_[step] += static_cast<std::int64_t>(static_cast<double>(took) * used_ns[step] / all_ns);
  }
}

void Plan::check_faults() const {
  for (const PlannedStep& planned : steps_) {
    if (planned.fault == kSound) continue;
    const char* what = planned.fault == kIndexOutside     ? " was given an index outside its data"
                       : planned.fault == kDivisionByZero ? " divides an integer by 0"
                                                          : " makes an integer below 0 or of more than 63 bits";
    throw std::runtime_error("the node '" + planned.label + "'" + what + "; run the model with other inputs.");
  }
}

void Plan::run(std::span<const float* const> inputs, std::span<float* const> outputs) {
  const std::lock_guard lock(pool_->turn());
  bind(inputs, outputs);
  if (phases_.empty()) phases_ = phases_of(0, steps_.size());
  run_phases(phases_, 1, false);
  check_faults();
}

std::vector<std::int64_t> Plan::run_timed(std::span<const float* const> inputs, std::span<float* const> outputs) {
  const std::lock_guard lock(pool_->turn());
  bind(inputs, outputs);
  durations_ns_.assign(steps_.size(), 0);
  apart_ns_.assign(apart_ ? steps_.size() * static_cast<std::size_t>(pool_->threads()) : 0, 0);
  run_phases(phases_of(0, steps_.size()), 1, true);
  check_faults();
  return durations_ns_;
}

std::int64_t Plan::repeat(std::span<const float* const> inputs, std::span<float* const> outputs, std::int64_t first,
                          std::int64_t last, std::int64_t times) {
  if (first < 0 || first >= last || last > static_cast<std::int64_t>(steps_.size()) || times < 1) {
    throw std::invalid_argument("the plan has no such steps to repeat, or they were to be repeated less than once.");
  }
  const std::lock_guard lock(pool_->turn());
  bind(inputs, outputs);
  const std::vector<Phase> phases = phases_of(static_cast<std::size_t>(first), static_cast<std::size_t>(last));
  const std::int64_t before = now_ns();
  run_phases(phases, times, false);
  const std::int64_t took = now_ns() - before;
  check_faults();
  return took;
}

void Plan::poison() {
  const std::lock_guard lock(pool_->turn());
  std::fill_n(arena_.get(), arena_floats_, std::numeric_limits<float>::quiet_NaN());
}

std::vector<StepDescription> Plan::steps() const {
  std::vector<StepDescription> descriptions;
  for (const PlannedStep& planned : steps_) descriptions.push_back({planned.kernel->name, planned.label});
  return descriptions;
}

}  // namespace powerlab::engine
