// SPDX-License-Identifier: Apache-2.0
// The receipt in plain words, for people: what was shown, clause by clause, what was not, and where
// the documents lie. Says nothing the receipt does not hold.
#ifndef HALLMARK_RECEIPTS_EMIT_SUMMARY_H_
#define HALLMARK_RECEIPTS_EMIT_SUMMARY_H_

#include <span>
#include <string>

#include "receipts/emit/must_pass.h"
#include "receipts/emit/statement.h"

namespace hallmark {

struct SummaryFacts {
  std::string checkpoint;  // the folder as the user gave it
  std::string subject;     // "cpu (avx512, 2 threads)"
  double seconds = 0;
};

std::string SummaryText(const SummaryFacts& facts, const ReceiptCore& core,
                        const std::string& core_digest, const Verdict& verdict);

}  // namespace hallmark

#endif  // HALLMARK_RECEIPTS_EMIT_SUMMARY_H_
