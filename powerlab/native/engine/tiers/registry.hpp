// Which tiers this build holds, and which of them this processor can run.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kernels/step.hpp"

namespace powerlab::engine {

// Tiers of this build that the processor supports, best first; never empty.
std::vector<const KernelTable*> available_tiers();

// The tier of that name, or the best one for an empty name. Throws std::invalid_argument with one sentence that lists
// the tiers there are.
const KernelTable& find_tier(std::string_view name);

// The kernels on bytes that go with a tier and that the processor supports, best first.
std::vector<const ByteTable*> byte_tables(const KernelTable& table);

// The kernels on 16-bit floats that go with a tier and that the processor supports, best first.
std::vector<const PairTable*> pair_tables(const KernelTable& table);

// The first of them on such numbers; null where there are none.
const PairTable* pair_table(const KernelTable& table, std::string_view numbers);

// The kernel of that family. Throws std::invalid_argument where the tier has none.
const Kernel& find_kernel(const KernelTable& table, std::string_view family);

}  // namespace powerlab::engine
