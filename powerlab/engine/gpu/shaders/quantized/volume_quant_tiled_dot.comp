// A convolution of bytes over volumes by the instruction that multiplies and sums four: see quant_tiled.glsl.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "dot_at_once.glsl"
#define VOLUME
#include "quant_tiled.glsl"
