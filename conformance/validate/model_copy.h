// SPDX-License-Identifier: Apache-2.0
// ModelCopy: a golden model with all of its data in memory, so that a test can change one thing and
// write it elsewhere. For the suites of the steps that look at values. Naming what is not there
// aborts, so that no test passes by changing nothing.
#ifndef HALLMARK_CONFORMANCE_VALIDATE_MODEL_COPY_H_
#define HALLMARK_CONFORMANCE_VALIDATE_MODEL_COPY_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/harness/safetensors_writer.h"

namespace hallmark {

class ModelCopy {
 public:
  // A folder with one model.safetensors, e.g. GoldenPath("models/scribe-11m-exl3").
  explicit ModelCopy(const std::string& folder);

  TensorSpec& Tensor(std::string_view name);
  // Exchanges the data of two tensors of one size.
  void Swap(std::string_view a, std::string_view b);
  // Sets the element at `index` of an F16, BF16 or F32 tensor.
  void Set(std::string_view name, size_t index, float value);
  // Replaces every element by a function of it.
  void Map(std::string_view name, const std::function<float(float)>& change);
  std::vector<float> Values(std::string_view name);
  // Fills bytes of a tensor, counted from its begin.
  void Fill(std::string_view name, size_t begin, size_t bytes, char byte);
  const std::vector<TensorSpec>& tensors() const { return tensors_; }

  // The folder anew: documents of the source and model.safetensors. Aborts when it cannot.
  void Write(const std::string& folder) const;

 private:
  std::string source_;
  std::vector<TensorSpec> tensors_;  // in the order of the file
};

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_VALIDATE_MODEL_COPY_H_
