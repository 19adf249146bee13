// How most kernels end: what is below 0 is multiplied by a slope, all is clamped, and a function of one number follows.
// What is no number stays so, where min and max may take their other operand.
// FUNCTION is its place in FUNCTIONS of activations.py. The specification lets exp and its relatives overflow early, so
// nothing here asks them for more than 88.

layout(constant_id = 1) const int FUNCTION = 0;

#define FINISH_NUMBERS float low, high, slope, alpha, beta

vec4 exp_of(vec4 x) { return mix(exp(min(x, vec4(88.0))), vec4(1.0 / 0.0), greaterThan(x, vec4(88.7))); }
vec4 sigmoid(vec4 x) { return 1.0 / (1.0 + exp(clamp(-x, -88.0, 88.0))); }
vec4 tanh_of(vec4 x) {
  const vec4 small = x * (1.0 - x * x * (1.0 / 3.0 - x * x * (2.0 / 15.0)));
  const vec4 e = exp(2.0 * clamp(x, -15.0, 15.0));
  return mix((e - 1.0) / (e + 1.0), small, lessThan(abs(x), vec4(0.1)));
}
vec4 expm1_of(vec4 x) {
  const vec4 series = x * (1.0 + x * (0.5 + x * (1.0 / 6.0 + x * (1.0 / 24.0 + x * (1.0 / 120.0)))));
  return mix(exp(min(x, vec4(88.0))) - 1.0, series, lessThan(abs(x), vec4(0.25)));
}
vec4 softplus(vec4 x) { return max(x, vec4(0)) + log(1.0 + exp(-min(abs(x), vec4(88.0)))); }

// Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.5 near 0 and 7.1.26 beyond.
vec4 erf_of(vec4 x) {
  const vec4 a = min(abs(x), vec4(10.0)), q = a * a;
  const vec4 near =
      1.12837917 * x * (1.0 + q * (-1.0 / 3 + q * (0.1 + q * (-1.0 / 42 + q * (1.0 / 216 - q * (1.0 / 1320))))));
  const vec4 t = 1.0 / (1.0 + 0.3275911 * a);
  const vec4 sum =
      t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
  return mix(sign(x) * (1.0 - sum * exp(-q)), near, lessThan(a, vec4(0.5)));
}

// The specification promises sin and cos within [-pi, pi] alone, and 3 digits there. So the nearest multiple of pi is
// taken off in three parts, the first of which is exact (W. J. Cody and W. Waite, Software Manual for the Elementary
// Functions, 1980), and what is left is summed by the series of SLEEF (N. Shibata and F. Petrogalli, 2020). Beyond 1e4,
// where neighbouring floats are 1e-3 apart, the device's own do. TURN is 0 for the sine and 0.5 for the cosine.
vec4 wave(vec4 x, float turn) {
  const vec4 k = roundEven(x * 0.318309886 - turn), q = k + turn;
  precise vec4 d = x - q * 3.140625;
  d = d - q * 9.67502594e-4;
  d = d - q * 1.50995799e-7;
  const vec4 s = d * d, odd = k - 2.0 * floor(0.5 * k);
  const vec4 series = d + d * s * (-0.166666597 + s * (0.00833307859 + s * (-0.000198106907 + s * 2.60831598e-6)));
  return (1.0 - 2.0 * odd) * (1.0 - 4.0 * turn) * series;
}
vec4 sin_of(vec4 x) { return mix(sin(x), wave(x, 0.0), lessThan(abs(x), vec4(1e4))); }
vec4 cos_of(vec4 x) { return mix(cos(x), wave(x, 0.5), lessThan(abs(x), vec4(1e4))); }

vec4 function_of(vec4 x, float alpha, float beta) {
  switch (FUNCTION) {
    case 1: return abs(x);
    case 2: return ceil(x);
    case 3: return max(x, vec4(0)) + min(vec4(0), alpha * expm1_of(x / alpha));  // celu
    case 4: return cos_of(x);
    case 5: return mix(x, alpha * expm1_of(x), lessThan(x, vec4(0)));  // elu
    case 6: return erf_of(x);
    case 7: return exp_of(x);
    case 8: return floor(x);
    case 9: return clamp(alpha * x + beta, 0.0, 1.0);           // hard sigmoid
    case 10: return x * clamp(x / 6.0 + 0.5, 0.0, 1.0);         // hard swish
    case 11: return log(x);
    case 12: return x * tanh_of(softplus(x));                   // mish
    case 13: return -x;
    case 14: return 1.0 / x;
    case 15: return roundEven(x);
    case 16: return mix(beta * alpha * expm1_of(x), beta * x, greaterThan(x, vec4(0)));  // selu
    case 17: return sigmoid(x);
    case 18: return sign(x);
    case 19: return sin_of(x);
    case 20: return softplus(x);
    case 21: return x / (1.0 + abs(x));                         // softsign
    case 22: return sqrt(x);
    case 23: return x * sigmoid(alpha * x);                     // swish
    case 24: return tanh_of(x);
    case 25: return mix(vec4(0), x, greaterThan(x, vec4(alpha)));  // thresholded relu
    case 26: return 0.5 * x * (1.0 + erf_of(x * 0.70710678));   // gelu
    case 27: return 0.5 * x * (1.0 + tanh_of(0.79788456 * (x + 0.044715 * x * x * x)));  // gelu by tanh
    case 28: return x * sigmoid(x);                             // silu
  }
  return x;
}

vec4 finish(vec4 v, float low, float high, float slope, float alpha, float beta) {
  const vec4 sloped = mix(v, v * slope, lessThan(v, vec4(0)));
  const vec4 made = function_of(min(max(sloped, vec4(low)), vec4(high)), alpha, beta);
  const bvec4 nothing = greaterThan(floatBitsToUint(v) & 0x7fffffffu, uvec4(0x7f800000u));
  return mix(made, v, nothing);
}
