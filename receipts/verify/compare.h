// SPDX-License-Identifier: Apache-2.0
// CompareReceipts: two receipts side by side, for `hallmark diff`. Receipts of different
// arithmetic, checkpoint, level, settings or suite are not comparable: no row of theirs "differs".
// Judges nothing: whether either may be believed is verify.h's question.
#ifndef HALLMARK_RECEIPTS_VERIFY_COMPARE_H_
#define HALLMARK_RECEIPTS_VERIFY_COMPARE_H_

#include <array>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "receipts/verify/knowledge.h"

namespace hallmark::verify {

struct RowDifference {
  std::string name;  // "clause/case"
  std::shared_ptr<const Json> a;
  std::shared_ptr<const Json> b;
};

struct Comparison {
  enum class Result { kEqual, kDiffers, kNotComparable };
  Result result = Result::kNotComparable;
  std::array<std::string, 2> core_sha256;
  std::vector<std::string> unlike;  // members of the core that make the two not comparable
  std::vector<std::string> only_a;
  std::vector<std::string> only_b;
  std::vector<RowDifference> rows;
};

// The core of a receipt or, where `name` ends in ".dsse.json", of an envelope's payload. An error,
// with the pointer of the first fault, for one that is not sound as a document: wrong form, or a
// core that is not the one its digest names.
Result<Json> ReadCore(const Knowledge& knowledge, const std::string& name, std::string_view bytes);

Comparison CompareReceipts(const Json& core_a, const Json& core_b);

// Schema: receipts/schemas/diff.v1.schema.json.
Json ComparisonJson(const Comparison& comparison);
std::string ComparisonText(const Comparison& comparison);
int ExitCodeOf(const Comparison& comparison);  // 0 equal, 1 differs, 3 not comparable

}  // namespace hallmark::verify

#endif  // HALLMARK_RECEIPTS_VERIFY_COMPARE_H_
