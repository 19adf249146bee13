// Puts what a run brings along into blocks.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#define FROM float
#include "pack.glsl"
