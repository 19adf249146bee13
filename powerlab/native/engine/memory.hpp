// Memory for weights and activations, in large pages where the system has them.
//
// A network's weights and planes lie in thousands of pages of 4 KiB, more than a processor remembers the addresses of,
// and a virtual machine looks an address up twice. Large pages are few: networks take about a tenth less time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

namespace powerlab::engine {

constexpr std::size_t kAlignment = 64;  // bytes: the widest vector, and a cache line
constexpr std::int64_t kTailFloats = 64;

// Returns floats that begin at a multiple of kAlignment, not yet written, with kTailFloats more behind them: vector
// loads run past the end. Throws std::bad_alloc.
std::shared_ptr<float[]> allocate_floats(std::int64_t count);

// The same for what only a run writes. It lies apart from what is written while a model is loaded: a large page that is
// touched first takes up to milliseconds in a virtual machine, and small constants behind an arena would need one more.
std::shared_ptr<float[]> allocate_arena(std::int64_t count);

}  // namespace powerlab::engine
