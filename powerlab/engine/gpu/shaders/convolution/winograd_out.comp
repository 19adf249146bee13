// Products of Winograd convolutions, transformed back to images: see winograd_out.glsl.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "winograd_out.glsl"
