// SPDX-License-Identifier: Apache-2.0
// LinearScales: what the scales of an EXL3 linear say about it without decoding a tile: its gain,
// dead inputs and outputs, and whether the scales can be what a quantizer wrote. A linear's gain is
// the output's RMS for inputs of RMS 1 that know nothing of the weights:
// rms(suh) * rms(svh) * rms(codebook) * sqrt(k). How magnitude is shared between the two sides is
// the quantizer's choice; the gain is the model's, so it is held against the other layers'.
#ifndef HALLMARK_CONFORMANCE_VALIDATE_LINEAR_SCALES_H_
#define HALLMARK_CONFORMANCE_VALIDATE_LINEAR_SCALES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "conformance/validate/step_findings.h"
#include "engine/base/result.h"
#include "engine/format/linear.h"

namespace hallmark {

// Of one side's scales within the model's sizes; padding is left out.
struct ScaleVector {
  bool packed = false;  // sign words: every magnitude is 1
  int64_t count = 0;
  int64_t zeros = 0;
  int64_t first_zero = 0;
  int64_t subnormal = 0;  // not zero, below 2^-14
  int64_t saturated = 0;  // 65504
  int64_t not_finite = 0;
  float largest = 0;
  // Of those that are finite and not zero, the largest left out: one that stands out is a fault of
  // its own and says nothing of the others.
  double rms = 0;
};

struct LinearScales {
  const LinearSource* source = nullptr;
  const Exl3Group* group = nullptr;
  ScaleVector input, output;
  double gain = 0;         // 0 when one side has no scale that counts
  std::vector<bool> live;  // for each 128 stored outputs: whether a scale is other than zero
};

// RMS of all values of a codebook.
double CodebookRms(Codebook codebook);

// Of those of `linears` that are EXL3, in their order. Reads the scales alone. The linears outlive
// what they give.
Result<std::vector<LinearScales>> ReadLinearScales(const std::vector<const LinearSource*>& linears);

// Adds what is wrong with them to `findings`, by the ids of ValueChecks. `head` may be null.
void JudgeLinearScales(const std::vector<LinearScales>& scales, const LinearSource* head,
                       StepFindings* findings);

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_VALIDATE_LINEAR_SCALES_H_
