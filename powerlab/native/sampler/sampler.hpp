// Samples sensor files in a thread of its own.
//
// Each channel is one or two files that hold one decimal integer; two are read back to back and multiplied (mV x mA).
// The thread needs no Python: it keeps absolute deadlines on CLOCK_MONOTONIC, and stamps each sample half-way through
// its read. A read that fails is counted and leaves a gap: a value is never made up.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <thread>
#include <vector>

namespace powerlab::sampler {

// A sensor file kept open. sysfs shows a fresh value at every read from offset 0; a file that was replaced by another
// under the same name (a driver that was reloaded, a simulated sensor) is opened again.
class SensorFile {
 public:
  explicit SensorFile(std::string path);  // Throws std::system_error.
  SensorFile(SensorFile&& other) noexcept;
  SensorFile(const SensorFile&) = delete;
  SensorFile& operator=(const SensorFile&) = delete;
  SensorFile& operator=(SensorFile&&) = delete;
  ~SensorFile();

  // Reads the integer; false where the read fails or the text is no integer.
  bool read(std::int64_t* value);

 private:
  void reopen_if_replaced();

  std::string path_;
  int fd_;
};

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
  Sampler(const std::vector<std::vector<std::string>>& channels, std::int64_t period_ns);
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;
  ~Sampler();

  void start();                 // Does nothing while running. Throws std::system_error.
  void stop();                  // Returns when the thread is gone; does nothing when stopped.
  std::vector<Samples> take();  // Hands over what was sampled; throws std::logic_error while running.
  std::int64_t rounds() const { return rounds_; }  // How often every channel has been read since start().
  std::int64_t missed_deadlines() const { return missed_deadlines_; }

 private:
  struct Channel {
    std::vector<SensorFile> files;
    Samples samples;
  };

  void run();
  static void sample(Channel* channel);

  std::vector<Channel> channels_;
  const std::int64_t period_ns_;
  std::atomic<bool> stopping_{false};
  std::atomic<std::int64_t> rounds_{0};
  std::atomic<std::int64_t> missed_deadlines_{0};
  std::thread thread_;
};

// Parses one decimal integer with white space around it, as sysfs writes it; false for anything else.
bool parse_integer(const char* begin, const char* end, std::int64_t* value);

}  // namespace powerlab::sampler
