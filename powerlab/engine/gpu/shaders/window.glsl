// How a convolution moves over images in blocks, rows before columns, and the blocks of one of its groups; with VOLUME
// planes come before rows. Sizes and taps are products without brackets, for other factors before them.
#ifdef VOLUME
#define WINDOW_NUMBERS                                                                                               \
  int images, in_h, in_w, out_h, out_w, kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w, \
      in_d, out_d, kernel_d, stride_d, pad_d, dilation_d, groups, in_blocks, out_blocks
#define IN_SIZE p.in_d * p.in_h * p.in_w
#define OUT_SIZE p.out_d * p.out_h * p.out_w
#define TAPS p.kernel_d * p.kernel_h * p.kernel_w
#define LINE(plane, row) (plane * p.in_h + row)
#else
#define WINDOW_NUMBERS                                                                                               \
  int images, in_h, in_w, out_h, out_w, kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w, \
      groups, in_blocks, out_blocks
#define IN_SIZE p.in_h * p.in_w
#define OUT_SIZE p.out_h * p.out_w
#define TAPS p.kernel_h * p.kernel_w
#define LINE(plane, row) row
#endif
