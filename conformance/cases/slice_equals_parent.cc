// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/slice_equals_parent.h"

#include <algorithm>
#include <string>
#include <vector>

#include "conformance/cases/bits_row.h"
#include "conformance/cases/host_linear.h"
#include "engine/backend/draft_ops.h"
#include "engine/base/random.h"
#include "engine/model/model.h"
#include "engine/run/session.h"

namespace hallmark {
namespace {

constexpr uint64_t kInputSeed = 0x736C696365ull;

// The spans of a case in columns of a head `width` wide; whole strips, the last one maybe shorter.
std::vector<ColumnSpan> SpansOf(const std::string& which, int64_t width) {
  const int64_t strips = (width + kColumnStrip - 1) / kColumnStrip;
  const auto span = [width](int64_t first_strip, int64_t end_strip) {
    const int64_t first = first_strip * kColumnStrip;
    return ColumnSpan{first, std::min(end_strip * kColumnStrip, width) - first};
  };
  if (which == "first") return {span(0, 1)};
  if (which == "last") return {span(strips - 1, strips)};
  if (which == "inner") return {span(strips / 3, std::max(strips / 3 + 1, strips / 2))};
  if (strips < 3) return {span(0, strips)};
  return {span(0, strips / 2), span(strips - 1, strips)};  // "spans": as a draft vocabulary is
}

Result<Row> Compare(const Session& session, const std::string& which, int64_t rows) {
  const Model& model = session.model();
  Backend& backend = *model.backend;
  const int64_t width = model.head->out_features;
  const int64_t hidden = model.head->in_features;
  std::vector<float> x(static_cast<size_t>(rows * hidden));
  SplitMix64 random(kInputSeed);
  for (float& value : x) value = random.NextNormal();
  const std::vector<float> parent = TRY(RunLinearOnHost(backend, *model.head, x, rows));

  if (backend.draft_ops() == nullptr) {
    return Fail(Code::kUnsupported, "this backend slices no linear");
  }
  const std::vector<ColumnSpan> spans = SpansOf(which, width);
  int64_t columns = 0;
  for (const ColumnSpan& span : spans) columns += span.count;
  const Buffer in = TRY(backend.Allocate(x.size() * sizeof(float)));
  const Buffer out = TRY(backend.Allocate(static_cast<size_t>(rows * columns) * sizeof(float)));
  TRY(backend.Upload(in.data(), x.data(), x.size() * sizeof(float)));
  TRY(backend.draft_ops()->LinearColumns(*model.head, spans, {in.floats(), rows, hidden},
                                         {out.floats(), rows, columns}));
  std::vector<float> slice(static_cast<size_t>(rows * columns));
  TRY(backend.Download(slice.data(), out.data(), slice.size() * sizeof(float)));

  BitsRow row;
  for (int64_t r = 0; r < rows; ++r) {
    int64_t at = r * columns;
    for (const ColumnSpan& span : spans) {
      row.Compare<float>(
          std::span(parent).subspan(static_cast<size_t>(r * width + span.first),
                                    static_cast<size_t>(span.count)),
          std::span(slice).subspan(static_cast<size_t>(at), static_cast<size_t>(span.count)),
          "row " + std::to_string(r) + ", columns from " + std::to_string(span.first));
      at += span.count;
    }
  }
  row.Count("columns", static_cast<uint64_t>(columns));
  return row.Finish();
}

}  // namespace

Status AddSliceEqualsParentCases(const CaseSubject& subject, CaseRegistry& registry) {
  for (const std::string which : {"first", "last", "inner", "spans"}) {
    for (const int64_t rows : {1, 17}) {
      TRY(registry.Add("slice-equals-parent",
                       CaseName("head", {{"columns", which}, {"rows", std::to_string(rows)}}),
                       [subject, which, rows] { return Compare(*subject.session, which, rows); }));
    }
  }
  return {};
}

}  // namespace hallmark
