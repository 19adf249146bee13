#include "fake_nvml/tree.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace powerlab::fake_nvml {
namespace {

constexpr const char* kFolder = "/simulation/nvml";
constexpr std::size_t kLongestName = 128;

char g_root[PATH_MAX];  // Written by find_tree() alone, which nvmlInit calls under its lock.

bool is_directory(const char* path) {
  struct stat status{};
  return stat(path, &status) == 0 && S_ISDIR(status.st_mode);
}

// Writes a file's path into a buffer of PATH_MAX; false where it would not fit.
bool path_of(int gpu, const char* name, char* path) {
  const int length = gpu == kLibrary ? std::snprintf(path, PATH_MAX, "%s/%s", g_root, name)
                                     : std::snprintf(path, PATH_MAX, "%s/gpu%d/%s", g_root, gpu, name);
  return length > 0 && length < PATH_MAX;
}

}  // namespace

bool find_tree() {
  Dl_info self{};
  char place[PATH_MAX];
  if (dladdr(reinterpret_cast<const void*>(&find_tree), &self) == 0 || realpath(self.dli_fname, place) == nullptr) {
    return false;
  }
  for (char* slash = std::strrchr(place, '/'); slash != nullptr; slash = std::strrchr(place, '/')) {
    *slash = '\0';
    if (std::strlen(place) + std::strlen(kFolder) + kLongestName >= PATH_MAX) continue;
    std::strcpy(g_root, place);
    std::strcat(g_root, kFolder);
    if (is_directory(g_root)) return true;
  }
  g_root[0] = '\0';
  return false;
}

int gpu_count() {
  int count = 0;
  char path[PATH_MAX];
  while (count < kMostGpus && path_of(count, "", path) && is_directory(path)) ++count;
  return count;
}

bool exists(int gpu, const char* name) {
  char path[PATH_MAX];
  return path_of(gpu, name, path) && access(path, F_OK) == 0;
}

nvmlReturn_t read_text(int gpu, const char* name, char* text, std::size_t size) {
  char path[PATH_MAX];
  if (size == 0) return NVML_ERROR_INSUFFICIENT_SIZE;
  if (!path_of(gpu, name, path)) return NVML_ERROR_UNKNOWN;
  const int handle = open(path, O_RDONLY | O_CLOEXEC);
  if (handle < 0) return errno == ENOENT ? NVML_ERROR_NOT_SUPPORTED : NVML_ERROR_UNKNOWN;
  const ssize_t length = read(handle, text, size - 1);
  close(handle);
  if (length < 0) return NVML_ERROR_UNKNOWN;
  text[length] = '\0';
  text[std::strcspn(text, "\n")] = '\0';
  for (std::size_t end = std::strlen(text); end > 0 && text[end - 1] == ' '; --end) text[end - 1] = '\0';
  return NVML_SUCCESS;
}

nvmlReturn_t read_number(int gpu, const char* name, std::uint64_t* value) {
  char text[64];
  if (value == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (const nvmlReturn_t failure = read_text(gpu, name, text, sizeof text)) return failure;
  if (text[0] < '0' || text[0] > '9') return NVML_ERROR_UNKNOWN;
  *value = std::strtoull(text, nullptr, 10);
  return NVML_SUCCESS;
}

nvmlReturn_t write_text(int gpu, const char* name, const char* text) {
  char path[PATH_MAX];
  char line[64];
  if (!path_of(gpu, name, path)) return NVML_ERROR_UNKNOWN;
  const int handle = open(path, O_WRONLY | O_CLOEXEC);
  if (handle < 0) {
    if (errno == ENOENT) return NVML_ERROR_NOT_SUPPORTED;
    return errno == EACCES || errno == EROFS ? NVML_ERROR_NO_PERMISSION : NVML_ERROR_UNKNOWN;
  }
  const int length = std::snprintf(line, sizeof line, "%s\n", text);
  const bool done = pwrite(handle, line, length, 0) == length && ftruncate(handle, length) == 0;
  close(handle);
  return done ? NVML_SUCCESS : NVML_ERROR_UNKNOWN;
}

}  // namespace powerlab::fake_nvml
