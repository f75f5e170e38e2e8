// SPDX-License-Identifier: Apache-2.0
// ErrorBand: which normalized mean square error is expected of an EXL3 linear of a width and
// codebook, and how far a sound one may lie from it. Not an entry of the tolerance register: that
// bounds this engine's own arithmetic; this judges what somebody else's quantizer wrote.
//
// Source of the middle values: the two-pass tail-biting Viterbi search on unit-variance Gaussian
// data at its best input scale, 96 tiles a width, sampling error about 1 %; a second, independent
// table agrees within 5 %. The incoherence transform makes any trained matrix Gaussian enough.
// Reason for the bounds: error feedback along a calibration set raises the plain error (measured
// over a model of 51 linears in all three codebooks and eight widths: 1.05 to 1.7 times), and no
// code of that rate can fall below 2^-2b, which is 0.65 to 0.94 of the middle. One bit less is 3.4
// to 4 times the middle: the upper bound lies below it.
#ifndef HALLMARK_CONFORMANCE_VALIDATE_ERROR_BAND_H_
#define HALLMARK_CONFORMANCE_VALIDATE_ERROR_BAND_H_

#include "engine/backend/exl3_codec.h"

namespace hallmark {

struct ErrorBand {
  double least = 0;  // below: the reference was made from the quantized model, or is not its source
  double middle = 0;
  double most = 0;   // above: not quantized as well as its width allows
  double gross = 0;  // above: two bits or more are lost
};

// `rate` is one of AllExl3Rates.
ErrorBand ErrorBandOf(Exl3Rate rate);

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_VALIDATE_ERROR_BAND_H_
