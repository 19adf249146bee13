// A CUDA driver whose card is the memory of the host: it copies, and a thread without a context is refused as there.
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int kNotInitialized = 3, kInvalidContext = 201;
bool initialized = false;
int card = 0, queue = 0;
thread_local void* current = nullptr;

int copy(void* to, const void* from, std::size_t bytes, void* stream) {
  if (current == nullptr || stream != &queue) return kInvalidContext;
  std::memcpy(to, from, bytes);
  return 0;
}

}  // namespace

extern "C" {
int cuInit(unsigned) {
  initialized = true;
  return 0;
}
int cuDeviceGetCount(int* count) {
  const char* cards = std::getenv("FAKE_CARDS");
  *count = cards == nullptr ? 1 : std::atoi(cards);
  return initialized ? 0 : kNotInitialized;
}
int cuDeviceGet(int* device, int number) { return *device = number, 0; }
int cuDeviceGetName(char* name, int size, int) { return std::strncpy(name, "Fake RTX", size), 0; }
int cuDevicePrimaryCtxRetain(void** context, int) { return *context = &card, 0; }
int cuCtxSetCurrent(void* context) { return current = context, 0; }
int cuStreamCreate(void** stream, unsigned) { return *stream = &queue, current == nullptr ? kInvalidContext : 0; }
int cuStreamSynchronize(void* stream) { return stream == &queue ? 0 : kInvalidContext; }
int cuMemAlloc_v2(std::uint64_t* address, std::size_t bytes) {
  *address = reinterpret_cast<std::uint64_t>(std::malloc(bytes));
  return current == nullptr ? kInvalidContext : 0;
}
int cuMemcpyHtoDAsync_v2(std::uint64_t to, const void* from, std::size_t bytes, void* stream) {
  return copy(reinterpret_cast<void*>(to), from, bytes, stream);
}
int cuMemcpyDtoHAsync_v2(void* to, std::uint64_t from, std::size_t bytes, void* stream) {
  return copy(to, reinterpret_cast<const void*>(from), bytes, stream);
}
int cuGetErrorName(int code, const char** name) {
  *name = code == kInvalidContext ? "CUDA_ERROR_INVALID_CONTEXT" : "CUDA_ERROR_UNKNOWN";
  return 0;
}
}
