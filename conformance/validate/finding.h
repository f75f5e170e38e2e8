// SPDX-License-Identifier: Apache-2.0
// Finding: one thing that validation has to say about a checkpoint, with its place and what to do;
// and StepReport, what one step of validation found. Not for errors that end a command: those are
// Error values (engine/base/error.h). Clauses format-accept, format-reject.
#ifndef HALLMARK_CONFORMANCE_VALIDATE_FINDING_H_
#define HALLMARK_CONFORMANCE_VALIDATE_FINDING_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "conformance/validate/judged_file.h"
#include "engine/base/error.h"
#include "engine/base/json.h"

namespace hallmark {

enum class Severity {
  kNote,     // worth knowing; nothing is wrong
  kWarning,  // runs, and a user may be surprised
  kError,    // the checkpoint does not conform
};

struct Finding {
  Severity severity = Severity::kError;
  std::string clause;  // word id of docs/contract
  std::string check;   // stable kebab-case id, e.g. "unused-tensor"; documented in the guide
  Error error;         // code, one sentence, locator
  std::string action;  // one sentence: what to do about it
};

struct StepReport {
  std::string step;  // "structure", "numbers", "behaviour", "source"
  std::vector<Finding> findings;
  // What was measured, as the JSON report states it: an object, or null for none. Behind a pointer,
  // since only .cc files know JSON whole: std::make_shared<const Json>(...).
  std::shared_ptr<const Json> facts;
  // How much was looked at, by what it is: {"tensors", 256}. A step that accepts without this, or
  // with a zero in it, has shown nothing (validation.h).
  std::map<std::string, uint64_t> compared;
  std::vector<JudgedFile> files;   // that were read whole, or whose headers were
  std::vector<std::string> lines;  // what was measured, in a few lines for a terminal
};

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_VALIDATE_FINDING_H_
