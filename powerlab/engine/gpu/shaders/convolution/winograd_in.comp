// Tiles of images, transformed for Winograd convolutions: see winograd_in.glsl.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "winograd_in.glsl"
