"""Each pass alone on a small graph: what stands before it and what stands after it, node by node."""

from __future__ import annotations

import numpy as np
import pytest
from engine_models import load_bytes, onnx_bytes
from onnx import helper

from powerlab.engine.passes import PASSES

IMAGE = (1, 2, 4, 4)
CONSTANTS = {
    "w": np.ones((2, 2, 3, 3), np.float32),
    "dw": np.ones((2, 1, 3, 3), np.float32),
    "b": np.zeros(2, np.float32),
    "s": np.ones(2, np.float32),
    "two": np.float32(2),
    "scales": np.array([1, 1, 2, 2], np.float32),
    "shape": np.array([1, -1]),
    "whole": np.array(IMAGE),
    "m": np.ones((32, 3), np.float32),
    "q": np.ones((3, 2, 1, 1), np.float32),
    "steps": np.array([2, 4, 4]),
    "inputs": np.ones((1, 8, 4), np.float32),
    "root": np.float32(np.sqrt(2)),
    "one": np.float32(1),
    "half": np.float32(0.5),
    "cube": np.float32(3),
    "true": np.array(True),
    "row": np.ones(4, np.float32),
    "square": np.ones((4, 4), np.float32),
    "image": np.ones(IMAGE, np.float32),
    "grid": np.zeros((1, 2, 3, 2), np.float32),
    "angles": np.ones((1, 4, 2), np.float32),
    "begin": np.array([0, 1]),
    "end": np.array([1, 2]),
    "states": np.ones((1, 8, 2), np.float32),
    "last": np.array(-1),
    "numbers": np.array([1, 16, 2]),
    "blocks": np.array([1, 8, 4]),
    "three": np.array([3, 3]),
    "pair": np.array([2, 2]),
    "byte": np.uint8(128),
    "signed": np.ones((2, 2, 3, 3), np.int8),
    "taps": np.ones((2, 16, 1), np.int8),
    "unsigned": np.ones((2, 2, 3, 3), np.uint8),
    "columns": np.ones((4, 4), np.int8),
    "together": np.array([1, 1, -1]),
    "unit": np.ones(1, np.float32),
    "around": np.array([0, 0, 1, 2, 0, 0, 3, 0]),
}
CONV = "Conv x,w -> c"
GROUP_NORM = ["Reshape x,together -> f", "InstanceNormalization f,unit,unit -> n", "Reshape n,whole -> g"]

SAMPLED = [
    "Reshape x -> x.volume",
    "Reshape grid -> grid.volume",
    "General x.volume,grid.volume,y.numbers -> y.volume",
    "Reshape y.volume -> y",
]

