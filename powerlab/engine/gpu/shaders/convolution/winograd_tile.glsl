// Which tile of Winograd's a lane has, of TILE x TILE pixels and SIDE x SIDE positions: [position][block][tile], with VOLUME
// [n][position][block][plane][tile].

const int SIDE = TILE + 2;

// Where a lane has a tile, its block of channels, and which it is within its plane of pixels; PLANE is that plane, counted
// over all blocks of all images or volumes, and PLACE(s) where position s of the tile lies.
#ifdef VOLUME
#define FIND_WINOGRAD_TILE                                                                                          \
  const int i = flat_index(), of_plane = p.tiles_h * p.tiles_w, of_volume = p.blocks * p.planes * of_plane;         \
  if (i >= p.images * of_volume) return;                                                                            \
  const int plane = i / of_plane, within = i - plane * of_plane, block = plane / p.planes % p.blocks;               \
  const int first = i + i / of_volume * (SIDE * SIDE - 1) * of_volume;
#define PLANE plane
#define PLACE(s) first + s * of_volume
#else
#define FIND_WINOGRAD_TILE                                                                                          \
  const int i = flat_index(), of_image = p.tiles_h * p.tiles_w, tiles = p.images * of_image;                        \
  if (i >= p.blocks * tiles) return;                                                                                \
  const int block = i / tiles, tile = i - block * tiles, image = tile / of_image, within = tile - image * of_image;
#define PLANE (image * p.blocks + block)
#define PLACE(s) (s * p.blocks + block) * tiles + tile
#endif
