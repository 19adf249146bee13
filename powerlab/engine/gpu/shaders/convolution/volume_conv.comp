// A convolution over volumes through the caches: see conv.glsl.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#define VOLUME
#include "conv.glsl"
