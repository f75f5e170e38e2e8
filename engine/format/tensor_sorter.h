// SPDX-License-Identifier: Apache-2.0
// TensorSorter: takes the tensors of a checkpoint by role, with shapes and types held against what
// the caller's config says, and remembers which were taken and which were wanted in vain. What the
// inventories of models and drafters share. Clauses: format-accept, format-reject. Reads headers
// and codebook markers, no other data. Stored sizes of an EXL3 linear are the wanted ones, each
// rounded up to a multiple of 128.
#ifndef HALLMARK_ENGINE_FORMAT_TENSOR_SORTER_H_
#define HALLMARK_ENGINE_FORMAT_TENSOR_SORTER_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/result.h"
#include "engine/format/linear.h"
#include "engine/format/tensor.h"

namespace hallmark {

// Those whose names begin with `prefix`, of tensors sorted by name.
std::span<const TensorView> TensorsWithPrefix(std::span<const TensorView> sorted,
                                              std::string_view prefix);

// Tensors of a part that is never loaded.
struct UnusedPart {
  std::string prefix;  // "model.visual." or "mtp."
  int64_t tensors = 0;
  uint64_t bytes = 0;
};

struct SortedTensors {
  std::vector<UnusedPart> unused;
  int64_t used_tensors = 0;
  uint64_t used_bytes = 0;
};

// What a sorter found amiss, when it is asked for all of it.
struct TensorFaults {
  std::vector<Error> faults;         // a shape, a type, a group: each at its tensor
  std::vector<std::string> missing;  // as Miss was told
  std::vector<const TensorView*> unknown;
  std::optional<Error> unstated;  // EXL3 groups without their statement, or the other way round

  bool empty() const {
    return faults.empty() && missing.empty() && unknown.empty() && !unstated.has_value();
  }
};

// Which forms a linear may have beside an EXL3 group and a plain matrix.
enum class LinearForms { kExl3OrPlain, kAffineToo };

class TensorSorter {
 public:
  // `tensors` is sorted by name and outlives the sorter; `folder` names the source in errors. With
  // `all`, faults of tensors are noted there instead of being returned: what was at fault comes
  // back empty, and Finish fails no more.
  TensorSorter(std::span<const TensorView> tensors, std::string folder,
               LinearForms forms = LinearForms::kExl3OrPlain, TensorFaults* all = nullptr)
      : tensors_(tensors),
        folder_(std::move(folder)),
        forms_(forms),
        all_(all),
        taken_(tensors.size(), false) {}

  // A BF16, F16 or F32 tensor of this shape. kMismatch for another; absence is remembered and gives
  // an empty view.
  Result<TensorView> Plain(const std::string& name, std::vector<int64_t> shape);
  // The same under the first of `names` that is present; kMismatch if two are.
  Result<TensorView> PlainUnder(std::span<const std::string> names, std::vector<int64_t> shape);

  // An EXL3 group, a plain matrix or, where forms allow it, a 4-bit affine one. Nullopt when
  // absent.
  Result<std::optional<LinearSource>> MaybeLinear(const std::string& name, int64_t in, int64_t out);
  // The same; absence is remembered and gives an empty source.
  Result<LinearSource> Linear(const std::string& name, int64_t in, int64_t out);

  void Miss(std::string name) { missing_.push_back(std::move(name)); }

  // The error, noted or returned.
  Status Refuse(Error error);

  // Once, at the end: kNotFound lists every tensor wanted in vain, and every one left over beside
  // them; kUnsupported lists those left over when none is missing, with `hint` when the first of
  // them begins with `hint_prefix`. Those that begin with one of `unused` are counted instead.
  Result<SortedTensors> Finish(std::span<const std::string_view> unused,
                               std::string_view hint_prefix, const std::string& hint);

 private:
  void Take(const TensorView& tensor) {
    taken_[static_cast<size_t>(&tensor - tensors_.data())] = true;
  }
  Result<LinearSource> ReadLinear(const std::string& name, const TensorView* weight, int64_t in,
                                  int64_t out);
  Result<PlainLinear> PlainMatrix(const std::string& name, const TensorView& weight, int64_t in,
                                  int64_t out);
  Result<AffineLinear> AffineMatrix(const std::string& name, const TensorView& weight, int64_t in,
                                    int64_t out);

  std::span<const TensorView> tensors_;
  std::string folder_;
  LinearForms forms_;
  TensorFaults* all_;
  std::vector<bool> taken_;
  std::vector<std::string> missing_;
};

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_FORMAT_TENSOR_SORTER_H_
