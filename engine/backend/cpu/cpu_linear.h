// SPDX-License-Identifier: Apache-2.0
// CpuLinear: a linear layer of the CPU backend, EXL3, plain or 4-bit, in the layout of one tier.
// Memory is about that of the checkpoint's tensor; the scalar tier keeps decoded values, 4 bytes a
// weight. Implements clause row-invariance: y's rows have the bits of the scalar definitions
// (ref/exl3_linear.h, ref/plain_linear.h, ref/affine_linear.h) in every tier, for every row count
// and number of threads; threads split over output columns only.
#ifndef HALLMARK_ENGINE_BACKEND_CPU_CPU_LINEAR_H_
#define HALLMARK_ENGINE_BACKEND_CPU_CPU_LINEAR_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/backend/backend.h"
#include "engine/backend/cpu/parallel.h"
#include "engine/backend/cpu/tier.h"
#include "engine/backend/draft_ops.h"
#include "engine/base/result.h"
#include "engine/format/linear.h"

namespace hallmark {

class CpuLinear : public LinearWeight {
 public:
  // Copies and repacks the weights of a source that the format layer has accepted; the source may
  // go away afterwards. The machine must support `tier`. kResource if there is no memory.
  static Result<std::unique_ptr<CpuLinear>> Load(const LinearSource& source, CpuTier tier);

  // y [rows, out_features] from x [rows, in_features], which do not overlap. kOutOfRange, with the
  // layer's name in the locator and y unspecified, if an EXL3 input is not finite in fp16 once
  // rotated; kResource if there is no memory for scratch.
  Status Run(ConstRows x, Rows y, ThreadPool& pool) const {
    const ColumnSpan all{0, out_features};
    return RunColumns(std::span(&all, 1), x, y, pool);
  }

  // The same columns alone, side by side in y: spans ascend and keep to strips of 128 outputs
  // (DraftOps::LinearColumns). A strip's bits do not depend on which others are asked for.
  virtual Status RunColumns(std::span<const ColumnSpan> spans, ConstRows x, Rows y,
                            ThreadPool& pool) const = 0;

  // Bytes held.
  virtual size_t bytes() const = 0;
};

// One strip of 128 outputs (the last may have fewer), and where its columns go in the result.
struct ColumnStrip {
  int64_t strip = 0;
  int64_t count = 0;
  int64_t out = 0;
};
// Checks the spans (a broken one is the caller's fault) and cuts them.
std::vector<ColumnStrip> StripsOf(std::span<const ColumnSpan> spans, int64_t out_features);
int64_t WidthOf(std::span<const ColumnSpan> spans);

// W_q of an EXL3 group as fp16 bits, [k, n], decoded by the tier's own loops. A value that is not
// exactly fp16 (a fault of the loops) comes back as NaN.
std::vector<uint16_t> DecodeExl3(const Exl3Group& group, CpuTier tier);

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BACKEND_CPU_CPU_LINEAR_H_
