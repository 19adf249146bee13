// A convolution over volumes through shared memory, sums of products in 32 bits: see tiled.glsl.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#define S4 vec4
#define S4_OF(raw) numbers_of(raw)
#define VOLUME
#include "tiled.glsl"