# Name of the pass → nodes of the model, outputs, nodes before the pass, nodes after it.
PICTURES = {
    "expand_quantized": (
        ["QuantizeLinear x,two,byte -> k", "ConvInteger k,unsigned,byte -> y"],
        "y",
        [
            "QuantizeLinear x,two,byte -> k",
            "DequantizeLinear k,y.floats,byte -> y.dequantizelinear",
            "DequantizeLinear unsigned,y.floats_1 -> y.dequantizelinear_1",
            "Conv y.dequantizelinear,y.dequantizelinear_1 -> y.conv",
            "Cast y.conv -> y",
        ],
    ),
    "expand_einsum": (
        ["Einsum x,x -> y"],
        "y",
        [
            "Reshape x,y.ints -> y.reshape",
            "Transpose x -> y.transpose",
            "Reshape y.transpose,y.ints_1 -> y.reshape_1",
            "Reshape y.reshape,y.ints_2 -> y.reshape_2",
            "Reshape y.reshape_1,y.ints_3 -> y.reshape_3",
            "MatMul y.reshape_2,y.reshape_3 -> y.matmul",
            "Reshape y.matmul,y.ints_4 -> y.reshape_4",
            "Reshape y.reshape_4,y.ints_5 -> y",
        ],
    ),
    "expand_attention": (
        ["Attention x,x,x -> y"],
        "y",
        [
            "Mul x,y.floats -> y.mul",
            "Transpose x -> y.transpose",
            "Mul y.transpose,y.floats -> y.mul_1",
            "MatMul y.mul,y.mul_1 -> y.matmul",
            "Softmax y.matmul -> y.softmax",
            "MatMul y.softmax,x -> y",
        ],
    ),
    "expand_rotary": (
        ["RotaryEmbedding x,angles,angles -> y"],
        "y",
        [
            "Reshape angles,y.ints -> y.reshape",
            "Reshape angles,y.ints_1 -> y.reshape_1",
            "Slice x,y.ints_2,y.ints_3,y.ints_4 -> y.slice",
            "Slice x,y.ints_5,y.ints_6,y.ints_7 -> y.slice_1",
            "Mul y.reshape,y.slice -> y.mul",
            "Mul y.reshape_1,y.slice_1 -> y.mul_1",
            "Sub y.mul,y.mul_1 -> y.sub",
            "Mul y.reshape_1,y.slice -> y.mul_2",
            "Mul y.reshape,y.slice_1 -> y.mul_3",
            "Add y.mul_2,y.mul_3 -> y.add",
            "Concat y.sub,y.add -> y",
        ],
    ),
    "expand_training": (
        ["Dropout x,half,true -> y,kept"],
        "y,kept",
        ["Identity kept.kept -> kept", "Mul x,y.floats -> y"],
    ),
    "fold_equal_elements": (
        ["GlobalAveragePool x -> g", "ArgMax g -> i", "GatherElements w,i -> y"],
        "y",
        ["GlobalAveragePool x -> g", "ArgMax g -> i", "Expand y.element,y.shape -> y"],
    ),
    "fold_constants": (["Add two,two -> four", "Mul x,four -> y"], "y", ["Mul x,four -> y"]),
    "see_moves_of_floats": (
        [
            "QuantizeLinear x,two,byte -> k",
            "Transpose k -> t",
            "DequantizeLinear t,two,byte -> y",
        ],
        "y",
        [
            "QuantizeLinear x,two,byte -> k",
            "DequantizeLinear k,two,byte -> k.floats",
            "Transpose k.floats -> t.floats",
            "QuantizeLinear t.floats,two,byte -> t",
            "DequantizeLinear t,two,byte -> y",
        ],
    ),
    "sign_weights": (
        ["DequantizeLinear unsigned,two,byte -> d", "Conv x,d -> y"],
        "y",
        ["DequantizeLinear unsigned.signed,two -> d", "Conv x,d -> y"],
    ),
    "flatten_rows": (
        [
            "QuantizeLinear x,two,byte -> k",
            "DequantizeLinear k,two,byte -> d",
            "DequantizeLinear columns,two -> v",
            "MatMul d,v -> p",
            "Add row,p -> y",
        ],
        "y",
        [
            "Reshape x -> k.exact_rows",
            "QuantizeLinear k.exact_rows,two,byte -> k.rows",
            "DequantizeLinear k.rows,two,byte -> k.rows_back",
            "DequantizeLinear columns,two -> v",
            "MatMul k.rows_back,v -> p.rows",
            "Add row,p.rows -> y.rows",
            "Reshape y.rows -> y",
        ],
    ),
    "see_rows_as_images": (
        [
            "Reshape x,numbers -> n",
            "QuantizeLinear n,two,byte -> k",
            "DequantizeLinear k,two,byte -> d",
            "DequantizeLinear taps,two -> v",
            "Conv d,v -> p",
            "Relu p -> r",
            "Neg r -> y",
        ],
        "y",
        [
            "Reshape x,numbers -> n",
            "Reshape n -> n.image",
            "QuantizeLinear n.image,two,byte -> k.image",
            "DequantizeLinear k.image,two,byte -> d.image",
            "DequantizeLinear taps.image,two -> v.image",
            "Conv d.image,v.image -> p.image",
            "Relu p.image -> r.image",
            "Reshape r.image -> r",
            "Neg r -> y",
        ],
    ),
    "compute_in_bytes": (
        [
            "QuantizeLinear x,two,byte -> k",
            "DequantizeLinear k,two,byte -> d",
            "DequantizeLinear signed,two -> v",
            "Conv d,v -> y",
        ],
        "y",
        ["Quantize x -> k", "QuantConv k,y.bytes,y.begin,y.multipliers, -> y"],
    ),
    "drop_repeated_rounding": (
        [
            "QuantizeLinear x,two,byte -> k",
            "DequantizeLinear k,two,byte -> d",
            "Reshape d,numbers -> r",
            "Concat r,r -> c",
            "QuantizeLinear c,two,byte -> l",
            "DequantizeLinear l,two,byte -> e",
            "Neg e -> y",
        ],
        "y",
        [
            "QuantizeLinear x,two,byte -> k",
            "DequantizeLinear k,two,byte -> d",
            "Reshape d,numbers -> r",
            "Concat r,r -> c",
            "Neg c -> y",
        ],
    ),
    "look_up_functions": (
        [
            "QuantizeLinear x,two,byte -> k",
            "DequantizeLinear k,two,byte -> d",
            "Sigmoid d -> g",
            "Mul d,g -> f",
            "QuantizeLinear f,two,byte -> l",
            "DequantizeLinear l,two,byte -> e",
            "DequantizeLinear signed,two -> v",
            "Conv e,v -> y",
        ],
        "y",
        [
            "Quantize x -> k",
            "QuantLookup k,l.table -> l",
            "QuantConv l,y.bytes,y.begin,y.multipliers, -> y",
        ],
    ),
    "move_pixels_as_bytes": (
        [
            "Relu x -> r",
            "Resize r,,scales -> u",
            "Pad u,around -> p",
            "QuantizeLinear p,two,byte -> k",
            "DequantizeLinear k,two,byte -> d",
            "GlobalAveragePool d -> a",
            "QuantizeLinear a,two,byte -> t",
            "DequantizeLinear t,two,byte -> y",
        ],
        "y",
        [
            "Relu x -> r",
            "Quantize r -> r.bytes",
            "QuantResize r.bytes -> u.bytes",
            "QuantPad u.bytes -> k",
            "QuantPool k -> t",
            "Dequantize t -> y",
        ],
    ),
    "move_bytes": (
        [
            "QuantizeLinear x,two,byte -> k",
            "DequantizeLinear k,two,byte -> d",
            "Slice d,begin,end -> c",
            "QuantizeLinear c,two,byte -> l",
            "DequantizeLinear l,two,byte -> e",
            "Concat e,d -> h",
            "QuantizeLinear h,two,byte -> i",
            "DequantizeLinear i,two,byte -> f",
            "GlobalAveragePool f -> p",
            "QuantizeLinear p,two,byte -> t",
            "DequantizeLinear t,two,byte -> y",
        ],
        "y",
        [
            "Quantize x -> k",
            "QuantSlice k -> c.bytes",
            "QuantConcat c.bytes,k -> h.bytes",
            "QuantPool h.bytes -> t",
            "Dequantize t -> y",
        ],
    ),
    "round_as_floats": (
        [
            "QuantizeLinear x,two,byte -> k",
            "DequantizeLinear k,two,byte -> d",
            "Softmax d -> y",
        ],
        "y",
        ["FakeQuantize x -> d", "Softmax d -> y"],
    ),
    "fold_quantized_constants": (
        ["DequantizeLinear signed,two -> d", "Conv x,d -> y"],
        "y",
        ["Conv x,d -> y"],
    ),
    "drop_expands": (
        ["ReduceL2 x -> n", "Expand n,whole -> e", "Div x,e -> d", "Sum e,d -> y"],
        "y",
        ["ReduceL2 x -> n", "Div x,n -> d", "Sum n,d -> y"],
    ),
    "expand_running_products": (
        ["CumProd x,last -> y"],
        "y",
        [
            "Slice x,y.ints,y.ints_1,y.ints_2 -> y.slice",
            "Slice x,y.ints_3,y.ints_4,y.ints_5 -> y.slice_1",
            "Slice x,y.ints_6,y.ints_7,y.ints_8 -> y.slice_2",
            "Mul y.slice_2,y.slice_1 -> y.mul",
            "Concat y.slice,y.mul -> y.concat",
            "Slice y.concat,y.ints_9,y.ints_10,y.ints_11 -> y.slice_3",
            "Slice y.concat,y.ints_12,y.ints_13,y.ints_14 -> y.slice_4",
            "Slice y.concat,y.ints_15,y.ints_16,y.ints_17 -> y.slice_5",
            "Mul y.slice_5,y.slice_4 -> y.mul_1",
            "Concat y.slice_3,y.mul_1 -> y",
        ],
    ),
    "expand_spectra": (
        ["Reshape x,numbers -> n", "DFT n -> y"],
        "y",
        [
            "Reshape x,numbers -> n",
            "Transpose n -> y.transpose",
            "Reshape y.transpose,y.ints -> y.reshape",
            "MatMul y.reshape,y.floats -> y.matmul",
            "Reshape y.matmul,y.ints_1 -> y.reshape_1",
            "Transpose y.reshape_1 -> y",
        ],
    ),
    "expand_unfolding": (
        ["Reshape x,blocks -> b2", "Col2Im b2,three,pair -> y"],
        "y",
        [
            "Reshape x,blocks -> b2",
            "Reshape b2,y.ints -> y.reshape",
            "ConvTranspose y.reshape,y.floats -> y",
        ],
    ),
    "fuse_layer_norms": (
        [
            *(
                "ReduceMean x -> i",
                "Sub x,i -> d",
                "Mul d,d -> j",
                "ReduceMean j -> v",
                "Add v,half -> e",
                "Sqrt e -> r",
            ),
            *("Div d,r -> n", "Mul n,row -> y"),
        ],
        "y",
        [
            "ReduceMean x -> i",
            "Sub x,i -> d",
            "Mul d,d -> j",
            "ReduceMean j -> v",
            "Add v,half -> e",
            "Sqrt e -> r",
            "RowNorm x,row -> y",
        ],
    ),
    "fuse_l2_norms": (
        ["ReduceL2 x -> n", "Clip n,half -> c", "Div x,c -> y"],
        "y",
        ["ReduceL2 x -> n", "Clip n,half -> c", "RowNorm x -> y"],
    ),
    "fuse_gelus": (
        ["Div x,root -> d", "Erf d -> e", "Add e,one -> a", "Mul x,a -> p", "Mul p,half -> y"],
        "y",
        ["Div x,root -> d", "Erf d -> e", "Add e,one -> a", "Mul x,a -> p", "Gelu x -> y"],
    ),
    "expand_powers": (["Pow x,cube -> y"], "y", ["Mul x,x -> y.mul", "Mul y.mul,x -> y"]),
    "lower_row_norms": (["LayerNormalization x,row -> y"], "y", ["RowNorm x,row -> y"]),
    "put_channels_first": (
        ["ToLast x -> l", "LayerNormalization l,s -> n", "Relu n -> r", "ToFirst r -> y"],
        "y",
        ["ChannelNorm x,s -> n.first", "Relu n.first -> y"],
    ),
    "lower_recurrences": (
        ["Reshape x,steps -> xs", "LSTM xs,inputs,states -> y"],
        "y",
        ["Reshape x,steps -> xs", "FusedLstm xs,inputs,states,,, -> y"],
    ),
    "lower_views": (
        ["Identity x -> i", "Flatten i -> f", "Reshape f,whole -> y"],
        "y",
        ["Reshape x -> i", "Reshape i -> f", "Reshape f -> y"],
    ),
    "lower_activations": (["Relu x -> r", "Softmax r -> y"], "y", ["Clamp x -> r", "Softmax r -> y"]),
    "lower_pools": (
        ["MaxPool x -> p", "GlobalAveragePool p -> y"],
        "y",
        ["MaxPool x -> p", "GlobalAveragePool p -> y"],
    ),
    "lower_resizes": (["Resize x,,scales -> y"], "y", ["Resize x -> y"]),
    "lower_sampling": (["GridSample x,grid -> y"], "y", SAMPLED),
    "lower_norms": (
        ["InstanceNormalization x,s,b -> n", "MeanVarianceNormalization n -> y"],
        "y",
        ["GroupNorm x,s,b -> n", "Norm n -> y"],
    ),
    "lower_functions": (["Sigmoid x -> g", "Mul g,x -> y"], "y", ["Silu x -> y"]),
    "lower_arithmetic": (
        ["Sum x,x,x -> u", "Mul u,two -> y"],
        "y",
        ["Add x,x -> u.part", "Add u.part,x -> u", "ScaleShift u,y.scale,y.shift -> y"],
    ),
    "lower_quantization": (
        ["QuantizeLinear x,two,byte -> k", "DequantizeLinear k,cube,byte -> y"],
        "y",
        ["Elementwise x,k.scale,k.zero_point -> k", "Elementwise k,y.scale,y.zero_point -> y"],
    ),
    "lower_elementwise": (["Max x,two -> y"], "y", ["Elementwise x,two -> y"]),
    "lower_convolutions": ([CONV], "c", ["FusedConv x,w,, -> c"]),
    "lower_matrices": (
        ["Reshape x,shape -> f", "MatMul f,m -> y"],
        "y",
        ["Reshape x -> f", "FusedGemm f,y.weight, -> y"],
    ),
    "lower_reductions": (["ReduceSum x -> y"], "y", ["Reduce x -> y"]),
    "keep_image_pads": (["Pad x,around -> y"], "y", ["ImagePad x -> y"]),
    "lower_moves": (["Slice x,begin,end -> y"], "y", ["Slice x -> y"]),
    "sink_views": (
        ["Identity x -> i", "Flatten x -> f", "Relu i -> r", "Relu f -> z", "Sum r,i -> y"],
        "y,z",
        [
            "Reshape x -> i",
            "Reshape x -> f",
            "Clamp x -> r.inner",
            "Reshape r.inner -> r",
            "Clamp f -> z",
            "Add r.inner,x -> y.inner",
            "Reshape y.inner -> y",
        ],
    ),
    "simplify_views": (
        ["Identity x -> i", "Reshape i,shape -> f", "Reshape f,whole -> g", "Relu g -> y"],
        "y",
        ["Clamp x -> y"],
    ),
    "fuse_group_norms": (
        [*GROUP_NORM, "BatchNormalization g,s,b,b,s -> y"],
        "y",
        ["GroupNorm x,y.scale_1,y.shift_1 -> y"],
    ),
    "fuse_transposes": (["Transpose x -> t", "MatMul x,t -> y"], "y", ["Transpose x -> t", "Product x,x -> y"]),
    "nest_concats": (
        ["Relu x -> r", "Concat x,r -> c", "Concat x,r,x -> d", "Concat x,r,x,c -> e", "Sum d,d -> y"],
        "e,y",
        ["Clamp x -> r", "Concat x,r -> c", "Concat c,x -> d", "Concat d,c -> e", "Add d,d -> y"],
    ),
    "drop_outside_taps": (
        ["GlobalAveragePool x -> g", "Conv g,w -> y"],
        "y",
        ["GlobalAveragePool x -> g", "FusedConv g,w.inside,, -> y"],
    ),
    "pool_first": (
        ["Conv x,q -> c", "Mul c,two -> d", "AveragePool d -> y"],
        "y",
        [
            "AveragePool x -> y.averagepool",
            "FusedConv y.averagepool,q,, -> y.fusedconv",
            "ScaleShift y.fusedconv,d.scale,d.shift -> y",
        ],
    ),
    "fold_rows": (
        ["MatMul x,square -> p", "Add row,p -> y"],
        "y",
        ["Reshape x -> p.rows", "FusedGemm p.rows,p.weight,y.bias -> y.rows", "Reshape y.rows -> y"],
    ),
    "fold_factors": (
        ["Relu x -> r", "Mul r,half -> h", "MatMul x,h -> p", "Mul two,p -> y"],
        "y",
        ["Clamp x -> r", "Product x,r -> y"],
    ),
    "fold_scales": (
        [CONV, "BatchNormalization c,s,b,b,s -> y"],
        "y",
        ["FusedConv x,y.weight,y.bias, -> y"],
    ),
    "fuse_residuals": ([CONV, "Add x,c -> y"], "y", ["FusedConv x,w,,x -> y"]),
    "fuse_clamps": ([CONV, "Relu c -> r", "Relu r -> y"], "y", ["FusedConv x,w,, -> y"]),
    "fuse_norm_clamps": (["InstanceNormalization x,s,b -> n", "Relu n -> y"], "y", ["GroupNorm x,s,b -> y"]),
    "fuse_functions": ([CONV, "Tanh c -> y"], "y", ["FusedConv x,w,, -> y"]),
    "fuse_conversions": (
        [
            "Concat x,x,x -> deep",
            "QuantizeLinear deep,two,byte -> k",
            "DequantizeLinear k,two,byte -> d",
            "MaxPool d -> p",
            "QuantizeLinear p,two,byte -> l",
            "DequantizeLinear l,two,byte -> e",
            "Tanh e -> t",
            "GlobalAveragePool t -> g",
            "Mul t,g -> f",
            "QuantizeLinear f,two,byte -> j",
            "DequantizeLinear j,two,byte -> h",
            "GlobalAveragePool h -> a",
            "QuantizeLinear a,two,byte -> u",
            "DequantizeLinear u,two,byte -> y",
        ],
        "y",
        [
            "Concat x,x,x -> deep",
            "Quantize deep -> k",
            "QuantPool k -> l",
            "Dequantize l -> t",
            "GlobalAveragePool t -> g",
            "Quantize t,g -> j",
            "QuantPool j -> u",
            "Dequantize u -> y",
        ],
    ),
    "fuse_multiply_adds": (["Mul x,row -> p", "Add p,row -> y"], "y", ["Elementwise x,row,row -> y"]),
    "fuse_chains": ([CONV, "Conv c,dw -> d", "Relu d -> y"], "y", ["Chain x,,w,dw -> y"]),
    "drop_dead": (["Relu x -> dead", "Relu x -> y"], "y", ["Clamp x -> y"]),
    "copy_constants": (
        ["GlobalAveragePool image -> g", "Sum x,g -> y"],
        "y",
        ["Expand image -> image.copied", "GlobalAveragePool image.copied -> g", "Elementwise x,g -> y"],
    ),
    "check_lowered": (["Relu x -> y"], "y", ["Clamp x -> y"]),
}
ATTRIBUTES = {
    "AveragePool": {"kernel_shape": [2, 2], "strides": [2, 2]},
    "Concat": {"axis": 1},
    "Conv": {"auto_pad": "SAME_UPPER"},
    "Dropout": {"seed": 1},
    "Einsum": {"equation": "abij,abkj->abik"},
    "MaxPool": {"kernel_shape": [2, 2]},
    "Pad": {"mode": "reflect"},
    "ReduceMean": {"axes": [-1]},
    "Transpose": {"perm": [0, 1, 3, 2]},
}
KEPT = {
    # What another reader or a promised output forbids: the pass must leave the graph as it is.
    "fold_scales": ([CONV, "BatchNormalization c,s,b,b,s -> y", "Relu c -> z"], "y,z"),
    "fold_rows": (["MatMul x,square -> p", "Add row,p -> y"], "y,p"),
    "fold_factors": (["MatMul x,x -> p", "Mul two,p -> y"], "y,p"),
    "nest_concats": (["Concat x,x -> c", "Concat x,x -> d", "Sum c,d -> y"], "y"),
    "pool_first": (["Conv x,q -> c", "AveragePool c -> y"], "y,c"),
    "fuse_group_norms": ([*GROUP_NORM, "Relu g -> y"], "y,n"),
    "fuse_residuals": ([CONV, "Add x,c -> y"], "y,c"),
    "fuse_clamps": ([CONV, "Relu c -> y"], "y,c"),
    "fuse_norm_clamps": (["InstanceNormalization x,s,b -> n", "Relu n -> y"], "y,n"),
    "move_pixels_as_bytes": (
        ["Pad x,around -> p", "QuantizeLinear p,two,byte -> k", "DequantizeLinear k,two,byte -> d", "Sum p,d -> y"],
        "y",
    ),
    "fuse_functions": ([CONV, "Tanh c -> y"], "y,c"),
    "fuse_conversions": (
        [
            "QuantizeLinear x,two,byte -> k",
            "DequantizeLinear k,two,byte -> d",
            "MaxPool d -> p",
            "QuantizeLinear p,two,byte -> l",
            "DequantizeLinear l,two,byte -> e",
            "Tanh e -> t",
            "Sum t,e -> y",
        ],
        "y",
    ),
    "fuse_multiply_adds": (["Mul x,row -> p", "Add p,row -> y"], "y,p"),
    "fuse_chains": ([CONV, "Conv c,dw -> y"], "y,c"),
    "lower_functions": (["Sigmoid x -> g", "Mul g,x -> y"], "y,g"),
}


