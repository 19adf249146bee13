// All kernels of one tier: compiled once per instruction set, with its flags and in its namespace. A new kernel is one
// header under kernels/ and one line here.
#include "kernels/blocked/channel_norm.hpp"
#include "kernels/blocked/group_norm.hpp"
#include "kernels/blocked/interpolate.hpp"
#include "kernels/blocked/move_channels.hpp"
#include "kernels/blocked/normalise.hpp"
#include "kernels/blocked/pad.hpp"
#include "kernels/blocked/pool.hpp"
#include "kernels/blocked/pool_any.hpp"
#include "kernels/blocked/reorder.hpp"
#include "kernels/blocked/resize.hpp"
#include "kernels/convolution/conv_chain.hpp"
#include "kernels/convolution/conv_depthwise.hpp"
#include "kernels/convolution/conv_direct.hpp"
#include "kernels/convolution/conv_grouped.hpp"
#include "kernels/convolution/conv_preactivated.hpp"
#include "kernels/convolution/conv_winograd.hpp"
#include "kernels/convolution/pack_winograd.hpp"
#include "kernels/convolution/space_to_depth.hpp"
#include "kernels/convolution/spread.hpp"
#include "kernels/elementwise.hpp"
#include "kernels/functions.hpp"
#include "kernels/more_functions.hpp"
#include "kernels/narrow/gemv_narrow.hpp"
#include "kernels/peak.hpp"
#include "kernels/products/attention.hpp"
#include "kernels/products/gemv.hpp"
#include "kernels/products/matmul.hpp"
#include "kernels/products/matmul_few.hpp"
#include "kernels/recurrent/lstm.hpp"
#include "kernels/recurrent/recurrence.hpp"
#include "kernels/strided/conv_planes.hpp"
#include "kernels/strided/copy_strided.hpp"
#include "kernels/strided/indexed.hpp"
#include "kernels/strided/norm_strided.hpp"
#include "kernels/strided/normalise_rows.hpp"
#include "kernels/strided/pool_rows.hpp"
#include "kernels/strided/reduce.hpp"
#include "kernels/strided/roi_align.hpp"
#include "kernels/strided/sample_strided.hpp"
#include "kernels/strided/softmax.hpp"
#include "kernels/strided/strided_functions.hpp"
#include "kernels/strided/windows_strided.hpp"
#include "kernels/training/batch_norm.hpp"
#include "kernels/training/conv_weight_gradient.hpp"
#include "kernels/training/gradients.hpp"
#include "kernels/training/gru_cell.hpp"
#include "kernels/training/lrn_gradient.hpp"
#include "kernels/training/lstm_cell.hpp"
#include "kernels/training/pack_kernels.hpp"
#include "kernels/training/update.hpp"

