// SPDX-License-Identifier: Apache-2.0
// BitsRow: gathers both sides of a comparison bit by bit into one Row: two digests, what was
// compared, and where the first difference lies. Finish never passes when nothing was compared.
#ifndef HALLMARK_CONFORMANCE_CASES_BITS_ROW_H_
#define HALLMARK_CONFORMANCE_CASES_BITS_ROW_H_

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "conformance/harness/comparators.h"
#include "conformance/harness/row.h"
#include "engine/base/sha256.h"

namespace hallmark {

class BitsRow {
 public:
  // Compares two spans of plain values; `where` names them when they differ. Counted under
  // "values".
  template <typename T>
  void Compare(std::span<const T> expected, std::span<const T> actual, std::string_view where) {
    const BitComparison comparison = CompareBits(expected, actual);
    expected_.Update(std::as_bytes(expected));
    actual_.Update(std::as_bytes(actual));
    row_.counts["values"] += comparison.compared;
    if (!comparison.Passed()) Refuse(std::string(where) + ": " + comparison.ToString());
  }
  void CompareText(std::string_view expected, std::string_view actual, std::string_view where) {
    Compare(std::span<const char>(expected), std::span<const char>(actual), where);
  }
  // Compares two digests that stand for `values` values each, counted as such.
  void CompareDigests(std::string_view expected, std::string_view actual, uint64_t values,
                      std::string_view where) {
    expected_.Update(expected);
    actual_.Update(actual);
    row_.counts["values"] += values;
    if (expected != actual || expected.empty()) Refuse(std::string(where) + ": the bits differ");
  }

  // Adds to a count; a count that ends at zero makes the pass a vacuous one.
  void Count(const std::string& name, uint64_t more) { row_.counts[name] += more; }

  // Fails the row for a reason that no digest shows. The first reason is kept.
  void Refuse(std::string reason) {
    if (row_.detail.empty()) row_.detail = std::move(reason);
  }

  Row Finish() {
    row_.expected = Hex(expected_.Finish());
    row_.actual = Hex(actual_.Finish());
    row_.outcome = row_.detail.empty() ? Outcome::kPass : Outcome::kFail;
    return WithoutVacuousPass(std::move(row_));
  }

 private:
  Row row_;
  Sha256 expected_;
  Sha256 actual_;
};

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_CASES_BITS_ROW_H_
