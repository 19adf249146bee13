// Nothing moves in a step whose loss is no finite number.
bool is_finite(float loss) { return (floatBitsToUint(loss) & 0x7f800000u) != 0x7f800000u; }
