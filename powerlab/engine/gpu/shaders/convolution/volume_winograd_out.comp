// Products of Winograd convolutions, transformed back to the planes of volumes: see winograd_out.glsl.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#define VOLUME
#include "winograd_out.glsl"
