// SPDX-License-Identifier: Apache-2.0
// Divergence: how far one model's predictions lie from another's over windows of tokens:
// KL(reference || model) in nat, and how often both put the same id first. Rows are added window by
// window, so that the logits of one window are all that is held of the model.
#ifndef HALLMARK_CONFORMANCE_VALIDATE_DIVERGENCE_H_
#define HALLMARK_CONFORMANCE_VALIDATE_DIVERGENCE_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace hallmark {

struct Divergence {
  size_t rows = 0;
  size_t non_finite = 0;  // values of either side; rows of a window that has any are not measured
  double sum_kl = 0;
  double largest_kl = 0;
  size_t same_first = 0;  // rows whose first id is the reference's

  // Both [rows, columns], of one window.
  void Add(std::span<const float> reference, std::span<const float> model, size_t columns);

  double mean_kl() const { return rows == 0 ? 0 : sum_kl / static_cast<double>(rows); }
  double top1() const {
    return rows == 0 ? 0 : static_cast<double>(same_first) / static_cast<double>(rows);
  }
};

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_VALIDATE_DIVERGENCE_H_