TURNS = {"ToLast": ("Transpose", {"perm": [0, 2, 3, 1]}), "ToFirst": ("Transpose", {"perm": [0, 3, 1, 2]})}


def loaded(lines, outputs):
    nodes = []
    for line in lines:
        operator, inputs, _, output = line.split(" ")
        operator, order = TURNS.get(operator, (operator, {}))
        attributes = {**order} or {**ATTRIBUTES.get(operator, {}), **({"group": 2} if "dw" in inputs else {})}
        nodes.append(helper.make_node(operator, inputs.split(","), output.split(","), output, **attributes))
    return load_bytes(onnx_bytes(nodes, {"x": IMAGE}, outputs.split(","), constants=CONSTANTS))


def picture(graph):
    return [f"{node.op_type} {','.join(node.inputs)} -> {','.join(node.outputs)}" for node in graph.nodes]


def until(graph, name):
    """Return the graph after the passes before ``name``, and that pass."""
    for rewrite in PASSES:
        if rewrite.__name__ == name:
            return graph, rewrite
        graph = rewrite(graph)
    raise AssertionError(name)


def test_every_pass_has_its_picture():
    assert list(PICTURES) == [rewrite.__name__ for rewrite in PASSES]


@pytest.mark.parametrize("name", PICTURES)
def test_a_pass_makes_what_its_picture_shows(name):
    lines, outputs, after = PICTURES[name]
    graph, rewrite = until(loaded(lines, outputs), name)
    done = rewrite(graph)
    assert picture(done) == after
    assert done.outputs == graph.outputs
    assert picture(rewrite(done)) == after