namespace powerlab::engine::POWERLAB_TIER {

#define POWERLAB_CONV_TILE POWERLAB_TEXT(POWERLAB_TILE_BLOCKS) "x" POWERLAB_TEXT(POWERLAB_TILE_PIXELS)

// Of general tensors, whose kernels are named alike by the plan and by themselves.
#define POWERLAB_GENERAL(name, ...) POWERLAB_KERNEL(name, name, __VA_ARGS__)

static const Kernel kKernels[] = {
    POWERLAB_KERNEL("conv_direct", "conv_direct_f32_" POWERLAB_CONV_TILE, conv_direct),
    POWERLAB_KERNEL("conv_preactivated", "conv_preactivated_f32_" POWERLAB_CONV_TILE, conv_preactivated),
    POWERLAB_KERNEL("conv_winograd2", "conv_winograd2_f32_" POWERLAB_CONV_TILE, conv_winograd<2, 3>),
    POWERLAB_KERNEL("conv_winograd4", "conv_winograd4_f32_" POWERLAB_CONV_TILE, conv_winograd<4, 3>),
    POWERLAB_KERNEL("conv_winograd6", "conv_winograd6_f32_" POWERLAB_CONV_TILE, conv_winograd<6, 3>),
    POWERLAB_KERNEL("conv_winograd4x5", "conv_winograd4x5_f32_" POWERLAB_CONV_TILE, conv_winograd<4, 5>),
    POWERLAB_KERNEL("conv_chain", "conv_chain_f32_" POWERLAB_CONV_TILE, conv_chain),
    POWERLAB_KERNEL("conv_depthwise", "conv_depthwise_f32", conv_depthwise),
    POWERLAB_KERNEL("conv_grouped", "conv_grouped_f32", conv_grouped),
    POWERLAB_KERNEL("gemv", "gemv_f32_4x8", gemv),
    POWERLAB_KERNEL("gemv_bf16w", "gemv_bf16w_4x8", gemv_narrow<Bfloat16Weights>),
    POWERLAB_KERNEL("gemv_fp16w", "gemv_fp16w_4x8", gemv_narrow<HalfWeights>),
    POWERLAB_KERNEL("gemv_int8w", "gemv_int8w_4x8", gemv_narrow<ByteWeights>),
    POWERLAB_KERNEL("gemv_int4w", "gemv_int4w_4x8", gemv_narrow<NibbleWeights>),
    POWERLAB_KERNEL("pool_max", "pool_max_f32", pool_max),
    POWERLAB_KERNEL("pool_average", "pool_average_f32", pool_average),
    POWERLAB_KERNEL("pool_global_average", "pool_global_average_f32", pool_global_average),
    POWERLAB_KERNEL("pool_any_max", "pool_any_max_f32", pool_any<MaxOf>),
    POWERLAB_KERNEL("pool_any_average", "pool_any_average_f32", pool_any<SumOf>),
    POWERLAB_KERNEL("pool_any_lp", "pool_any_lp_f32", pool_any<LpOf>),
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
    POWERLAB_KERNEL("fake_quantize", "fake_quantize_f32", function<fake_quantize_of>),
    POWERLAB_KERNEL("abs", "abs_f32", function<abs_of>),
    POWERLAB_KERNEL("acos", "acos_f32", function<acos_of>),
    POWERLAB_KERNEL("acosh", "acosh_f32", function<acosh_of>),
    POWERLAB_KERNEL("asin", "asin_f32", function<asin_of>),
    POWERLAB_KERNEL("asinh", "asinh_f32", function<asinh_of>),
    POWERLAB_KERNEL("atan", "atan_f32", function<atan_of>),
    POWERLAB_KERNEL("atanh", "atanh_f32", function<atanh_of>),
    POWERLAB_KERNEL("ceil", "ceil_f32", function<ceil_of>),
    POWERLAB_KERNEL("celu", "celu_f32", function<celu_of>),
    POWERLAB_KERNEL("cos", "cos_f32", function<cos_of>),
    POWERLAB_KERNEL("cosh", "cosh_f32", function<cosh_of>),
    POWERLAB_KERNEL("floor", "floor_f32", function<floor_of>),
    POWERLAB_KERNEL("gelu_tanh", "gelu_tanh_f32", function<gelu_tanh_of>),
    POWERLAB_KERNEL("log", "log_f32", function<log_of>),
    POWERLAB_KERNEL("mish", "mish_f32", function<mish_of>),
    POWERLAB_KERNEL("neg", "neg_f32", function<neg_of>),
    POWERLAB_KERNEL("reciprocal", "reciprocal_f32", function<reciprocal_of>),
    POWERLAB_KERNEL("round", "round_f32", function<round_of>),
    POWERLAB_KERNEL("selu", "selu_f32", function<selu_of>),
    POWERLAB_KERNEL("shrink", "shrink_f32", function<shrink_of>),
    POWERLAB_KERNEL("sign", "sign_f32", function<sign_of>),
    POWERLAB_KERNEL("sin", "sin_f32", function<sin_of>),
    POWERLAB_KERNEL("sinh", "sinh_f32", function<sinh_of>),
    POWERLAB_KERNEL("softplus", "softplus_f32", function<softplus_of>),
    POWERLAB_KERNEL("softsign", "softsign_f32", function<softsign_of>),
    POWERLAB_KERNEL("sqrt", "sqrt_f32", function<sqrt_of>),
    POWERLAB_KERNEL("swish", "swish_f32", function<swish_of>),
    POWERLAB_KERNEL("tan", "tan_f32", function<tan_of>),
    POWERLAB_KERNEL("thresholded_relu", "thresholded_relu_f32", function<thresholded_relu_of>),
    POWERLAB_KERNEL("lrn", "lrn_f32", lrn),
    POWERLAB_KERNEL("lstm", "lstm_f32", lstm<FloatWeights>),
    POWERLAB_KERNEL("lstm_bf16w", "lstm_bf16w", lstm<Bfloat16Weights>),
    POWERLAB_KERNEL("lstm_fp16w", "lstm_fp16w", lstm<HalfWeights>),
    POWERLAB_KERNEL("recurrence_rnn", "recurrence_rnn_f32", recurrence<RnnCell>),
    POWERLAB_KERNEL("recurrence_gru", "recurrence_gru_f32", recurrence<GruCell>),
    POWERLAB_KERNEL("recurrence_gru_reset", "recurrence_gru_reset_f32", recurrence<GruResetCell>),
    POWERLAB_KERNEL("recurrence_lstm", "recurrence_lstm_f32", recurrence<LstmCell>),
    POWERLAB_KERNEL("softmax", "softmax_f32", softmax),
    POWERLAB_KERNEL("reorder_to_blocks", "reorder_to_blocks_f32", reorder_to_blocks),
    POWERLAB_KERNEL("reorder_to_planes", "reorder_to_planes_f32", reorder_to_planes),
    POWERLAB_KERNEL("channels_to_blocks", "channels_to_blocks_f32", channels_to_blocks),
    POWERLAB_KERNEL("group_norm", "group_norm_f32", group_norm_blocks),
    POWERLAB_KERNEL("instance_norm", "instance_norm_f32", instance_norm),
    POWERLAB_KERNEL("channel_layer_norm", "channel_layer_norm_f32", channel_norm<true>),
    POWERLAB_KERNEL("channel_rms_norm", "channel_rms_norm_f32", channel_norm<false>),
    POWERLAB_KERNEL("move_channels", "move_channels_f32", move_channels),
    POWERLAB_KERNEL("space_to_depth", "space_to_depth_f32", space_to_depth),
    POWERLAB_KERNEL("spread", "spread_f32", spread),
    POWERLAB_KERNEL("frame", "frame_f32", frame),
    POWERLAB_KERNEL("copy", "copy_f32", copy),
    POWERLAB_KERNEL("pad_edge", "pad_edge_u32", pad_image<false>),
    POWERLAB_KERNEL("pad_reflect", "pad_reflect_u32", pad_image<true>),
    POWERLAB_KERNEL("resize_nearest", "resize_nearest_f32", resize_nearest),
    POWERLAB_GENERAL("conv_planes_f32", conv_planes),
    POWERLAB_GENERAL("conv_transpose_strided_f32", conv_transpose_strided),
    POWERLAB_GENERAL("pool_rows_average_f32", pool_rows<false>),
    POWERLAB_GENERAL("pool_rows_max_f32", pool_rows<true>),
    POWERLAB_GENERAL("pool_places_strided_f32", pool_places),
    POWERLAB_GENERAL("max_unpool_strided_f32", max_unpool),
    POWERLAB_GENERAL("roi_align_f32", roi_align),
    POWERLAB_GENERAL("grid_sample_strided_f32", grid_sample),
    POWERLAB_GENERAL("affine_grid_strided_f32", affine_grid),
    POWERLAB_GENERAL("group_norm_strided_f32", group_norm),
    POWERLAB_GENERAL("norm_strided_f32", norm_strided),
    POWERLAB_GENERAL("copy_strided_f32", copy_strided<float>),
    POWERLAB_GENERAL("copy_strided_i64", copy_strided<Int>),
    POWERLAB_GENERAL("add_strided_f32", each<add_f>),
    POWERLAB_GENERAL("sub_strided_f32", each<sub_f>),
    POWERLAB_GENERAL("mul_strided_f32", each<mul_f>),
    POWERLAB_GENERAL("mul_add_strided_f32", each<mul_add_f>),
    POWERLAB_GENERAL("div_strided_f32", each<div_f>),
    POWERLAB_GENERAL("mod_strided_f32", each<mod_f>),
    POWERLAB_GENERAL("min_strided_f32", each<min_f>),
    POWERLAB_GENERAL("max_strided_f32", each<max_f>),
    POWERLAB_GENERAL("pow_strided_f32", each<pow_f>),
    POWERLAB_GENERAL("clip_strided_f32", each<clip_f>),
    POWERLAB_GENERAL("prelu_strided_f32", each<prelu_f>),
    POWERLAB_GENERAL("pow_strided_f32_i64", each<pow_fi>),
    POWERLAB_GENERAL("add_strided_i64", each<add_i>),
    POWERLAB_GENERAL("sub_strided_i64", each<sub_i>),
    POWERLAB_GENERAL("mul_strided_i64", each<mul_i>),
    POWERLAB_GENERAL("div_strided_i64", each<div_i>),
    POWERLAB_GENERAL("mod_strided_i64", each<mod_i>),
    POWERLAB_GENERAL("min_strided_i64", each<min_i>),
    POWERLAB_GENERAL("max_strided_i64", each<max_i>),
    POWERLAB_GENERAL("pow_strided_i64", each<pow_i>),
    POWERLAB_GENERAL("clip_strided_i64", each<clip_i>),
    POWERLAB_GENERAL("prelu_strided_i64", each<prelu_i>),
    POWERLAB_GENERAL("bit_and_strided_i64", each<bit_and_i>),
    POWERLAB_GENERAL("bit_or_strided_i64", each<bit_or_i>),
    POWERLAB_GENERAL("bit_xor_strided_i64", each<bit_xor_i>),
    POWERLAB_GENERAL("bit_not_strided_i64", each<bit_not_i>),
    POWERLAB_GENERAL("shift_left_strided_i64", each<shift_left_i>),
    POWERLAB_GENERAL("shift_right_strided_i64", each<shift_right_i>),
    POWERLAB_GENERAL("neg_strided_i64", each<neg_i>),
    POWERLAB_GENERAL("abs_strided_i64", each<abs_i>),
    POWERLAB_GENERAL("sign_strided_i64", each<sign_i>),
    POWERLAB_GENERAL("equal_strided_f32", each<equal_of<float>>),
    POWERLAB_GENERAL("equal_strided_i64", each<equal_of<Int>>),
    POWERLAB_GENERAL("less_strided_f32", each<less_of<float>>),
    POWERLAB_GENERAL("less_strided_i64", each<less_of<Int>>),
    POWERLAB_GENERAL("less_or_equal_strided_f32", each<less_or_equal_of<float>>),
    POWERLAB_GENERAL("less_or_equal_strided_i64", each<less_or_equal_of<Int>>),
    POWERLAB_GENERAL("is_zero_strided_f32", each<is_zero_of<float>>),
    POWERLAB_GENERAL("is_zero_strided_i64", each<is_zero_of<Int>>),
    POWERLAB_GENERAL("is_not_zero_strided_f32", each<is_not_zero_of<float>>),
    POWERLAB_GENERAL("is_not_zero_strided_i64", each<is_not_zero_of<Int>>),
    POWERLAB_GENERAL("where_strided_f32", each<where_of<float>>),
    POWERLAB_GENERAL("where_strided_i64", each<where_of<Int>>),
    POWERLAB_GENERAL("is_nan_strided_f32", each<is_nan_f>),
    POWERLAB_GENERAL("is_inf_strided_f32", each<is_inf_f>),
    POWERLAB_GENERAL("half_strided_f32", each<half_f>),
    POWERLAB_GENERAL("narrow_strided_f32", each<narrow_f>),
    POWERLAB_GENERAL("quantize_strided_f32", each<quantize_f>),
    POWERLAB_GENERAL("dequantize_strided_i64", each<dequantize_i>),
    POWERLAB_GENERAL("cast_strided_f32_i64", each<cast_fi>),
    POWERLAB_GENERAL("cast_strided_i64_i64", each<cast_ii>),
    POWERLAB_GENERAL("cast_strided_i64_f32", each<cast_if>),
    POWERLAB_KERNEL("interpolate", "interpolate_f32", interpolate),
    POWERLAB_GENERAL("pack_matrix_f32", pack_matrix),
    POWERLAB_KERNEL("matmul_f32", "matmul_f32_" POWERLAB_CONV_TILE, matmul),
    POWERLAB_GENERAL("matmul_few_f32", matmul_few),
    POWERLAB_GENERAL("layer_norm_f32", layer_norm),
    POWERLAB_GENERAL("rms_norm_f32", rms_norm),
    POWERLAB_GENERAL("attention_f32", attention),
    POWERLAB_GENERAL("l2_norm_f32", l2_norm),
    POWERLAB_GENERAL("softmax_rows_f32", softmax_rows),
    POWERLAB_GENERAL("log_softmax_rows_f32", log_softmax_rows),
    POWERLAB_GENERAL("hardmax_rows_f32", hardmax_rows),
    POWERLAB_GENERAL("reduce_sum_f32", reduce<SumF>),
    POWERLAB_GENERAL("reduce_mean_f32", reduce<MeanF>),
    POWERLAB_GENERAL("reduce_log_sum_f32", reduce<LogSumF>),
    POWERLAB_GENERAL("reduce_l1_f32", reduce<L1F>),
    POWERLAB_GENERAL("reduce_l2_f32", reduce<L2F>),
    POWERLAB_GENERAL("reduce_squares_f32", reduce<SquaresF>),
    POWERLAB_GENERAL("reduce_product_f32", reduce<ProductF>),
    POWERLAB_GENERAL("reduce_max_f32", reduce<MaxF>),
    POWERLAB_GENERAL("reduce_min_f32", reduce<MinF>),
    POWERLAB_GENERAL("reduce_sum_i64", reduce<SumI>),
    POWERLAB_GENERAL("reduce_mean_i64", reduce<MeanI>),
    POWERLAB_GENERAL("reduce_l1_i64", reduce<L1I>),
    POWERLAB_GENERAL("reduce_squares_i64", reduce<SquaresI>),
    POWERLAB_GENERAL("reduce_product_i64", reduce<ProductI>),
    POWERLAB_GENERAL("reduce_max_i64", reduce<MaxI>),
    POWERLAB_GENERAL("reduce_min_i64", reduce<MinI>),
    POWERLAB_GENERAL("reduce_log_sum_exp_f32", reduce_log_sum_exp),
    POWERLAB_GENERAL("arg_most_f32", arg_most<float>),
    POWERLAB_GENERAL("running_sum_f32", running_sum<float, double>),
    POWERLAB_GENERAL("top_f32", top<float>),
    POWERLAB_GENERAL("take_f32", take<float>),
    POWERLAB_GENERAL("put_f32", put<float>),
    POWERLAB_GENERAL("arg_most_i64", arg_most<Int>),
    POWERLAB_GENERAL("running_sum_i64", running_sum<Int, Bits>),
    POWERLAB_GENERAL("top_i64", top<Int>),
    POWERLAB_GENERAL("take_i64", take<Int>),
    POWERLAB_GENERAL("put_i64", put<Int>),
    POWERLAB_KERNEL("batch_norm", "batch_norm_f32", batch_norm),
    POWERLAB_KERNEL("batch_norm_gradient", "batch_norm_gradient_f32", batch_norm_gradient),
    POWERLAB_KERNEL("channel_sums", "channel_sums_f32", channel_sums),
    POWERLAB_KERNEL("clamp_gradient", "clamp_gradient_f32", clamp_gradient),
    POWERLAB_KERNEL("conv_weight_gradient", "conv_weight_gradient_f32", conv_weight_gradient<FloatProducts>),
    POWERLAB_KERNEL("conv_depthwise_weight_gradient", "conv_depthwise_weight_gradient_f32",
                    conv_depthwise_weight_gradient),
    POWERLAB_KERNEL("lrn_gradient", "lrn_gradient_f32", lrn_gradient),
    POWERLAB_KERNEL("pool_average_gradient", "pool_average_gradient_f32", pool_average_gradient),
    POWERLAB_KERNEL("pool_global_average_gradient", "pool_global_average_gradient_f32", pool_global_average_gradient),
    POWERLAB_KERNEL("pool_max_gradient", "pool_max_gradient_f32", pool_max_gradient),
    POWERLAB_KERNEL("zero", "zero_f32", zero),
    POWERLAB_GENERAL("pack_kernels_f32", pack_kernels),
    POWERLAB_GENERAL("pack_depthwise_kernels_f32", pack_depthwise_kernels),
    POWERLAB_GENERAL("pack_channels_f32", pack_channels),
    POWERLAB_GENERAL("pack_winograd2_kernels_f32", pack_winograd_kernels<2>),
    POWERLAB_GENERAL("pack_winograd4_kernels_f32", pack_winograd_kernels<4>),
    POWERLAB_GENERAL("gru_cell_f32", gru_cell),
    POWERLAB_GENERAL("gru_cell_gradient_f32", gru_cell_gradient),
    POWERLAB_GENERAL("lstm_cell_f32", lstm_cell),
    POWERLAB_GENERAL("lstm_cell_gradient_f32", lstm_cell_gradient),
    POWERLAB_GENERAL("sgd_update_f32", sgd_update<false>),
    POWERLAB_GENERAL("momentum_update_f32", sgd_update<true>),
    POWERLAB_GENERAL("adam_update_f32", adam_update),
    POWERLAB_KERNEL("peak", "peak_f32_12", peak),
};

// For the kernels on bytes, which are compiled apart.
void finish_tile(const Step& s, const OutTile& tile);
void finish_tile(const Step& s, const OutTile& tile) { finish(s, tile); }

extern const KernelTable kTable;
const KernelTable kTable = {POWERLAB_TEXT(POWERLAB_TIER),
                            kWidth,
                            kTileBlocks,
                            kTilePixels,
                            kTallBlocks,
                            kTallPixels,
                            kLongPixels,
                            kKernels,
                            sizeof(kKernels) / sizeof(kKernels[0]),
                            pack_winograd};

}  // namespace powerlab::engine::POWERLAB_TIER
