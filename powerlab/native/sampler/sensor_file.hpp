// One open sensor file that holds one decimal integer.
#pragma once

#include <cstdint>
#include <string>
#include <variant>

namespace powerlab::sampler {

// A file to open by its path, or an open descriptor: what only root may open, a privileged process opens and passes on.
using Source = std::variant<std::string, int>;

// A sensor file kept open. sysfs shows a fresh value at every read from offset 0. A file that was replaced by another
// under the same name (a driver that was reloaded, a simulated sensor) is opened again, where its path is known.
class SensorFile {
 public:
  // Opens a path; duplicates a descriptor, which stays the caller's to close. Throws std::system_error.
  explicit SensorFile(const Source& source);
  SensorFile(SensorFile&& other) noexcept;
  SensorFile(const SensorFile&) = delete;
  SensorFile& operator=(const SensorFile&) = delete;
  SensorFile& operator=(SensorFile&&) = delete;
  ~SensorFile();

  // Opens the file again where another one has its name. Only sysfs says by itself, at reading, that a file is gone;
  // elsewhere this costs as much as a read, and is not for every round.
  void reopen_if_replaced();

  // Reads the integer; false where the read fails or the text is not an integer.
  bool read(std::int64_t* value);

 private:
  void open_path();
  void close_file();

  int fd_ = -1;
  bool in_sysfs_ = false;
  std::string path_;  // Empty for a descriptor that was handed over.
};

// Parses one decimal integer with white space around it, as sysfs writes it; false for anything else.
bool parse_integer(const char* begin, const char* end, std::int64_t* value);

}  // namespace powerlab::sampler
