// A convolution of bytes by the instruction that multiplies and sums four: see quant_conv.glsl.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "dot_at_once.glsl"
#include "quant_conv.glsl"
