// All kernels of one tier: compiled once per instruction set, with its flags and in its namespace. A new kernel is one
// header under kernels/ and one line here.
#include "kernels/conv_chain.hpp"
#include "kernels/conv_depthwise.hpp"
#include "kernels/conv_direct.hpp"
#include "kernels/conv_preactivated.hpp"
#include "kernels/conv_winograd.hpp"
#include "kernels/elementwise.hpp"
#include "kernels/functions.hpp"
#include "kernels/gemv.hpp"
#include "kernels/lstm.hpp"
#include "kernels/normalise.hpp"
#include "kernels/peak.hpp"
#include "kernels/pool.hpp"
#include "kernels/reorder.hpp"
#include "kernels/resize.hpp"
#include "kernels/space_to_depth.hpp"

namespace powerlab::engine::POWERLAB_TIER {

#define POWERLAB_CONV_TILE POWERLAB_TEXT(POWERLAB_TILE_BLOCKS) "x" POWERLAB_TEXT(POWERLAB_TILE_PIXELS)

static const Kernel kKernels[] = {
    POWERLAB_KERNEL("conv_direct", "conv_direct_f32_" POWERLAB_CONV_TILE, conv_direct),
    POWERLAB_KERNEL("conv_preactivated", "conv_preactivated_f32_" POWERLAB_CONV_TILE, conv_preactivated),
    POWERLAB_KERNEL("conv_winograd2", "conv_winograd2_f32_" POWERLAB_CONV_TILE, conv_winograd<2, 3>),
    POWERLAB_KERNEL("conv_winograd4", "conv_winograd4_f32_" POWERLAB_CONV_TILE, conv_winograd<4, 3>),
    POWERLAB_KERNEL("conv_winograd6", "conv_winograd6_f32_" POWERLAB_CONV_TILE, conv_winograd<6, 3>),
    POWERLAB_KERNEL("conv_winograd4x5", "conv_winograd4x5_f32_" POWERLAB_CONV_TILE, conv_winograd<4, 5>),
    POWERLAB_KERNEL("conv_chain", "conv_chain_f32_" POWERLAB_CONV_TILE, conv_chain),
    POWERLAB_KERNEL("conv_depthwise", "conv_depthwise_f32", conv_depthwise),
    POWERLAB_KERNEL("gemv", "gemv_f32_4x8", gemv),
    POWERLAB_KERNEL("pool_max", "pool_max_f32", pool_max),
    POWERLAB_KERNEL("pool_average", "pool_average_f32", pool_average),
    POWERLAB_KERNEL("pool_global_average", "pool_global_average_f32", pool_global_average),
    POWERLAB_KERNEL("add", "add_f32", add),
    POWERLAB_KERNEL("clamp", "clamp_f32", clamp_all),
    POWERLAB_KERNEL("scale_shift", "scale_shift_f32", scale_shift),
    POWERLAB_KERNEL("multiply", "multiply_f32", multiply),
    POWERLAB_KERNEL("sigmoid", "sigmoid_f32", function<sigmoid_of>),
    POWERLAB_KERNEL("silu", "silu_f32", function<silu_of>),
    POWERLAB_KERNEL("tanh", "tanh_f32", function<tanh_of>),
    POWERLAB_KERNEL("exp", "exp_f32", function<exp_of>),
    POWERLAB_KERNEL("erf", "erf_f32", function<erf_of>),
    POWERLAB_KERNEL("gelu", "gelu_f32", function<gelu_of>),
    POWERLAB_KERNEL("hard_sigmoid", "hard_sigmoid_f32", function<hard_sigmoid_of>),
    POWERLAB_KERNEL("hard_swish", "hard_swish_f32", function<hard_swish_of>),
    POWERLAB_KERNEL("elu", "elu_f32", function<elu_of>),
    POWERLAB_KERNEL("lrn", "lrn_f32", lrn),
    POWERLAB_KERNEL("lstm", "lstm_f32", lstm),
    POWERLAB_KERNEL("softmax", "softmax_f32", softmax),
    POWERLAB_KERNEL("reorder_to_blocks", "reorder_to_blocks_f32", reorder_to_blocks),
    POWERLAB_KERNEL("reorder_to_planes", "reorder_to_planes_f32", reorder_to_planes),
    POWERLAB_KERNEL("space_to_depth", "space_to_depth_f32", space_to_depth),
    POWERLAB_KERNEL("copy", "copy_f32", copy),
    POWERLAB_KERNEL("resize_nearest", "resize_nearest_f32", resize_nearest),
    POWERLAB_KERNEL("peak", "peak_f32_12", peak),
};

extern const KernelTable kTable;
const KernelTable kTable = {POWERLAB_TEXT(POWERLAB_TIER),          kWidth, kTileBlocks, kTilePixels, kKernels,
                            sizeof(kKernels) / sizeof(kKernels[0])};

}  // namespace powerlab::engine::POWERLAB_TIER
