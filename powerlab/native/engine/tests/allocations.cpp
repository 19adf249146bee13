// Counts how often the process asks for memory: the functions of the C library stand behind those of the same name
// here.
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "tests/test.hpp"

#if defined(__has_feature)
#define POWERLAB_HAS_FEATURE(name) __has_feature(name)
#else
#define POWERLAB_HAS_FEATURE(name) 0
#endif
#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && \
    !POWERLAB_HAS_FEATURE(address_sanitizer) && !POWERLAB_HAS_FEATURE(thread_sanitizer)
#define POWERLAB_COUNTS_ALLOCATIONS 1
#else
#define POWERLAB_COUNTS_ALLOCATIONS 0
#endif

#if POWERLAB_COUNTS_ALLOCATIONS
namespace {
std::atomic<std::int64_t> count{0};
}

extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* memory, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);

void* malloc(std::size_t size) {
  ++count;
  return __libc_malloc(size);
}
void* calloc(std::size_t number, std::size_t size) {
  ++count;
  return __libc_calloc(number, size);
}
void* realloc(void* memory, std::size_t size) {
  ++count;
  return __libc_realloc(memory, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) {
  ++count;
  return __libc_memalign(alignment, size);
}
int posix_memalign(void** memory, std::size_t alignment, std::size_t size) {
  ++count;
  *memory = __libc_memalign(alignment, size);
  return *memory ? 0 : ENOMEM;
}
}
#endif

namespace powerlab::engine::test {

std::int64_t allocations() {
#if POWERLAB_COUNTS_ALLOCATIONS
  return count.load();
#else
  return -1;
#endif
}

}  // namespace powerlab::engine::test
