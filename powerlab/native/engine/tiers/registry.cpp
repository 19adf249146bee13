#include "tiers/registry.hpp"

#include <stdexcept>

#include "tiers/x86_levels.hpp"

namespace powerlab::engine {

#if defined(__x86_64__)
namespace avx512 {
extern const KernelTable kTable;
}
namespace avx2 {
extern const KernelTable kTable;
}
namespace sse4 {
extern const KernelTable kTable;
}
#elif defined(__aarch64__)
namespace neon {
extern const KernelTable kTable;
}
#else
namespace generic {
extern const KernelTable kTable;
}
#endif

namespace {

struct Tier {
  const KernelTable* table;
  bool (*supported)();
};

// Best first. The checks match the compiler flags in CMakeLists.txt.
const Tier kTiers[] = {
#if defined(__x86_64__)
    {&avx512::kTable, [] { return x86_level() >= 4; }},
    {&avx2::kTable, [] { return x86_level() >= 3; }},
    {&sse4::kTable, [] { return x86_level() >= 2; }},
#elif defined(__aarch64__)
    {&neon::kTable, [] { return true; }},
#else
    {&generic::kTable, [] { return true; }},
#endif
};

}  // namespace

std::vector<const KernelTable*> available_tiers() {
  std::vector<const KernelTable*> tables;
  for (const Tier& tier : kTiers) {
    if (tier.supported()) tables.push_back(tier.table);
  }
  if (tables.empty()) throw std::invalid_argument("this processor lacks SSE4.2, which powerlab's engine needs.");
  return tables;
}

const KernelTable& find_tier(std::string_view name) {
  const auto tables = available_tiers();
  if (name.empty()) return *tables.front();
  std::string known;
  for (const KernelTable* table : tables) {
    if (name == table->tier) return *table;
    known += (known.empty() ? "" : ", ") + std::string(table->tier);
  }
  throw std::invalid_argument("the engine tier \"" + std::string(name) + "\" is not one this processor can run; use " +
                              known + ", or unset POWERLAB_TIER.");
}

const Kernel& find_kernel(const KernelTable& table, std::string_view family) {
  for (std::int32_t i = 0; i < table.kernel_count; ++i) {
    if (family == table.kernels[i].family) return table.kernels[i];
  }
  throw std::invalid_argument("the engine tier " + std::string(table.tier) + " has no kernel \"" + std::string(family) +
                              "\".");
}

}  // namespace powerlab::engine
