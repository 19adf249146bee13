#include "memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <limits>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#if defined(__has_feature)
#define POWERLAB_HAS_FEATURE(name) __has_feature(name)
#else
#define POWERLAB_HAS_FEATURE(name) 0
#endif

namespace powerlab::engine {
namespace {

#if defined(__SANITIZE_ADDRESS__) || POWERLAB_HAS_FEATURE(address_sanitizer)
constexpr bool kApart = true;  // what reaches beyond its end is seen only where nothing lies
#else
constexpr bool kApart = false;
#endif

constexpr std::size_t kLargePage = std::size_t{2} << 20;  // bytes, on x86 and on Arm with pages of 4 KiB
constexpr std::size_t kRegion = std::size_t{32} << 20;    // pages that nobody writes to take no memory

enum class End { kFront, kBack };

// A part of the address space that allocations are cut from, one after another. It is given back with the last of them.
class Region {
 public:
  explicit Region(std::size_t bytes) : bytes_(bytes) {
    void* mapped = mmap(nullptr, bytes + kLargePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) throw std::bad_alloc();
    mapped_ = static_cast<std::byte*>(mapped);
    begin_ = mapped_ + (kLargePage - reinterpret_cast<std::uintptr_t>(mapped_) % kLargePage) % kLargePage;
#ifdef MADV_HUGEPAGE
    madvise(begin_, bytes, MADV_HUGEPAGE);  // a wish: where it is refused, pages are small
#endif
  }
  Region(const Region&) = delete;
  Region& operator=(const Region&) = delete;
  ~Region() { munmap(mapped_, bytes_ + kLargePage); }

  // Returns `bytes` at one of its ends; null where there are not as many.
  float* take(std::size_t bytes, End end) {
    if (bytes > bytes_ - front_ - back_) return nullptr;
    if (end == End::kFront) return reinterpret_cast<float*>(begin_ + std::exchange(front_, front_ + bytes));
    back_ += bytes;
    return reinterpret_cast<float*>(begin_ + bytes_ - back_);
  }

 private:
  std::size_t bytes_, front_ = 0, back_ = 0;
  std::byte *mapped_, *begin_;
};

std::mutex mutex;
std::vector<std::weak_ptr<Region>> regions;  // guarded by the mutex; small allocations fill what large ones left

std::shared_ptr<float[]> from_region(std::size_t bytes, End end) {
  const std::lock_guard lock(mutex);
  std::erase_if(regions, [](const std::weak_ptr<Region>& region) { return region.expired(); });
  for (const std::weak_ptr<Region>& one : regions) {
    std::shared_ptr<Region> region = one.lock();
    float* floats = region ? region->take(bytes, end) : nullptr;
    if (floats) return {std::move(region), floats};
  }
  auto region = std::make_shared<Region>((std::max(bytes, kRegion) + kLargePage - 1) / kLargePage * kLargePage);
  regions.push_back(region);
  float* floats = region->take(bytes, end);
  return {std::move(region), floats};
}

std::shared_ptr<float[]> allocate(std::int64_t count, End end) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max() / 8;
  if (count < 0 || count > kMost) throw std::bad_alloc();
  const std::size_t floats = static_cast<std::size_t>(count + kTailFloats);
  const std::size_t bytes = (floats * sizeof(float) + kAlignment - 1) / kAlignment * kAlignment;
  if (!kApart) return from_region(bytes, end);
  constexpr std::align_val_t kAligned{kAlignment};
  const auto free = [](float* memory) { ::operator delete[](memory, kAligned); };
  return {static_cast<float*>(::operator new[](bytes, kAligned)), free};
}

}  // namespace

std::shared_ptr<float[]> allocate_floats(std::int64_t count) { return allocate(count, End::kFront); }

std::shared_ptr<float[]> allocate_arena(std::int64_t count) { return allocate(count, End::kBack); }

}  // namespace powerlab::engine
