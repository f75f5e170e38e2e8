// SPDX-License-Identifier: Apache-2.0
#include "conformance/validate/tensor_error.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "conformance/validate/exl3_matrix.h"
#include "engine/backend/cpu/parallel.h"
#include "engine/base/float_types.h"
#include "engine/base/mapped_file.h"

namespace hallmark {
namespace {

struct Sums {
  double source = 0, difference = 0, product = 0;

  void Take(float w, float q) {
    const double wide = w;
    source += wide * wide;
    product += wide * q;
    difference += (wide - q) * (wide - q);
  }
  void Add(const Sums& other) {
    source += other.source;
    difference += other.difference;
    product += other.product;
  }
};

float Value(const TensorView& tensor, size_t index) {
  const std::byte* at = tensor.bytes.data() + index * static_cast<size_t>(DTypeSize(tensor.dtype));
  uint16_t half = 0;
  float whole = 0;
  if (tensor.dtype == DType::kF32) {
    std::memcpy(&whole, at, sizeof(whole));
    return whole;
  }
  std::memcpy(&half, at, sizeof(half));
  return tensor.dtype == DType::kBF16 ? Bf16ToFloat(half) : HalfToFloat(half);
}

// Lets go of the pages that lie wholly in `bytes`: they are read again from the file if need be.
void DropPages(std::span<const std::byte> bytes) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const uintptr_t begin = (reinterpret_cast<uintptr_t>(bytes.data()) + page - 1) / page * page;
  const uintptr_t end = (reinterpret_cast<uintptr_t>(bytes.data()) + bytes.size()) / page * page;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

class Measure {
 public:
  Measure(int threads, const StepProgress& progress, size_t total)
      : pool_(threads), progress_(progress), total_(total) {}

  // W [n, k] of the source against a group that stands for it.
  Status Linear(const TensorView& source, const LinearSource& linear, const Exl3Group& group) {
    const Exl3Matrix matrix = TRY(Exl3Matrix::Open(group));
    std::vector<Sums> strips(static_cast<size_t>(matrix.output_blocks()));
    pool_.ParallelFor(matrix.output_blocks(), [&](int64_t strip) {
      std::vector<float> block(static_cast<size_t>(Exl3Matrix::kBlockValues));
      for (int64_t k = 0; k < matrix.input_blocks(); ++k) {
        matrix.Block(k, strip, block.data());
        const int64_t first_output = strip * kExl3Block;
        const int64_t first_input = k * kExl3Block;
        const int64_t outputs = std::min<int64_t>(kExl3Block, linear.out_features - first_output);
        const int64_t inputs = std::min<int64_t>(kExl3Block, linear.in_features - first_input);
        Sums sums;
        for (int64_t n = 0; n < outputs; ++n) {
          const auto row =
              static_cast<size_t>((first_output + n) * linear.in_features + first_input);
          for (int64_t i = 0; i < inputs; ++i) {
            sums.Take(Value(source, row + static_cast<size_t>(i)),
                      block[static_cast<size_t>(i * kExl3Block + n)]);
          }
        }
        strips[static_cast<size_t>(strip)].Add(sums);
      }
    });
    return Keep({.name = linear.name(), .group = &group, .tensor = &group.trellis}, source,
                group.trellis, strips, linear.in_features * linear.out_features);
  }

  Status Plain(const TensorView& source, const TensorView& tensor) {
    constexpr int64_t kStep = int64_t{1} << 16;
    const int64_t values = tensor.elements();
    std::vector<Sums> pieces(static_cast<size_t>((values + kStep - 1) / kStep));
    pool_.ParallelFor(static_cast<int64_t>(pieces.size()), [&](int64_t piece) {
      const int64_t end = std::min(values, (piece + 1) * kStep);
      Sums sums;
      for (int64_t i = piece * kStep; i < end; ++i) {
        sums.Take(Value(source, static_cast<size_t>(i)), Value(tensor, static_cast<size_t>(i)));
      }
      pieces[static_cast<size_t>(piece)] = sums;
    });
    return Keep({.name = tensor.name, .tensor = &tensor}, source, tensor, pieces, values);
  }

