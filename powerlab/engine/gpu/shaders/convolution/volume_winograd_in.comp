// Tiles of the planes of volumes, transformed for Winograd convolutions: see winograd_in.glsl.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#define VOLUME
#include "winograd_in.glsl"
