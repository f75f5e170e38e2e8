// SPDX-License-Identifier: Apache-2.0
// RunLinearOnHost: one call of a backend's linear on host values, for cases that work the same on
// every backend.
#ifndef HALLMARK_CONFORMANCE_CASES_HOST_LINEAR_H_
#define HALLMARK_CONFORMANCE_CASES_HOST_LINEAR_H_

#include <span>
#include <vector>

#include "engine/backend/backend.h"

namespace hallmark {

// y [rows, out_features] from x [rows, in_features], both in host memory, in a single call.
inline Result<std::vector<float>> RunLinearOnHost(Backend& backend, const LinearWeight& weight,
                                                  std::span<const float> x, int64_t rows) {
  std::vector<float> y(static_cast<size_t>(rows * weight.out_features));
  const Buffer input = TRY(backend.Allocate(x.size_bytes()));
  const Buffer output = TRY(backend.Allocate(y.size() * sizeof(float)));
  TRY(backend.Upload(input.data(), x.data(), x.size_bytes()));
  TRY(backend.Linear(weight, {input.floats(), rows, weight.in_features},
                     {output.floats(), rows, weight.out_features}));
  TRY(backend.Download(y.data(), output.data(), y.size() * sizeof(float)));
  return y;
}

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_CASES_HOST_LINEAR_H_
