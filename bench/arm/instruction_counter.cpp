// A plugin of QEMU's emulator of user programs: how many instructions a part of a program takes.
//
// The program says where the part begins and ends by a system call that does nothing else: getpriority(2) with
// `which` = 0x706c, which no kernel knows, and `who` = 1 where it begins and 0 where it ends. At each end the number
// goes into the file that the argument out=FILE names, a line a part.
//
// Source: QEMU's documentation, "QEMU TCG Plugins"; what is used of its interface is declared here, so that no header
// of QEMU is needed.
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <string>

#define EXPORTED extern "C" __attribute__((visibility("default")))

extern "C" {
struct qemu_plugin_tb;
struct qemu_info_t;
using PluginId = std::uint64_t;
using SystemCall = void (*)(PluginId, unsigned, std::int64_t, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t,
                            std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t);
std::size_t qemu_plugin_tb_n_insns(const qemu_plugin_tb*);
void qemu_plugin_register_vcpu_tb_trans_cb(PluginId, void (*)(PluginId, qemu_plugin_tb*));
void qemu_plugin_register_vcpu_tb_exec_cb(qemu_plugin_tb*, void (*)(unsigned, void*), int registers, void*);
void qemu_plugin_register_vcpu_syscall_cb(PluginId, SystemCall);
}

EXPORTED const int qemu_plugin_version = QEMU_PLUGIN_INTERFACE;

namespace {

constexpr std::int64_t kGetPriority = 141;  // on 64-bit Arm
constexpr std::uint64_t kMark = 0x706c;

std::atomic<std::uint64_t> executed;
std::string out_path;

void on_executed(unsigned, void* instructions) {
  executed.fetch_add(reinterpret_cast<std::uintptr_t>(instructions), std::memory_order_relaxed);
}

void on_translated(PluginId, qemu_plugin_tb* block) {
  const std::uintptr_t instructions = qemu_plugin_tb_n_insns(block);
  qemu_plugin_register_vcpu_tb_exec_cb(block, on_executed, 0, reinterpret_cast<void*>(instructions));
}

void on_system_call(PluginId, unsigned, std::int64_t number, std::uint64_t which, std::uint64_t who, std::uint64_t,
                    std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t) {
  if (number != kGetPriority || which != kMark) return;
  if (who == 0) std::ofstream(out_path, std::ios::app) << executed.load() << '\n';
  executed = 0;
}

}  // namespace

EXPORTED int qemu_plugin_install(PluginId id, const qemu_info_t*, int count, char** arguments) {
  const std::string name = "out=";
  for (int i = 0; i < count; ++i) {
    const std::string argument = arguments[i];
    if (argument.rfind(name, 0) == 0) out_path = argument.substr(name.size());
  }
  if (out_path.empty()) return 1;
  qemu_plugin_register_vcpu_tb_trans_cb(id, on_translated);
  qemu_plugin_register_vcpu_syscall_cb(id, on_system_call);
  return 0;
}