@pytest.mark.parametrize("name", KEPT)
def test_a_fusion_leaves_alone_what_others_still_read(name):
    graph, rewrite = until(loaded(*KEPT[name]), name)
    assert picture(rewrite(graph)) == picture(graph)


def test_the_batch_norm_is_in_the_weights_channel_by_channel():
    scale, shift = np.array([2, -3], np.float32), np.array([5, 7], np.float32)
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"]),
        helper.make_node("BatchNormalization", ["c", "g", "h", "mean", "variance"], ["y"], epsilon=0.0),
    ]
    constants = {
        "w": np.arange(2 * 2 * 9, dtype=np.float32).reshape(2, 2, 3, 3),
        "b": np.array([1, -1], np.float32),
        "g": scale,
        "h": shift,
        "mean": np.array([0.5, 0.25], np.float32),
        "variance": np.array([4, 16], np.float32),
    }
    graph, rewrite = until(load_bytes(onnx_bytes(nodes, {"x": IMAGE}, constants=constants)), "fold_scales")
    (conv,) = rewrite(graph).nodes
    folded = rewrite(graph).constants
    factor = scale / np.sqrt(constants["variance"])
    np.testing.assert_allclose(folded[conv.inputs[1]], constants["w"] * factor[:, None, None, None], rtol=1e-6)
    np.testing.assert_allclose(folded[conv.inputs[2]], (constants["b"] - constants["mean"]) * factor + shift, rtol=1e-6)


