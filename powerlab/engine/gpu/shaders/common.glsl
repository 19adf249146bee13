// What all kernels share: the type numbers are stored in (float, or with HALF 16 bits; sums are always in float), and
// how a flat number of invocations is spread over work groups, of which no axis has more than 65535.
#extension GL_EXT_shader_16bit_storage : require

#ifdef HALF
#define T1 float16_t
#define T4 f16vec4
#else
#define T1 float
#define T4 vec4
#endif

layout(local_size_x_id = 0) in;

// Four numbers as they lie in memory, for lanes that hold them before they need them: by no other type may a device that
// only stores 16 bits do so.
#ifdef HALF
#define RAW4 uvec2
vec4 numbers_of(uvec2 raw) { return vec4(unpackHalf2x16(raw.x), unpackHalf2x16(raw.y)); }
#else
#define RAW4 vec4
vec4 numbers_of(vec4 raw) { return raw; }
#endif

int flat_index() {
  return int((gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * gl_WorkGroupSize.x + gl_LocalInvocationID.x);
}
