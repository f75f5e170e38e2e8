// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cpu/cpu_linear.h"

#include <algorithm>
#include <variant>

#include "engine/backend/cpu/affine_linear.h"
#include "engine/backend/cpu/exl3_linear.h"
#include "engine/backend/cpu/plain_linear.h"
#include "engine/base/check.h"

namespace hallmark {

Result<std::unique_ptr<CpuLinear>> CpuLinear::Load(const LinearSource& source, CpuTier tier) {
  if (std::holds_alternative<Exl3Group>(source.weights)) return LoadExl3Linear(source, tier);
  if (std::holds_alternative<AffineLinear>(source.weights)) return LoadAffineLinear(source, tier);
  return LoadPlainLinear(source, tier);
}

std::vector<ColumnStrip> StripsOf(std::span<const ColumnSpan> spans, int64_t out_features) {
  std::vector<ColumnStrip> strips;
  int64_t before = 0;  // the end of the span before
  int64_t out = 0;
  for (const ColumnSpan& span : spans) {
    const int64_t end = span.first + span.count;
    CHECK(span.count > 0 && span.first >= before && end <= out_features);
    CHECK(span.first % kColumnStrip == 0 && (end % kColumnStrip == 0 || end == out_features));
    for (int64_t first = span.first; first < end; first += kColumnStrip) {
      const int64_t count = std::min(kColumnStrip, end - first);
      strips.push_back({.strip = first / kColumnStrip, .count = count, .out = out});
      out += count;
    }
    before = end;
  }
  return strips;
}

int64_t WidthOf(std::span<const ColumnSpan> spans) {
  int64_t width = 0;
  for (const ColumnSpan& span : spans) width += span.count;
  return width;
}

}  // namespace hallmark
