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

int flat_index() {
  return int((gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * gl_WorkGroupSize.x + gl_LocalInvocationID.x);
}
