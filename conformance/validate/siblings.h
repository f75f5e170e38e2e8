// SPDX-License-Identifier: Apache-2.0
// Siblings: measures of tensors that do one thing in different layers, and how far one of them lies
// from the middle of the others.
#ifndef HALLMARK_CONFORMANCE_VALIDATE_SIBLINGS_H_
#define HALLMARK_CONFORMANCE_VALIDATE_SIBLINGS_H_

#include <algorithm>
#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/validate/tensor_values.h"

namespace hallmark {

class Siblings {
 public:
  // Fewer than this many tell nothing of a single one.
  static constexpr size_t kFewest = 3;

  // `measure` > 0.
  void Add(std::string_view name, double measure) {
    kinds_[std::string(TensorKind(name))].push_back(measure);
  }

  // The median of the tensor's kind (the lower one of two); 0 when there are too few.
  double MedianFor(std::string_view name) const {
    const auto found = kinds_.find(std::string(TensorKind(name)));
    if (found == kinds_.end() || found->second.size() < kFewest) return 0;
    return Median(found->second);
  }

  static double Median(std::vector<double> values) {
    const size_t middle = (values.size() - 1) / 2;
    std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(middle),
                     values.end());
    return values[middle];
  }

  const std::map<std::string, std::vector<double>>& kinds() const { return kinds_; }

 private:
  std::map<std::string, std::vector<double>> kinds_;
};

// How many times larger or smaller `value` is than `middle`; both > 0.
inline double Apart(double value, double middle) {
  return std::max(value / middle, middle / value);
}

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_VALIDATE_SIBLINGS_H_
