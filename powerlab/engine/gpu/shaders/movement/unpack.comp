// Puts blocks into rows of the network.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#define TO T1
#include "unpack.glsl"
