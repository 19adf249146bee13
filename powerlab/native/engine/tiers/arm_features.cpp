#if defined(__aarch64__)

#include "tiers/arm_features.hpp"

#include <sys/auxv.h>

namespace powerlab::engine {

bool has_dot_products() {
  constexpr unsigned long kAsimdDp = 1ul << 20;  // HWCAP_ASIMDDP
  return (getauxval(AT_HWCAP) & kAsimdDp) != 0;
}

bool has_byte_matrices() {
  constexpr unsigned long kI8mm = 1ul << 13;  // HWCAP2_I8MM
  return (getauxval(AT_HWCAP2) & kI8mm) != 0;
}

bool has_bf16_dot_products() {
  constexpr unsigned long kBf16 = 1ul << 14;  // HWCAP2_BF16
  return (getauxval(AT_HWCAP2) & kBf16) != 0;
}

bool has_half_arithmetic() {
  constexpr unsigned long kAsimdHp = 1ul << 10;  // HWCAP_ASIMDHP
  return (getauxval(AT_HWCAP) & kAsimdHp) != 0;
}

}  // namespace powerlab::engine

#endif
