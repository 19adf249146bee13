// Which microarchitecture level (x86-64 psABI, section 3.1.1) this processor and its operating system support.
#pragma once

namespace powerlab::engine {

// 1 to 4: x86-64, x86-64-v2, x86-64-v3, x86-64-v4.
int x86_level();

// Dot products of bytes in vectors of 64 bytes (beside level 4), and of 32 bytes (beside level 3).
bool has_avx512_vnni();
bool has_avx_vnni();

// Bytes picked from 128 others, in vectors of 64 bytes, beside level 4.
bool has_avx512_vbmi();

// Dot products of bfloat16, and arithmetic in float16, in vectors of 64 bytes, beside level 4.
bool has_avx512_bf16();
bool has_avx512_fp16();

// Tiles of bytes and of bfloat16, beside level 4, after asking Linux for them: it saves their registers for those alone
// who did. POWERLAB_AMX=off hides them, so that what they bring can be measured.
bool has_amx_int8();
bool has_amx_bf16();

}  // namespace powerlab::engine
