// All kernels on bytes for one instruction set: compiled once for each, with its flags and in its namespace, beside the
// tier whose vectors it has. A new kernel is a function in a header under kernels/bytes/ and one line here.
#include "kernels/bytes/conv_bytes.hpp"
#include "kernels/bytes/conv_pool_bytes.hpp"
#include "kernels/bytes/convert_bytes.hpp"
#include "kernels/bytes/depthwise_bytes.hpp"
#include "kernels/bytes/depthwise_neighbours.hpp"
#include "kernels/bytes/lookup_bytes.hpp"
#include "kernels/bytes/matmul_bytes.hpp"
#include "kernels/bytes/move_channels_bytes.hpp"
#include "kernels/bytes/pool_bytes.hpp"

namespace powerlab::engine::POWERLAB_TIER {

#define POWERLAB_NARROW_TILE POWERLAB_TEXT(POWERLAB_NARROW_BLOCKS) "x" POWERLAB_TEXT(POWERLAB_NARROW_PIXELS)
#define POWERLAB_BYTE_TILE POWERLAB_TEXT(POWERLAB_TILE_BLOCKS) "x" POWERLAB_TEXT(POWERLAB_TILE_PIXELS)

static const Kernel kByteKernels[] = {
    POWERLAB_KERNEL("conv_direct_u8", "conv_direct_u8_" POWERLAB_BYTE_TILE, conv_bytes<false>),
    POWERLAB_KERNEL("conv_direct_u8_f32", "conv_direct_u8_f32_" POWERLAB_BYTE_TILE, conv_bytes<true>),
    POWERLAB_KERNEL("conv_pool_u8", "conv_pool_u8_" POWERLAB_BYTE_TILE, conv_pool_bytes<>),
#if defined(POWERLAB_NARROW)
    POWERLAB_KERNEL("conv_direct_u8_narrow2", "conv_direct_u8_narrow2_" POWERLAB_NARROW_TILE, conv_bytes<false, 2>),
    POWERLAB_KERNEL("conv_direct_u8_f32_narrow2", "conv_direct_u8_f32_narrow2_" POWERLAB_NARROW_TILE,
                    conv_bytes<true, 2>),
    POWERLAB_KERNEL("conv_pool_u8_narrow2", "conv_pool_u8_narrow2_" POWERLAB_NARROW_TILE, conv_pool_bytes<2>),
    POWERLAB_KERNEL("conv_pool_u8_narrow4", "conv_pool_u8_narrow4_" POWERLAB_NARROW_TILE, conv_pool_bytes<4>),
    POWERLAB_KERNEL("conv_direct_u8_narrow4", "conv_direct_u8_narrow4_" POWERLAB_NARROW_TILE, conv_bytes<false, 4>),
    POWERLAB_KERNEL("conv_direct_u8_f32_narrow4", "conv_direct_u8_f32_narrow4_" POWERLAB_NARROW_TILE,
                    conv_bytes<true, 4>),
#endif
    POWERLAB_KERNEL("conv_depthwise_u8", "conv_depthwise_u8", depthwise_bytes),
#if POWERLAB_NEIGHBOURS > 0
    POWERLAB_KERNEL("conv_depthwise_u8_neighbours", "conv_depthwise_u8_neighbours", depthwise_neighbours),
#endif
    POWERLAB_KERNEL("pool_max_u8", "pool_max_u8", pool_max_bytes),
    POWERLAB_KERNEL("pool_average_u8", "pool_average_u8", pool_average_bytes),
    POWERLAB_KERNEL("pool_global_average_u8", "pool_global_average_u8", pool_global_average_bytes),
    POWERLAB_KERNEL("add_u8", "add_u8", add_bytes),
    POWERLAB_KERNEL("scale_shift_u8", "scale_shift_u8", scale_shift_bytes),
    POWERLAB_KERNEL("lookup_u8", "lookup_u8", lookup_bytes),
    POWERLAB_KERNEL("move_channels_u8", "move_channels_u8", move_channels_bytes),
    POWERLAB_KERNEL("quantize_blocks", "quantize_blocks_u8", quantize_blocks),
    POWERLAB_KERNEL("matmul_u8", "matmul_u8_" POWERLAB_BYTE_TILE, matmul_bytes),
    POWERLAB_KERNEL("pack_matrix_s8", "pack_matrix_s8", pack_matrix_bytes),
    POWERLAB_KERNEL("quantize_matrix", "quantize_matrix_u8", quantize_matrix),
    POWERLAB_KERNEL("resize_nearest_u8", "resize_nearest_u8", resize_nearest_bytes),
    POWERLAB_KERNEL("quantize_rows", "quantize_rows_u8", quantize_rows),
    POWERLAB_KERNEL("quantize_planes", "quantize_planes_u8", quantize_planes),
    POWERLAB_KERNEL("dequantize_blocks", "dequantize_blocks_u8", dequantize_blocks),
};

extern const ByteTable kByteTable;
const ByteTable kByteTable = {POWERLAB_TEXT(POWERLAB_TIER),
                              POWERLAB_TEXT(POWERLAB_BASE_TIER),
                              POWERLAB_BYTE_FORM,
                              kByteTileBlocks<1>,
                              kByteTilePixels<1>,
                              kByteTileBlocks<2>,
                              kByteTilePixels<2>,
                              POWERLAB_NEIGHBOURS,
                              kByteKernels,
                              sizeof(kByteKernels) / sizeof(kByteKernels[0])};

}  // namespace powerlab::engine::POWERLAB_TIER
