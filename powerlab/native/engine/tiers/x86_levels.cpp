#if defined(__x86_64__)

#include "tiers/x86_levels.hpp"

#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

namespace powerlab::engine {
namespace {

// Read here and not through __builtin_cpu_supports: the run-time library of the fallback compiler leaves that at zero.
struct Registers {
  std::uint32_t a = 0, b = 0, c = 0, d = 0;
};

Registers asked(std::uint32_t leaf, std::uint32_t subleaf) {
  Registers r;
  return __get_cpuid_count(leaf, subleaf, &r.a, &r.b, &r.c, &r.d) ? r : Registers{};
}

// Each leaf is asked for once: in a virtual machine every question is one to its host.
template <std::uint32_t leaf, std::uint32_t subleaf = 0>
const Registers& cpuid() {
  static const Registers found = asked(leaf, subleaf);
  return found;
}

bool all(std::uint32_t value, std::initializer_list<int> bits) {
  for (const int bit : bits) {
    if ((value >> bit & 1) == 0) return false;
  }
  return true;
}

// XCR0: the registers the operating system saves when it switches threads.
std::uint32_t saved_state() {
  std::uint32_t low = 0, high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

}  // namespace

int x86_level() {
  const Registers basic = cpuid<1>(), extended = cpuid<7>(), amd = cpuid<0x80000001>();
  // cx16, sse3, ssse3, sse4.1, sse4.2, popcnt; lahf
  if (!all(basic.c, {13, 0, 9, 19, 20, 23}) || !all(amd.c, {0})) return 1;
  // osxsave, avx, f16c, fma, movbe; avx2, bmi1, bmi2; lzcnt; SSE and AVX state saved
  if (!all(basic.c, {27, 28, 29, 12, 22}) || !all(extended.b, {5, 3, 8}) || !all(amd.c, {5})) return 2;
  const std::uint32_t saved = saved_state();
  if (!all(saved, {1, 2})) return 2;
  // avx512f, dq, cd, bw, vl; mask registers and both halves of the wide ones saved
  if (!all(extended.b, {16, 17, 28, 30, 31}) || !all(saved, {5, 6, 7})) return 3;
  return 4;
}

bool has_avx512_vnni() { return all(cpuid<7>().c, {11}); }

bool has_avx_vnni() { return cpuid<7>().a >= 1 && all(cpuid<7, 1>().a, {4}); }

bool has_avx512_vbmi() { return all(cpuid<7>().c, {1}); }

bool has_avx512_bf16() { return cpuid<7>().a >= 1 && all(cpuid<7, 1>().a, {5}); }

bool has_avx512_fp16() { return all(cpuid<7>().d, {23}); }

namespace {

// Whether tiles multiply what a bit of CPUID says.
bool has_tiles_of(int bit) {
  const char* wanted = std::getenv("POWERLAB_AMX");
  if (wanted && std::strcmp(wanted, "off") == 0) return false;
  constexpr int kTiles = 24, kConfigSaved = 17, kDataSaved = 18;
  if (!all(cpuid<7>().d, {kTiles, bit}) || !all(saved_state(), {kConfigSaved, kDataSaved})) return false;
  constexpr long kAskForState = 0x1023;  // ARCH_REQ_XCOMP_PERM; it is for the whole process, and asking again is free
  static const bool granted = syscall(SYS_arch_prctl, kAskForState, kDataSaved) == 0;
  return granted;
}

}  // namespace

bool has_amx_int8() { return has_tiles_of(25); }

bool has_amx_bf16() { return has_tiles_of(22); }

}  // namespace powerlab::engine

#endif
