// A convolution over volumes by the units for products of matrices, pixels by way of shared memory and weights straight
// from where they lie: see matrix.glsl.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#include "common.glsl"
#define DIRECT_FACTORS
#define VOLUME
#include "matrix.glsl"
