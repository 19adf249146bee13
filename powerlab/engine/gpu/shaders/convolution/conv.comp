// A convolution through the caches: see conv.glsl.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "conv.glsl"
