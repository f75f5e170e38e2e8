// SPDX-License-Identifier: Apache-2.0
#include "conformance/validate/watched_backend.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "conformance/validate/exl3_matrix.h"
#include "engine/backend/cpu/ref/hadamard.h"

namespace hallmark {
namespace {

// Of the rotated row, before its rounding.
float LargestRotated(const float* x, int64_t in_features, const std::vector<float>& suh) {
  float largest = 0;
  std::array<float, kExl3Block> block;
  for (size_t begin = 0; begin < suh.size(); begin += kExl3Block) {
    for (size_t i = 0; i < block.size(); ++i) {
      const size_t at = begin + i;
      block[i] = static_cast<int64_t>(at) < in_features ? x[at] * suh[at] : 0.0f;
    }
    RefHadamard128(block.data());
    for (const float value : block) {
      if (!std::isfinite(value)) return NAN;
      largest = std::max(largest, std::fabs(value));
    }
  }
  return largest;
}

}  // namespace

Result<std::unique_ptr<LinearWeight>> WatchedBackend::LoadLinear(const LinearSource& source) {
  std::unique_ptr<LinearWeight> weight = TRY(real_->LoadLinear(source));
  if (const auto* group = std::get_if<Exl3Group>(&source.weights)) {
    index_[weight.get()] = inputs_.size();
    inputs_.push_back({.name = source.name(), .suh = TRY(ReadExl3InputScales(*group))});
  }
  return weight;
}

Status WatchedBackend::Linear(const LinearWeight& weight, ConstRows x, Rows y) {
  const auto found = watching_ ? index_.find(&weight) : index_.end();
  if (found != index_.end()) {
    Input& input = inputs_[found->second];
    for (int64_t row = 0; row < x.rows && !std::isnan(input.largest); ++row) {
      const float largest = LargestRotated(x.data + row * x.cols, x.cols, input.suh);
      if (!(largest <= input.largest)) input.largest = largest;
    }
  }
  return real_->Linear(weight, x, y);
}

Status WatchedBackend::RmsNorm(ConstRows x, const float* weight, float eps, Rows out) {
  if (watching_ && !first_norm_not_finite_) {
    const auto finite = [](float value) { return std::isfinite(value); };
    if (!std::all_of(x.data, x.data + x.rows * x.cols, finite)) first_norm_not_finite_ = norms_;
    ++norms_;
  }
  return real_->RmsNorm(x, weight, eps, out);
}

}  // namespace hallmark
