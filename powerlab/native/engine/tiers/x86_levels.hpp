// Which microarchitecture level (x86-64 psABI, section 3.1.1) this processor and its operating system support.
#pragma once

namespace powerlab::engine {

// 1 to 4: x86-64, x86-64-v2, x86-64-v3, x86-64-v4.
int x86_level();

}  // namespace powerlab::engine
