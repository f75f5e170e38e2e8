// SPDX-License-Identifier: Apache-2.0
// ReceiptVerdict: what came of one receipt, as a document and in plain words. Facts stay in the
// receipt; the verdict names it by digest, with the policy it was judged by and every reason.
// Schema: receipts/schemas/verdict.v1.schema.json.
#ifndef HALLMARK_RECEIPTS_VERIFY_VERDICT_H_
#define HALLMARK_RECEIPTS_VERIFY_VERDICT_H_

#include <cstddef>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "receipts/verify/outcome.h"
#include "receipts/verify/reason.h"
#include "receipts/verify/waivers.h"

namespace hallmark::verify {

struct ReceiptVerdict {
  std::string file;    // as the user gave it, UTF-8
  std::string sha256;  // of the receipt's bytes; of an envelope, those of its payload
  std::string core_sha256;
  std::string level_claimed;
  std::string level_reached;  // empty: none
  std::string policy;
  std::string policy_sha256;
  Outcome outcome = Outcome::kFail;
  std::vector<Reason> reasons;  // the first Findings::kMost
  size_t reasons_found = 0;
  std::map<std::string, std::map<std::string, size_t>> clauses;  // clause, outcome: rows
  std::vector<Waiver> waived;                                    // those that a failed row used
  std::string signature = "none";                                // none, unchecked, valid, refused
};

// A file that could not be read: undecided, with one reason.
ReceiptVerdict Unreadable(const std::string& file, const std::string& why);

// PASSED, WAIVED, DENIED (fail, crash) or UNDECIDED.
std::string_view ResultWord(Outcome outcome);

nlohmann::json VerdictJson(std::span<const ReceiptVerdict> verdicts);
std::string VerdictText(const ReceiptVerdict& verdict);

// Non-conforming outweighs undecided: 1 when any is denied, else 3 when any is not passed.
int ExitCodeOfAll(std::span<const ReceiptVerdict> verdicts);

}  // namespace hallmark::verify

#endif  // HALLMARK_RECEIPTS_VERIFY_VERDICT_H_
