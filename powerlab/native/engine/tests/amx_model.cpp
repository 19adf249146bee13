// AMX's convolutions and products of bytes on a model of its tiles, so that every processor of the family checks it,
// bit for bit: which bytes go into which tile, and that no instruction would fault.
#include "tests/test.hpp"

#if defined(__x86_64__)
#define POWERLAB_TIER amx_model
#define POWERLAB_BASE_TIER amx_model
#define POWERLAB_VECTOR_WIDTH 16
#define POWERLAB_TILE_BLOCKS 4
#define POWERLAB_TILE_PIXELS 16
#define POWERLAB_AMX_MODEL
#include <cstdio>

#include "kernels/bytes/conv_bytes.hpp"
#include "kernels/bytes/conv_pool_bytes.hpp"
#include "kernels/bytes/matmul_bytes.hpp"
#include "kernels/epilogue.hpp"

namespace powerlab::engine::amx_model {

void finish_tile(const Step& s, const OutTile& tile) { finish(s, tile); }

const Kernel kModelKernels[] = {
    POWERLAB_KERNEL("conv_direct_u8", "conv_direct_u8", conv_bytes<false>),
    POWERLAB_KERNEL("conv_direct_u8_f32", "conv_direct_u8_f32", conv_bytes<true>),
    POWERLAB_KERNEL("conv_pool_u8", "conv_pool_u8", conv_pool_bytes<>),
    POWERLAB_KERNEL("matmul_u8", "matmul_u8", matmul_bytes),
    POWERLAB_KERNEL("pack_matrix_s8", "pack_matrix_s8", pack_matrix_bytes),
    POWERLAB_KERNEL("quantize_matrix", "quantize_matrix_u8", quantize_matrix),
};
const KernelTable kModelTier = {"amx_model", kWidth, 1, 1, 0, 0, 1, nullptr, 0, nullptr};
const ByteTable kModelBytes = {"amx_model",        "amx_model",
                               POWERLAB_BYTE_FORM, kByteTileBlocks<1>,
                               kByteTilePixels<1>, kByteTileBlocks<2>,
                               kByteTilePixels<2>, 0,
                               kModelKernels,      sizeof(kModelKernels) / sizeof(Kernel)};

}  // namespace powerlab::engine::amx_model

namespace powerlab::engine::test {

void check_amx_model(Report& report) {
  const int before = report.checked();
  check_byte_convolutions(amx_model::kModelTier, amx_model::kModelBytes, report);
  check_byte_products(amx_model::kModelBytes, amx_model::kModelTier.vector_width, report);
  std::printf("amx_model: %d checks\n", report.checked() - before);
}

}  // namespace powerlab::engine::test

#else

namespace powerlab::engine::test {

void check_amx_model(Report&) {}

}  // namespace powerlab::engine::test

#endif
