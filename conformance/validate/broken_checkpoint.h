// SPDX-License-Identifier: Apache-2.0
// BrokenCheckpoint: one thing wrong with the golden checkpoint or its drafter, and what the
// structure step must say of it: that, and no more. For its suites only.
#ifndef HALLMARK_CONFORMANCE_VALIDATE_BROKEN_CHECKPOINT_H_
#define HALLMARK_CONFORMANCE_VALIDATE_BROKEN_CHECKPOINT_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "conformance/validate/checkpoint_copy.h"
#include "conformance/validate/finding.h"

namespace hallmark {

struct Expected {
  std::string check;
  Code code = Code::kMalformed;
  std::string file;  // in the folder; "" for the folder itself
  std::string pointer;
  std::string tensor;
  std::optional<uint64_t> byte;  // not compared when absent
};

struct BrokenCheckpoint {
  std::string name;  // CamelCase
  std::function<void(CheckpointCopy&)> plant;
  std::function<void(const std::string&)> edit;  // of the folder once written
  std::vector<Expected> expected;  // errors and warnings, gravest first; notes if alone
  bool sharded = false;
  bool drafter = false;  // the fault is in the drafter
};
std::ostream& operator<<(std::ostream& out, const BrokenCheckpoint& broken);

// A folder of this test alone, in a place that is removed when the process ends.
std::string ScratchFolder();

// Writes the case and compares what the step says, as assertions of the current test.
void ExpectFound(const BrokenCheckpoint& broken);

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_VALIDATE_BROKEN_CHECKPOINT_H_
