// Samples sensor files in a thread of its own.
//
// Each channel is one or two files that hold one decimal integer; two are read back to back and multiplied (mV x mA).
// The thread needs no Python: it keeps absolute deadlines on CLOCK_MONOTONIC, and stamps each sample half-way through
// its read. A read that fails is counted and leaves a gap: a value is never made up.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "sampler/sensor_file.hpp"

namespace powerlab::sampler {

// One rail's samples; the three vectors have one length.
struct Samples {
  std::vector<std::int64_t> time_ns;
  std::vector<std::int64_t> value;
  std::vector<std::int64_t> cost_ns;
  std::int64_t failed_reads = 0;
};

class Sampler {
 public:
  // Opens every file. Throws std::system_error (a file cannot be opened) or std::invalid_argument.
  Sampler(const std::vector<std::vector<Source>>& channels, std::int64_t period_ns);
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;
  ~Sampler();

  // These three may be called from any threads.
  void start();                 // Does nothing while running. Throws std::system_error.
  void stop();                  // Returns when the thread is gone; does nothing when stopped.
  std::vector<Samples> take();  // Hands over what was sampled; throws std::logic_error while running.

  std::int64_t rounds() const { return rounds_; }  // How often every channel has been read since start().
  std::int64_t missed_deadlines() const { return missed_deadlines_; }
  // What the last recording cost: the thread's processor time and how long it lived; 0 until it has ended.
  std::int64_t cpu_ns() const { return cpu_ns_; }
  std::int64_t wall_ns() const { return wall_ns_; }

 private:
  // After a sleep nothing is left in the caches, so what a round touches lies close together: all files in one vector,
  // all samples in another, in the order in which they were taken.
  struct Channel {
    std::uint32_t first_file;
    std::uint32_t file_count;
    std::int64_t last_time_ns = 0;
    std::int64_t failed_reads = 0;
  };
  struct Sample {
    std::int64_t time_ns;
    std::int64_t value;
    std::int64_t cost_ns;
    std::size_t channel;
  };

  void run();
  void sample_until_stopped();
  void follow_replaced_files();
  void sleep_until_ns(std::int64_t deadline_ns);
  void sample(std::size_t number);

  std::vector<SensorFile> files_;
  std::vector<Channel> channels_;
  std::vector<Sample> samples_;
  const std::int64_t period_ns_;
  std::atomic<std::int32_t> stopping_{0};  // A futex: stop() wakes the thread from its sleep.
  std::atomic<std::int64_t> rounds_{0};
  std::atomic<std::int64_t> missed_deadlines_{0};
  std::atomic<std::int64_t> cpu_ns_{0};
  std::atomic<std::int64_t> wall_ns_{0};
  std::mutex control_;  // Held by start(), stop() and take(), never by the thread.
  std::thread thread_;
};

}  // namespace powerlab::sampler
