// Puts blocks into what a run returns.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#define TO float
#include "unpack.glsl"
