// A convolution of bytes, each channel by itself: weights [block][tap], 4 channels a word.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "byte_conv.glsl"

void main() {
  const int i = flat_index(), out_size = p.out_h * p.out_w;
  if (i >= p.images * p.out_blocks * out_size) return;
  const int plane = i / out_size, pixel = i - plane * out_size, block = plane % p.out_blocks;
  const int row = pixel / p.out_w * p.stride_h - p.pad_h, column = pixel % p.out_w * p.stride_w - p.pad_w;
  ivec4 sums = begin[block];
  int w = block * p.kernel_h * p.kernel_w;
  for (int tap_row = 0; tap_row < p.kernel_h; ++tap_row) {
    for (int tap_column = 0; tap_column < p.kernel_w; ++tap_column) {
      const int y = row + tap_row * p.dilation_h, at = column + tap_column * p.dilation_w;
      const bool inside = y >= 0 && y < p.in_h && at >= 0 && at < p.in_w;
      const ivec4 found = bytes_of(x[(plane * p.in_h + (inside ? y : 0)) * p.in_w + (inside ? at : 0)]);
      const int weight = int(weights[w]);
      const ivec4 factors = ivec4(weight << 24, weight << 16, weight << 8, weight) >> 24;
      sums += (inside ? found : ivec4(p.x_zero)) * factors;
      ++w;
    }
  }
  put(i, block, sums);
}
