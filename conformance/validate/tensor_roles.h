// SPDX-License-Identifier: Apache-2.0
// TensorRoles: what each tensor of a model or drafter is for, as far as zeros in it are concerned.
#ifndef HALLMARK_CONFORMANCE_VALIDATE_TENSOR_ROLES_H_
#define HALLMARK_CONFORMANCE_VALIDATE_TENSOR_ROLES_H_

#include <map>
#include <string>

#include "engine/format/drafter_inventory.h"
#include "engine/format/inventory.h"

namespace hallmark {

enum class TensorRole {
  kUnused,   // never loaded
  kTrellis,  // tiles
  kMatrix,   // plain matrix, convolution, factors of a drafter's norms: all zero is a fault
  kTable,    // embedding, plain head, codebook: rows at the end may be padding
  kVector,   // scales, offsets from 1, biases: zero is a value like others, or judged elsewhere
};

class TensorRoles {
 public:
  explicit TensorRoles(const CheckpointInventory& inventory);
  explicit TensorRoles(const DrafterInventory& inventory);

  TensorRole Of(const TensorView& tensor) const;

 private:
  void Set(const TensorView& tensor, TensorRole role) { roles_[tensor.name] = role; }
  void SetLinear(const LinearSource& linear, TensorRole plain);

  std::map<std::string, TensorRole> roles_;
};

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_VALIDATE_TENSOR_ROLES_H_
