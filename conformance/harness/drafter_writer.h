// SPDX-License-Identifier: Apache-2.0
// DrafterWriter: builds a valid DFlash or DFlash2 drafter from a few numbers, lets a test change
// one thing, and writes the folder. Weights are random and mean nothing. Every change is by name;
// naming what is not there aborts, so that a test cannot pass by changing nothing.
#ifndef HALLMARK_CONFORMANCE_HARNESS_DRAFTER_WRITER_H_
#define HALLMARK_CONFORMANCE_HARNESS_DRAFTER_WRITER_H_

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "conformance/harness/safetensors_writer.h"
#include "engine/base/result.h"

namespace hallmark {

enum class LinearForm { kPlain, kAffine, kExl3 };

// The defaults are a valid DFlash2 drafter for a target of 4 layers, hidden 128 and 300 ids.
struct SyntheticDrafter {
  int64_t hidden = 128;
  int64_t intermediate = 192;
  int64_t vocab = 300;
  int layers = 2;
  int heads = 4;
  int kv_heads = 2;
  int head_dim = 32;
  int block = 4;
  int window = 8;                         // 0: full attention
  std::vector<int64_t> targets = {2, 0};  // not ascending: fc follows the list
  int target_layers = 4;
  bool second = true;  // DFlash2: convolution and selector
  int kernel = 2;      // taps of the convolution
  int rank = 16;
  int top_k = 4;
  LinearForm form = LinearForm::kPlain;
  DType plain = DType::kBF16;  // of plain matrices
  bool data = true;            // false: headers only, the data is a hole
  uint64_t seed = 1;
};

class DrafterWriter {
 public:
  explicit DrafterWriter(const SyntheticDrafter& drafter = {});

  // Sets or erases one value of config.json by JSON pointer. `json` is JSON text.
  void Set(const std::string& pointer, const std::string& json);
  void Erase(const std::string& pointer);
  const std::string& config() const { return config_; }

  std::vector<TensorSpec>& tensors() { return tensors_; }
  TensorSpec& Tensor(std::string_view name);
  void Add(TensorSpec tensor) { tensors_.push_back(std::move(tensor)); }
  void Remove(std::string_view name);

  // Writes the folder anew: what was in it is removed.
  Status Write(const std::string& folder) const;

 private:
  std::string config_;
  std::vector<TensorSpec> tensors_;
};

// A tensor of `values` in BF16, F16 or F32.
TensorSpec FloatTensor(const std::string& name, DType dtype, std::vector<int64_t> shape,
                       const std::function<float(int64_t)>& values);

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_HARNESS_DRAFTER_WRITER_H_
