#include "sampler/sensor_file.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <system_error>
#include <utility>

namespace powerlab::sampler {
namespace {

bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\0'; }

[[noreturn]] void throw_errno(const std::string& what) {
  throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace

bool parse_integer(const char* begin, const char* end, std::int64_t* value) {
  while (begin != end && is_space(*begin)) ++begin;
  while (begin != end && is_space(*(end - 1))) --end;
  const auto [rest, error] = std::from_chars(begin, end, *value);
  return error == std::errc() && rest == end;
}

SensorFile::SensorFile(const Source& source) {
  if (const int* descriptor = std::get_if<int>(&source)) {
    fd_ = fcntl(*descriptor, F_DUPFD_CLOEXEC, 0);
    if (fd_ < 0) throw_errno("descriptor " + std::to_string(*descriptor));
    return;
  }
  path_ = std::get<std::string>(source);
  open_path();
  if (fd_ < 0) throw_errno(path_);
}

SensorFile::SensorFile(SensorFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), in_sysfs_(other.in_sysfs_), path_(std::move(other.path_)) {}

SensorFile::~SensorFile() { close_file(); }

void SensorFile::open_path() {
  close_file();
  fd_ = open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  struct statfs system{};
  in_sysfs_ = fd_ >= 0 && fstatfs(fd_, &system) == 0 && system.f_type == SYSFS_MAGIC;
}

void SensorFile::close_file() {
  if (fd_ >= 0) close(std::exchange(fd_, -1));
}

void SensorFile::reopen_if_replaced() {
  if (path_.empty() || in_sysfs_ || fd_ < 0) return;
  struct stat status{};
  if (fstat(fd_, &status) != 0 || status.st_nlink == 0) open_path();
}

bool SensorFile::read(std::int64_t* value) {
  if (fd_ < 0 && !path_.empty()) open_path();
  if (fd_ < 0) return false;
  char text[64];
  ssize_t length;
  do {
    length = pread(fd_, text, sizeof text, 0);
  } while (length < 0 && errno == EINTR);
  // So sysfs says that the device is gone. The next read finds one that came back.
  if (length < 0 && errno == ENODEV && !path_.empty()) close_file();
  // A full buffer may have cut the number short.
  if (length <= 0 || length == static_cast<ssize_t>(sizeof text)) return false;
  return parse_integer(text, text + length, value);
}

}  // namespace powerlab::sampler
