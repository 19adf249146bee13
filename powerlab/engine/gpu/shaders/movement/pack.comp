// Puts rows of the network into blocks.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#define FROM T1
#include "pack.glsl"
