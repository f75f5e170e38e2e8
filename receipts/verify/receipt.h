// SPDX-License-Identifier: Apache-2.0
// Receipt: a statement of the right shape with the parts that checks ask for again and again. Holds
// what the receipt claims; nothing in here has been judged.
#ifndef HALLMARK_RECEIPTS_VERIFY_RECEIPT_H_
#define HALLMARK_RECEIPTS_VERIFY_RECEIPT_H_

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "receipts/verify/knowledge.h"
#include "receipts/verify/outcome.h"
#include "receipts/verify/reason.h"

namespace hallmark::verify {

struct ReceiptRow {
  const Json* json = nullptr;
  std::string pointer;
  std::string name;  // "clause/case"
  std::string clause;
  std::string case_name;
  Outcome outcome = Outcome::kHarnessError;
};

struct Receipt {
  const Json* statement = nullptr;
  const Json* core = nullptr;
  const Json* context = nullptr;
  std::string level;
  int rank = -1;           // of the level; -1 when unknown
  std::string arithmetic;  // the id, and its part before the first '/'
  std::string backend;
  std::string fingerprint;  // of the device that the context names; empty without one
  std::string kv;
  std::string drafter;                       // sha256 of its list of files; empty without one
  std::map<std::string, std::string> files;  // of checkpoint, and of the drafter as drafter/NAME
  std::vector<ReceiptRow> rows;              // in the receipt's order
  std::map<std::string, const ReceiptRow*> by_name;
  std::vector<const GoldenModel*> golden;  // at most one a level's list, lowest level first
  std::vector<std::string> missing;        // needed by the level it claims, in list order
};

// `statement` must outlive the result.
Receipt ReadClaims(const Knowledge& knowledge, const Json& statement);

// Each adds what contradicts the receipt itself, the embedded documents or the pins.
void CheckCore(const Knowledge& knowledge, const Receipt& receipt, Findings& findings);
void CheckRows(const Knowledge& knowledge, const Receipt& receipt, Findings& findings);
// A part of CheckRows.
void CheckRelations(const Knowledge& knowledge, const Receipt& receipt, Findings& findings);
void CheckPins(const Knowledge& knowledge, const Receipt& receipt, Findings& findings);
void CheckContext(const Knowledge& knowledge, const Receipt& receipt, Findings& findings);

}  // namespace hallmark::verify

#endif  // HALLMARK_RECEIPTS_VERIFY_RECEIPT_H_
