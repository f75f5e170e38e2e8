// SPDX-License-Identifier: Apache-2.0
// IssueReceipt: runs the cases of a level on an open session and writes the receipt and its summary
// into a folder. Cases that fail make a receipt that says so: only what keeps a receipt from being
// made at all is an error. Core bytes depend on checkpoint, level, cache type and arithmetic alone.
#ifndef HALLMARK_RECEIPTS_EMIT_ISSUE_H_
#define HALLMARK_RECEIPTS_EMIT_ISSUE_H_

#include <functional>
#include <string>
#include <string_view>

#include "engine/run/session.h"
#include "receipts/emit/must_pass.h"

namespace hallmark {

struct ReceiptRequest {
  Level level = Level::kL2;
  std::string golden;         // the golden folder
  std::string out_directory;  // made if absent
  // Told before each case: its number from 1, how many there are, its name. May be empty.
  std::function<void(size_t, size_t, std::string_view)> on_case;
};

struct IssuedReceipt {
  Verdict verdict;
  std::string core_digest;
  std::string summary;       // the text of the summary file
  std::string path;          // of the receipt
  std::string summary_path;  // beside it
};

Result<IssuedReceipt> IssueReceipt(Session& session, const ReceiptRequest& request);

}  // namespace hallmark

#endif  // HALLMARK_RECEIPTS_EMIT_ISSUE_H_
