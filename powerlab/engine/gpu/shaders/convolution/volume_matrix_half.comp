// A convolution over volumes by the units for products of matrices, pixels and weights by way of shared memory: see
// matrix.glsl.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#include "common.glsl"
#define VOLUME
#include "matrix.glsl"
