// A convolution of bytes over volumes by the units for products of matrices: see quant_matrix.glsl.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_shader_explicit_arithmetic_types_int8 : require
#include "common.glsl"
#define VOLUME
#include "quant_matrix.glsl"
