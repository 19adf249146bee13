// A convolution over volumes through shared memory, whose products and their sums over DEPTH blocks are in 16 bits: see
// tiled.glsl.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#include "common.glsl"
#define S4 f16vec4
#define S4_OF(raw) f16vec4(unpackFloat2x16(raw.x), unpackFloat2x16(raw.y))
#define SHORT_SUMS
#define VOLUME
#include "tiled.glsl"
