// How a convolution moves over images in blocks, rows before columns, and the blocks of one of its groups.
#define WINDOW_NUMBERS                                                                                               \
  int images, in_h, in_w, out_h, out_w, kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w, \
      groups, in_blocks, out_blocks
