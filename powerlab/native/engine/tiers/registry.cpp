#include "tiers/registry.hpp"

#include <stdexcept>

#include "tiers/arm_features.hpp"
#include "tiers/x86_levels.hpp"

namespace powerlab::engine {

// CMake defines POWERLAB_HAS_<tier> for each tier that it builds.
#ifdef POWERLAB_HAS_avx512
namespace avx512 {
extern const KernelTable kTable;
}
#endif
#ifdef POWERLAB_HAS_avx2
namespace avx2 {
extern const KernelTable kTable;
}
#endif
#ifdef POWERLAB_HAS_sse4
namespace sse4 {
extern const KernelTable kTable;
}
#endif
#ifdef POWERLAB_HAS_neon
namespace neon {
extern const KernelTable kTable;
}
#endif
#ifdef POWERLAB_HAS_generic
namespace generic {
extern const KernelTable kTable;
}
#endif

// Likewise POWERLAB_BYTES_<instruction set>.
#define POWERLAB_BYTES(name)         \
  namespace name {                   \
  extern const ByteTable kByteTable; \
  }
#ifdef POWERLAB_BYTES_avx512amx
POWERLAB_BYTES(avx512amx)
#endif
#ifdef POWERLAB_BYTES_avx512vnni
POWERLAB_BYTES(avx512vnni)
#endif
#ifdef POWERLAB_BYTES_avx512bytes
POWERLAB_BYTES(avx512bytes)
#endif
#ifdef POWERLAB_BYTES_avxvnni
POWERLAB_BYTES(avxvnni)
#endif
#ifdef POWERLAB_BYTES_avx2bytes
POWERLAB_BYTES(avx2bytes)
#endif
#ifdef POWERLAB_BYTES_sse4bytes
POWERLAB_BYTES(sse4bytes)
#endif
#ifdef POWERLAB_BYTES_neon_i8mm
POWERLAB_BYTES(neon_i8mm)
#endif
#ifdef POWERLAB_BYTES_neon_dotprod
POWERLAB_BYTES(neon_dotprod)
#endif
#ifdef POWERLAB_BYTES_neonbytes
POWERLAB_BYTES(neonbytes)
#endif
#ifdef POWERLAB_BYTES_genericbytes
POWERLAB_BYTES(genericbytes)
#endif

// Likewise POWERLAB_PAIRS_<instruction set>.
#define POWERLAB_PAIRS(name)         \
  namespace name {                   \
  extern const PairTable kPairTable; \
  }
#ifdef POWERLAB_PAIRS_avx512amxbf16
POWERLAB_PAIRS(avx512amxbf16)
#endif
#ifdef POWERLAB_PAIRS_avx512bf16
POWERLAB_PAIRS(avx512bf16)
#endif
#ifdef POWERLAB_PAIRS_avx512fp16
POWERLAB_PAIRS(avx512fp16)
#endif
#ifdef POWERLAB_PAIRS_neon_bf16
POWERLAB_PAIRS(neon_bf16)
#endif
#ifdef POWERLAB_PAIRS_neon_fp16
POWERLAB_PAIRS(neon_fp16)
#endif

namespace {

struct Tier {
  const KernelTable* table;
  bool (*supported)();
};

// Best first. The checks match the compiler flags in CMakeLists.txt.
const Tier kTiers[] = {
#ifdef POWERLAB_HAS_avx512
    {&avx512::kTable, [] { return x86_level() >= 4; }},
#endif
#ifdef POWERLAB_HAS_avx2
    {&avx2::kTable, [] { return x86_level() >= 3; }},
#endif
#ifdef POWERLAB_HAS_sse4
    {&sse4::kTable, [] { return x86_level() >= 2; }},
#endif
#ifdef POWERLAB_HAS_neon
    {&neon::kTable, [] { return true; }},
#endif
#ifdef POWERLAB_HAS_generic
    {&generic::kTable, [] { return true; }},
#endif
};

struct Bytes {
  const ByteTable* table;
  bool (*supported)();  // beside what the tier asks for
};

// Best first, for each tier.
const Bytes kBytes[] = {
#ifdef POWERLAB_BYTES_avx512amx
    {&avx512amx::kByteTable, [] { return has_avx512_vnni() && has_amx_int8(); }},
#endif
#ifdef POWERLAB_BYTES_avx512vnni
    {&avx512vnni::kByteTable, [] { return has_avx512_vnni(); }},
#endif
#ifdef POWERLAB_BYTES_avx512bytes
    {&avx512bytes::kByteTable, [] { return true; }},
#endif
#ifdef POWERLAB_BYTES_avxvnni
    {&avxvnni::kByteTable, [] { return has_avx_vnni(); }},
#endif
#ifdef POWERLAB_BYTES_avx2bytes
    {&avx2bytes::kByteTable, [] { return true; }},
#endif
#ifdef POWERLAB_BYTES_sse4bytes
    {&sse4bytes::kByteTable, [] { return true; }},
#endif
#ifdef POWERLAB_BYTES_neon_i8mm
    {&neon_i8mm::kByteTable, [] { return has_dot_products() && has_byte_matrices(); }},
#endif
#ifdef POWERLAB_BYTES_neon_dotprod
    {&neon_dotprod::kByteTable, [] { return has_dot_products(); }},
#endif
#ifdef POWERLAB_BYTES_neonbytes
    {&neonbytes::kByteTable, [] { return true; }},
#endif
#ifdef POWERLAB_BYTES_genericbytes
    {&genericbytes::kByteTable, [] { return true; }},
#endif
};

struct Pairs {
  const PairTable* table;
  bool (*supported)();  // beside what the tier asks for
};

const Pairs kPairs[] = {
#ifdef POWERLAB_PAIRS_avx512amxbf16
    {&avx512amxbf16::kPairTable, [] { return has_avx512_bf16() && has_amx_bf16(); }},
#endif
#ifdef POWERLAB_PAIRS_avx512bf16
    {&avx512bf16::kPairTable, [] { return has_avx512_bf16(); }},
#endif
#ifdef POWERLAB_PAIRS_avx512fp16
    {&avx512fp16::kPairTable, [] { return has_avx512_fp16(); }},
#endif
#ifdef POWERLAB_PAIRS_neon_bf16
    {&neon_bf16::kPairTable, [] { return has_bf16_dot_products(); }},
#endif
#ifdef POWERLAB_PAIRS_neon_fp16
    {&neon_fp16::kPairTable, [] { return has_half_arithmetic(); }},
#endif
    {nullptr, nullptr},
};

const Kernel* found(const Kernel* kernels, std::int32_t count, std::string_view family) {
  for (std::int32_t i = 0; i < count; ++i) {
    if (family == kernels[i].family) return kernels + i;
  }
  return nullptr;
}

}  // namespace

std::vector<const PairTable*> pair_tables(const KernelTable& table) {
  std::vector<const PairTable*> tables;
  for (const Pairs& pairs : kPairs) {
    if (pairs.table && std::string_view(pairs.table->tier) == table.tier && pairs.supported())
      tables.push_back(pairs.table);
  }
  return tables;
}

const PairTable* pair_table(const KernelTable& table, std::string_view numbers) {
  for (const PairTable* pairs : pair_tables(table)) {
    if (numbers == pairs->numbers) return pairs;
  }
  return nullptr;
}

std::vector<const ByteTable*> byte_tables(const KernelTable& table) {
  std::vector<const ByteTable*> tables;
  for (const Bytes& bytes : kBytes) {
    if (std::string_view(bytes.table->tier) == table.tier && bytes.supported()) tables.push_back(bytes.table);
  }
  return tables;
}

std::vector<const KernelTable*> available_tiers() {
  std::vector<const KernelTable*> tables;
  for (const Tier& tier : kTiers) {
    if (tier.supported()) tables.push_back(tier.table);
  }
  if (tables.empty())
    throw std::invalid_argument("this build of powerlab's engine has no tier for this processor; SSE4.2 is the least.");
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
  if (const Kernel* kernel = found(table.kernels, table.kernel_count, family)) return *kernel;
  for (const ByteTable* bytes : byte_tables(table)) {
    if (const Kernel* kernel = found(bytes->kernels, bytes->kernel_count, family)) return *kernel;
  }
  for (const PairTable* pairs : pair_tables(table)) {
    if (const Kernel* kernel = found(pairs->kernels, pairs->kernel_count, family)) return *kernel;
  }
  throw std::invalid_argument("the engine tier " + std::string(table.tier) + " has no kernel \"" + std::string(family) +
                              "\".");
}

}  // namespace powerlab::engine
