#include "sampler/sampler.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace powerlab::sampler {
namespace {

constexpr std::int64_t kSecondNs = 1'000'000'000;
constexpr std::int64_t kLongestSleepNs = 20'000'000;  // How long stop() may have to wait.
constexpr std::size_t kFirstSamples = 4096;

std::int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * kSecondNs + now.tv_nsec;
}

void sleep_until_ns(std::int64_t deadline_ns) {
  const timespec deadline{.tv_sec = static_cast<time_t>(deadline_ns / kSecondNs),
                          .tv_nsec = static_cast<long>(deadline_ns % kSecondNs)};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, nullptr) == EINTR) {
  }
}

int open_sensor(const std::string& path) { return open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); }

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\0'; }

}  // namespace

bool parse_integer(const char* begin, const char* end, std::int64_t* value) {
  while (begin != end && is_space(*begin)) ++begin;
  while (begin != end && is_space(*(end - 1))) --end;
  const auto [rest, error] = std::from_chars(begin, end, *value);
  return error == std::errc() && rest == end;
}

SensorFile::SensorFile(std::string path) : path_(std::move(path)), fd_(open_sensor(path_)) {
  if (fd_ < 0) throw std::system_error(errno, std::generic_category(), path_);
}

SensorFile::SensorFile(SensorFile&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

SensorFile::~SensorFile() {
  if (fd_ >= 0) close(fd_);
}

void SensorFile::reopen_if_replaced() {
  struct stat status{};
  if (fd_ >= 0 && fstat(fd_, &status) == 0 && status.st_nlink > 0) return;
  if (fd_ >= 0) close(fd_);
  fd_ = open_sensor(path_);
}

bool SensorFile::read(std::int64_t* value) {
  reopen_if_replaced();
  if (fd_ < 0) return false;
  char text[64];
  ssize_t length;
  do {
    length = pread(fd_, text, sizeof text, 0);
  } while (length < 0 && errno == EINTR);
  // A full buffer may have cut the number short.
  if (length <= 0 || length == static_cast<ssize_t>(sizeof text)) return false;
  return parse_integer(text, text + length, value);
}

Sampler::Sampler(const std::vector<std::vector<std::string>>& channels, std::int64_t period_ns)
    : period_ns_(period_ns) {
  if (period_ns <= 0) throw std::invalid_argument("the sample period must be above 0");
  channels_.reserve(channels.size());
  for (const auto& paths : channels) {
    if (paths.empty() || paths.size() > 2) throw std::invalid_argument("a channel has one or two files");
    Channel& channel = channels_.emplace_back();
    channel.files.reserve(paths.size());
    for (const auto& path : paths) channel.files.emplace_back(path);
  }
}

Sampler::~Sampler() { stop(); }

void Sampler::start() {
  if (thread_.joinable()) return;
  for (Channel& channel : channels_) {
    channel.samples = Samples{};
    for (auto* column : {&channel.samples.time_ns, &channel.samples.value, &channel.samples.cost_ns}) {
      column->reserve(kFirstSamples);
    }
  }
  stopping_ = false;
  rounds_ = 0;
  missed_deadlines_ = 0;
  thread_ = std::thread(&Sampler::run, this);
}

void Sampler::stop() {
  stopping_ = true;
  if (thread_.joinable()) thread_.join();
}

std::vector<Samples> Sampler::take() {
  if (thread_.joinable()) throw std::logic_error("stop the sampler before taking its samples");
  std::vector<Samples> taken;
  taken.reserve(channels_.size());
  for (Channel& channel : channels_) taken.push_back(std::exchange(channel.samples, Samples{}));
  return taken;
}

void Sampler::sample(Channel* channel) {
  const std::int64_t before_ns = now_ns();
  std::int64_t product = 1;
  bool good = true;
  for (SensorFile& file : channel->files) {
    std::int64_t reading = 0;
    good = file.read(&reading) && !__builtin_mul_overflow(product, reading, &product) && good;
  }
  const std::int64_t after_ns = now_ns();
  Samples& samples = channel->samples;
  const std::int64_t time_ns = before_ns + (after_ns - before_ns) / 2;
  // Two reads of a clock with coarse ticks may give one stamp; time must increase strictly.
  good = good && (samples.time_ns.empty() || time_ns > samples.time_ns.back());
  if (!good) {
    ++samples.failed_reads;
    return;
  }
  samples.time_ns.push_back(time_ns);
  samples.value.push_back(product);
  samples.cost_ns.push_back(after_ns - before_ns);
}

void Sampler::run() {
  std::int64_t deadline_ns = now_ns();
  // At least one round: also a recording that is stopped at once has a sample.
  do {
    for (Channel& channel : channels_) sample(&channel);
    ++rounds_;
    deadline_ns += period_ns_;
    if (const std::int64_t late_ns = now_ns() - deadline_ns; late_ns > 0) {
      // Late by more than a period: skip what was missed, instead of reading in a hurry to catch up.
      const std::int64_t missed = late_ns / period_ns_;
      missed_deadlines_ += missed;
      deadline_ns += missed * period_ns_;
    }
    while (!stopping_ && now_ns() < deadline_ns) sleep_until_ns(std::min(deadline_ns, now_ns() + kLongestSleepNs));
  } while (!stopping_);
}

}  // namespace powerlab::sampler
