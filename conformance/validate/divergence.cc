// SPDX-License-Identifier: Apache-2.0
#include "conformance/validate/divergence.h"

#include <algorithm>

#include "conformance/harness/comparators.h"

namespace hallmark {

void Divergence::Add(std::span<const float> reference, std::span<const float> model,
                     size_t columns) {
  for (size_t at = 0; at + columns <= reference.size(); at += columns) {
    const auto want = reference.subspan(at, columns);
    const auto got = model.subspan(at, columns);
    const Drift drift = MeasureDrift(want, got, columns);
    non_finite += drift.non_finite;
    if (drift.non_finite > 0) continue;
    ++rows;
    sum_kl += drift.mean_kl;
    largest_kl = std::max(largest_kl, drift.mean_kl);
    same_first += Argmax(want) == Argmax(got);
  }
}

}  // namespace hallmark
