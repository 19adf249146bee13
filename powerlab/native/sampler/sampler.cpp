#include "sampler/sampler.hpp"

#include <linux/futex.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <stdexcept>
#include <utility>

namespace powerlab::sampler {
namespace {

constexpr std::int64_t kSecondNs = 1'000'000'000;
constexpr std::size_t kFirstRounds = 4096;
// How long a file that was replaced may be read on; a check is as dear as a read.
constexpr std::int64_t kCheckPeriodNs = 50'000'000;
// The kernel may wake the thread this share of a period late, together with other work, which is cheaper for both.
constexpr std::int64_t kSlackShare = 100;

std::int64_t clock_ns(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return now.tv_sec * kSecondNs + now.tv_nsec;
}

std::int64_t now_ns() { return clock_ns(CLOCK_MONOTONIC); }

}  // namespace

Sampler::Sampler(const std::vector<std::vector<Source>>& channels, std::int64_t period_ns) : period_ns_(period_ns) {
  static_assert(std::atomic<std::int32_t>::is_always_lock_free && sizeof(stopping_) == 4, "a futex is a plain word");
  if (period_ns <= 0) throw std::invalid_argument("the sample period must be above 0");
  channels_.reserve(channels.size());
  files_.reserve(2 * channels.size());
  for (const auto& sources : channels) {
    if (sources.empty() || sources.size() > 2) throw std::invalid_argument("a channel has one or two files");
    channels_.push_back(Channel{static_cast<std::uint32_t>(files_.size()), static_cast<std::uint32_t>(sources.size())});
    for (const Source& source : sources) files_.emplace_back(source);
  }
}

Sampler::~Sampler() { stop(); }

void Sampler::start() {
  const std::lock_guard<std::mutex> held(control_);
  if (thread_.joinable()) return;
  for (Channel& channel : channels_) channel.last_time_ns = channel.failed_reads = 0;
  samples_ = {};
  samples_.reserve(kFirstRounds * channels_.size());
  stopping_ = 0;
  rounds_ = 0;
  missed_deadlines_ = 0;
  cpu_ns_ = 0;
  wall_ns_ = 0;
  thread_ = std::thread(&Sampler::run, this);
}

void Sampler::stop() {
  const std::lock_guard<std::mutex> held(control_);
  if (!thread_.joinable()) return;
  stopping_ = 1;
  syscall(SYS_futex, &stopping_, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
  thread_.join();
}

std::vector<Samples> Sampler::take() {
  const std::lock_guard<std::mutex> held(control_);
  if (thread_.joinable()) throw std::logic_error("stop the sampler before taking its samples");
  std::vector<Samples> taken(channels_.size());
  for (std::size_t number = 0; number < taken.size(); ++number) {
    taken[number].failed_reads = std::exchange(channels_[number].failed_reads, 0);
  }
  for (const Sample& sample : std::exchange(samples_, {})) {
    Samples& samples = taken[sample.channel];
    samples.time_ns.push_back(sample.time_ns);
    samples.value.push_back(sample.value);
    samples.cost_ns.push_back(sample.cost_ns);
  }
  return taken;
}

void Sampler::sample(std::size_t number) {
  Channel& channel = channels_[number];
  const std::int64_t before_ns = now_ns();
  std::int64_t product = 1;
  bool good = true;
  for (std::uint32_t index = 0; index < channel.file_count; ++index) {
    std::int64_t reading = 0;
    SensorFile& file = files_[channel.first_file + index];
    good = file.read(&reading) && !__builtin_mul_overflow(product, reading, &product) && good;
  }
  const std::int64_t after_ns = now_ns();
  const std::int64_t time_ns = before_ns + (after_ns - before_ns) / 2;
  // Two reads of a clock with coarse ticks may give one stamp; time must increase strictly.
  if (!good || time_ns <= channel.last_time_ns) {
    ++channel.failed_reads;
    return;
  }
  channel.last_time_ns = time_ns;
  samples_.push_back(Sample{time_ns, product, after_ns - before_ns, number});
}

void Sampler::run() {
  const std::int64_t begin_ns = now_ns();
  prctl(PR_SET_TIMERSLACK, std::max<std::int64_t>(1, period_ns_ / kSlackShare));
  sample_until_stopped();
  cpu_ns_ = clock_ns(CLOCK_THREAD_CPUTIME_ID);
  wall_ns_ = now_ns() - begin_ns;
}

void Sampler::follow_replaced_files() {
  for (SensorFile& file : files_) file.reopen_if_replaced();
}

void Sampler::sample_until_stopped() {
  std::int64_t deadline_ns = now_ns();
  std::int64_t next_check_ns = deadline_ns;
  // At least one round: also a recording that is stopped at once has a sample.
  do {
    if (deadline_ns >= next_check_ns) {
      follow_replaced_files();
      next_check_ns = deadline_ns + kCheckPeriodNs;
    }
    for (std::size_t number = 0; number < channels_.size(); ++number) sample(number);
    ++rounds_;
    deadline_ns += period_ns_;
    if (const std::int64_t late_ns = now_ns() - deadline_ns; late_ns > 0) {
      // Late by more than a period: skip what was missed, instead of reading in a hurry to catch up.
      const std::int64_t missed = late_ns / period_ns_;
      missed_deadlines_ += missed;
      deadline_ns += missed * period_ns_;
    }
    sleep_until_ns(deadline_ns);
  } while (stopping_ == 0);
}

// Sleeps on the futex, so that a stop ends it at once; the standard library's timed waits fall back to the wall clock
// where the C library is old.
void Sampler::sleep_until_ns(std::int64_t deadline_ns) {
  const timespec deadline{.tv_sec = static_cast<time_t>(deadline_ns / kSecondNs),
                          .tv_nsec = static_cast<long>(deadline_ns % kSecondNs)};
  while (stopping_ == 0 && now_ns() < deadline_ns) {
    syscall(SYS_futex, &stopping_, FUTEX_WAIT_BITSET_PRIVATE, 0, &deadline, nullptr, FUTEX_BITSET_MATCH_ANY);
  }
}

}  // namespace powerlab::sampler
