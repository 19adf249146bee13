// A convolution of bytes over volumes, whose products are made one by one: see quant_tiled.glsl.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "dot_one_by_one.glsl"
#define VOLUME
#include "quant_tiled.glsl"