  std::vector<TensorError> Finish() { return std::move(out_); }

 private:
  Status Keep(TensorError error, const TensorView& source, const TensorView& tensor,
              const std::vector<Sums>& parts, int64_t values) {
    Sums sums;
    for (const Sums& part : parts) sums.Add(part);
    error.values = values;
    // A source of zeros has no direction to compare with.
    const double nothing = sums.difference > 0 ? INFINITY : 0;
    error.nmse = sums.source > 0 ? sums.difference / sums.source : nothing;
    error.scale = sums.source > 0 ? sums.product / sums.source : 1;
    out_.push_back(std::move(error));
    TRY(CheckIntact(source.bytes, source.file));
    TRY(CheckIntact(tensor.bytes, tensor.file));
    DropPages(source.bytes);
    DropPages(tensor.bytes);
    if (progress_) progress_("tensors", out_.size(), total_);
    return {};
  }

  ThreadPool pool_;
  const StepProgress& progress_;
  const size_t total_;
  std::vector<TensorError> out_;
};

// The plain tensors of a model in one order.
std::vector<const TensorView*> PlainTensors(const CheckpointInventory& inventory) {
  std::vector<const TensorView*> out = {&inventory.embedding, &inventory.final_norm};
  for (const LayerTensors& layer : inventory.layers) {
    out.insert(out.end(), {&layer.input_norm, &layer.post_norm});
    if (const auto* attention = std::get_if<AttentionTensors>(&layer.mixer)) {
      out.insert(out.end(), {&attention->q_norm, &attention->k_norm});
    } else {
      const auto& delta = std::get<DeltaNetTensors>(layer.mixer);
      out.insert(out.end(), {&delta.conv, &delta.a_log, &delta.dt_bias, &delta.norm});
    }
  }
  return out;
}

// Linears of both, in one order, a head last; a source whose head is the embedding gives that.
struct Pair {
  const TensorView* source = nullptr;
  const LinearSource* linear = nullptr;
};
Result<std::vector<Pair>> PairLinears(const CheckpointInventory& source,
                                      const CheckpointInventory& model) {
  std::vector<const LinearSource*> sources = Linears(source);
  std::vector<Pair> pairs;
  for (const LinearSource* linear : Linears(model)) {
    if (pairs.size() == sources.size()) {
      pairs.push_back({&source.embedding, linear});
      continue;
    }
    const LinearSource& from = *sources[pairs.size()];
    const auto* plain = std::get_if<PlainLinear>(&from.weights);
    if (plain == nullptr) {
      return Fail(Code::kUnsupported, "the reference is quantized, expected a plain matrix",
                  {.tensor = from.name()});
    }
    pairs.push_back({&plain->weight, linear});
  }
  return pairs;
}

}  // namespace

Result<std::vector<TensorError>> MeasureTensorErrors(const CheckpointInventory& source,
                                                     const CheckpointInventory& model, int threads,
                                                     const StepProgress& progress) {
  const std::vector<Pair> pairs = TRY(PairLinears(source, model));
  const std::vector<const TensorView*> from = PlainTensors(source);
  const std::vector<const TensorView*> to = PlainTensors(model);
  Measure measure(threads, progress, pairs.size() + to.size());
  for (const Pair& pair : pairs) {
    if (const auto* group = std::get_if<Exl3Group>(&pair.linear->weights)) {
      TRY(measure.Linear(*pair.source, *pair.linear, *group));
    } else {
      TRY(measure.Plain(*pair.source, std::get<PlainLinear>(pair.linear->weights).weight));
    }
  }
  for (size_t i = 0; i < to.size(); ++i) TRY(measure.Plain(*from[i], *to[i]));
  return measure.Finish();
}

}  // namespace hallmark