@pytest.mark.parametrize(("pads", "shift", "folds"), [(0, 7, True), (1, 0, True), (1, 7, False)])
def test_a_batch_norm_goes_into_the_convolution_behind_it_unless_it_shifts_padding(pads, shift, folds):
    nodes = [
        helper.make_node("BatchNormalization", ["x", "g", "h", "zero", "one"], ["n"], epsilon=0.0),
        helper.make_node("Conv", ["n", "w", "b"], ["y"], pads=[pads] * 4, group=2),
    ]
    constants = {
        "w": np.arange(4 * 9, dtype=np.float32).reshape(4, 1, 3, 3),
        "b": np.arange(4, dtype=np.float32),
        "g": np.array([2, -3], np.float32),
        "h": np.array([shift, 2 * shift], np.float32),
        "zero": np.zeros(2, np.float32),
        "one": np.ones(2, np.float32),
    }
    graph, rewrite = until(load_bytes(onnx_bytes(nodes, {"x": IMAGE}, constants=constants)), "fold_scales")
    done = rewrite(graph)
    assert (len(done.nodes) == 1) == folds
    if folds:
        weights, bias = (done.constants[name] for name in done.nodes[0].inputs[1:3])
        factor, added = (np.repeat(constants[name], 2) for name in "gh")
        np.testing.assert_allclose(weights, constants["w"] * factor[:, None, None, None], rtol=1e-6)
        np.testing.assert_allclose(bias, constants["b"] + constants["w"].sum(axis=(1, 2, 3)) * added, rtol=1e-6)
