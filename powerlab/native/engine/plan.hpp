// A plan: the steps of one network with every address and size decided, run in one call.
//
// Build it once (add_constant, add, finish), run it many times; a run allocates nothing and needs no interpreter.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kernels/step.hpp"
#include "memory.hpp"
#include "thread_pool.hpp"

namespace powerlab::engine {

// Where a view's memory is: in the arena, at `offset` floats from its start, or in the caller's input or output
// `index`; in steps that are run image by image it moves on by `shift` floats from one image to the next, and where
// each thread has images of its own, by `share` floats from one thread's memory to the next.
struct Place {
  enum class Space : std::uint8_t { kNone, kArena, kInput, kOutput };
  Space space = Space::kNone;
  std::int64_t offset = 0;
  std::int32_t index = 0;
  std::int64_t shift = 0;
  std::int64_t share = 0;
};

// Weights and bias that a step of the plan packs: where they lie in the arena, and how many floats; none below 0.
struct PackedWeights {
  std::int64_t weights = -1, weight_floats = 0, bias = -1, bias_floats = 0;
};

struct StepDescription {
  std::string kernel;  // the kernel's full name
  std::string label;   // the node it computes
};

class Plan {
 public:
  // Throws std::invalid_argument for an unknown tier or a number of threads below 1.
  Plan(const std::string& tier, int threads, std::int64_t arena_floats, std::int64_t spin_ns);

  // Plans that share a pool take turns. Where `lender` has an arena that is large enough, it is this one's, too: then
  // no two of them may run at the same time.
  Plan(const std::string& tier, std::shared_ptr<ThreadPool> pool, std::int64_t arena_floats,
       const Plan* lender = nullptr);

  // How large the arena is, of which a plan that borrows one may need less.
  std::int64_t room_floats() const { return room_floats_; }

  // Copies floats to aligned memory the plan keeps; returns a number for `add`.
  int add_constant(std::span<const float> values);

  // Keeps floats that lie at a multiple of kAlignment as they are, together with their owner; returns a number for
  // `add`.
  int keep_constant(std::shared_ptr<const float[]> values);

  // One convolution of a chain, with numbers of constants.
  struct Part {
    Step step;
    int weights, bias;
  };

  // One operand of a general kernel.
  struct Operand {
    Strided tensor;
    Place place;
  };

  // The first `steps` steps, not yet added, are run image by image: all of them for one image, then for the next. What
  // lies between them has room for one image only, which stays in the caches: of all threads, or where they go `apart`,
  // of the thread that claimed the image and takes it through all steps, waiting for nobody. Throws
  // std::invalid_argument where steps were added already.
  void loop(std::int64_t steps, std::int64_t images, bool apart = false);

  // Appends a step. `weights` and `bias` are numbers of constants, or -1: then they may be `packed`. Views in the arena
  // are checked to lie inside it; throws std::invalid_argument otherwise, and where the tier has no such kernel.
  // Steps `alone` that follow on each other are computed by one thread, which needs no barrier between them: steps
  // whose work was not cut for a number of threads.
  void add(const std::string& family, const std::string& label, Step step, Place x, Place y, Place out, Place scratch,
           int weights, int bias, const std::vector<Part>& parts = {}, const std::vector<Operand>& operands = {},
           const PackedWeights& packed = {}, bool alone = false);

  // Runs all steps. Calls from several threads take turns. inputs[i] and outputs[i] are what places of that index mean.
  // Throws std::runtime_error where a step could not compute with the numbers it was given, which it names.
  void run(std::span<const float* const> inputs, std::span<float* const> outputs);

  // Time each step took in the last run of `run_timed`, in nanoseconds, as thread 0 saw it.
  std::vector<std::int64_t> run_timed(std::span<const float* const> inputs, std::span<float* const> outputs);

  // Runs the steps first .. last - 1, all of them `times` times over, and returns the nanoseconds that took. What they
  // read must be there: run the steps before them once. A step repeated by itself finds its operands unchanged, because
  // no step writes to what it reads. Throws std::invalid_argument where there are no such steps.
  std::int64_t repeat(std::span<const float* const> inputs, std::span<float* const> outputs, std::int64_t first,
                      std::int64_t last, std::int64_t times);

  // Fills the arena with not-a-number: results must not change, or a step reads what no step wrote.
  void poison();

  std::vector<StepDescription> steps() const;

 private:
  struct PlannedStep {
    Step step;
    const Kernel* kernel;
    Place x, y, out, scratch;
    std::string label;
    std::unique_ptr<Step[]> parts;        // what step.parts points to
    std::unique_ptr<Strided[]> operands;  // what step.operands points to, and where they are
    std::vector<Place> places;
    bool alone;
    std::int32_t fault = kSound;
  };

  const float* constant(int number) const;
  const float* packed_at(std::int64_t offset, std::int64_t floats) const;
  void check(const View& view, const Place& place, bool written) const;
  void check(const Strided& tensor, const Place& place) const;
  void bind(std::span<const float* const> inputs, std::span<float* const> outputs);
  // One round of a step, for one image of those it is run for; or where `last` is not 0, the steps from `step` to
  // `last - 1`: for all images, claimed by threads that go apart, or computed by one thread alone.
  struct Phase {
    std::int32_t step, round;
    std::int64_t image;
    std::int32_t last = 0;
    bool alone = false;
  };
  std::vector<Phase> phases_of(std::size_t first, std::size_t last) const;
  void run_phases(const std::vector<Phase>& phases, std::int64_t times, bool timed);
  void run_share(const Phase& phase, std::int64_t turn, int share);
  void run_round(std::size_t step, std::int32_t round, std::int64_t image, int share);
  void run_images(const Phase& phase, std::int64_t turn, int share);
  void run_alone(const Phase& phase);
  const Step* next_of(std::size_t step) const;
  void finish(const Phase& phase);
  void check_faults() const;

  const KernelTable& table_;
  const std::int64_t arena_floats_, room_floats_;
  const std::shared_ptr<float[]> arena_;
  std::vector<std::shared_ptr<const float[]>> constants_;
  std::vector<PlannedStep> steps_;
  std::size_t looped_ = 0;  // steps that are run image by image, and of how many images
  std::int64_t images_ = 1;
  bool apart_ = false;
  std::atomic<std::int64_t> claimed_{0};    // images, of all turns of a run
  std::vector<std::int64_t> durations_ns_;  // of a timed run; empty in others
  std::vector<std::int64_t> apart_ns_;      // the same by share and step, of threads that go apart
  std::int64_t before_ns_ = 0;
  std::vector<Phase> phases_;  // of all steps; empty before the first run
  std::shared_ptr<ThreadPool> pool_;
};

}  // namespace powerlab::engine
