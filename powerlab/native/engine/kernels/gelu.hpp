// x times a share below x that is near 0 far below 0 and near 1 far above it, as both forms of GELU are: max(x, 0) less
// |x| times the share beyond |x|. AVX-512 takes that share from piecewise polynomials, whose coefficients are looked up
// by a permutation of a register, in three fifths of the time of one formula for all x.
#pragma once

#include "kernels/vec.hpp"

#if defined(__AVX512DQ__)
namespace powerlab::engine::POWERLAB_TIER {

// The share beyond sizes up to kFarthest as a polynomial of degree 4 in size - kMiddle, highest powers first. Around 0
// it would lose digits where the size is about 3: its terms are large there, and cancel.
constexpr float kFarthest = 5.6f, kMiddle = 1.5f;
typedef float ShareTerms[5][16];

// Which of them: the lowest bits of 1.6 size + kPieces. Sums below 2^23 are rounded to halves, others to whole numbers:
// 13 pieces are 0.3125 long (the first half of it), and the last 3, where the share bends less, 0.625.
constexpr float kPieceScale = 1.6f, kPieces = 8388608.0f - 6.5f;

// Fitted for the smallest largest error of the product: 7e-8, and of small x 2e-7 of it. Far below 0 it is 2e-10.
alignas(64) constexpr ShareTerms kNormalShare = {
    {0.000189194863f, 2.6948368e-05f, 7.67196252e-06f, -0.00429268647f, -0.0145782512f, -0.0222068727f, -0.0211584736f,
     -0.013591731f, -0.00427407585f, 0.00273293257f, 0.00589038897f, 0.00590888225f, 0.00439059874f, 0.002665604f,
     0.00137450593f, 0.000613994082f},
    {-0.00221000286f, -0.000369708723f, -0.000119390497f, 0.0414051265f, -0.0123327849f, -0.0444622897f, -0.0423213243f,
     -0.0305334888f, -0.0270367041f, -0.0328392424f, -0.0391739793f, -0.0389928743f, -0.0318876281f, -0.0217722803f,
     -0.0126262829f, -0.00630403543f},
    {0.00974815991f, 0.00190829707f, 0.000696618692f, 0.244229198f, 0.138780683f, 0.0878491327f, 0.0892520547f,
     0.0963507593f, 0.0971197039f, 0.0991255194f, 0.103971004f, 0.10343603f, 0.0909241438f, 0.0686289966f,
     0.0442946777f, 0.0245632492f},
    {-0.0192619078f, -0.00439413683f, -0.00180645683f, -0.00368939689f, -0.0958004221f, -0.131807745f, -0.131556749f,
     -0.129599258f, -0.129516989f, -0.129853442f, -0.131530002f, -0.131057143f, -0.121232338f, -0.0993416235f,
     -0.070520252f, -0.0431197211f},
    {0.014401312f, 0.00381045206f, 0.00175691198f, 0.106424235f, 0.0762022659f, 0.0666252598f, 0.0665960908f,
     0.0668040514f, 0.0668072328f, 0.066829592f, 0.0670510456f, 0.066914767f, 0.0640124902f, 0.0559339225f,
     0.0431125946f, 0.0288272481f},
};

// Of 1 / (1 + exp(2 sqrt(2 / pi) (x + 0.044715 x^3))): as precise, and 3e-9 far below 0.
alignas(64) constexpr ShareTerms kTanhShare = {
    {0.000180456511f, 1.88628128e-05f, 6.66983055e-07f, -0.00438999431f, -0.0148761142f, -0.0224851184f, -0.0210840516f,
     -0.013214686f, -0.00400149915f, 0.00265151123f, 0.00561278453f, 0.00572120771f, 0.00439065741f, 0.00276118121f,
     0.00145348313f, 0.000640734739f},
    {-0.00208322937f, -0.000255441118f, -1.05584622e-05f, 0.0411655158f, -0.0136262495f, -0.0457150489f, -0.0425853357f,
     -0.0302776527f, -0.02677528f, -0.032262668f, -0.0382104106f, -0.0383561738f, -0.0321173891f, -0.0225498695f,
     -0.013277499f, -0.00651787128f},
    {0.00906371698f, 0.00129951548f, 6.27185e-05f, 0.244463593f, 0.136935383f, 0.0860059336f, 0.0884579048f,
     0.0958988443f, 0.0966717601f, 0.0985623226f, 0.103117563f, 0.103028297f, 0.0920214429f, 0.0709067062f,
     0.0462127142f, 0.0251064468f},
    {-0.0176248979f, -0.00294420589f, -0.000165700156f, -0.00268246955f, -0.096620284f, -0.132667288f, -0.13191703f,
     -0.12985757f, -0.129774809f, -0.13009122f, -0.131669536f, -0.13146691f, -0.122808136f, -0.102050006f,
     -0.0727748796f, -0.0434515364f},
    {0.0129329516f, 0.00250714202f, 0.000164299548f, 0.107091166f, 0.0762665495f, 0.0666688457f, 0.0667295828f,
     0.0669491068f, 0.0669523105f, 0.0669733137f, 0.0671820939f, 0.0671072826f, 0.0645449758f, 0.0568747185f,
     0.0438392237f, 0.0285443347f},
};

static inline Vec times_share_below(Vec x, const ShareTerms& terms) {
  // The smaller of |x| and the farthest in one instruction, which returns the farthest for not-a-number.
  const Vec size = _mm512_maskz_range_ps(0xffff, x, broadcast(kFarthest), 0b1010);
  const __m512i piece = reinterpret_cast<__m512i>(size * broadcast(kPieceScale) + broadcast(kPieces));
  const Vec from_middle = size - broadcast(kMiddle);
  Vec beyond = _mm512_maskz_permutexvar_ps(0xffff, piece, load(terms[0]));
  POWERLAB_UNROLL
  for (int i = 1; i < 5; ++i) {
    beyond = beyond * from_middle + _mm512_maskz_permutexvar_ps(0xffff, piece, load(terms[i]));
  }
  return (x - at_most(x, Vec{})) - size * beyond;  // of minus infinity not a number, as in the formulas
}

}  // namespace powerlab::engine::POWERLAB_TIER
#endif
