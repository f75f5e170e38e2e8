// SPDX-License-Identifier: Apache-2.0
// Fault: one thing wrong with a checkpoint, and the refusal it must give. The control, the same
// checkpoint without the fault, is accepted first. For the format suites only.
#ifndef HALLMARK_CONFORMANCE_FORMAT_FAULT_H_
#define HALLMARK_CONFORMANCE_FORMAT_FAULT_H_

#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

#include "conformance/harness/checkpoint_writer.h"
#include "engine/base/error.h"

namespace hallmark {

enum class Phase { kAccepted, kOpen, kInventory, kValues };

struct Fault {
  std::string name;      // behaviour in words, CamelCase
  SyntheticModel model;  // of the control
  // Changes the control, on the way to the folder; `folder_edit` changes the folder once written.
  std::function<void(CheckpointWriter&)> plant;
  std::function<void(const std::string&)> folder_edit;
  int shards = 0;  // 0: one file

  Phase phase = Phase::kInventory;
  Code code = Code::kMalformed;
  // Expected place; the file is relative to the folder, "" for the folder itself.
  std::string file;
  std::string pointer;
  std::string tensor;
};
std::ostream& operator<<(std::ostream& out, const Fault& fault);

// What all phases said of a folder: the first refusal, or kAccepted.
struct Verdict {
  Phase phase = Phase::kAccepted;
  std::optional<Error> error;
};
Verdict Judge(const std::string& folder);

// Runs control and fault as test assertions of the current test.
void ExpectRefused(const Fault& fault);

// A folder of this test alone.
std::string TestFolder();

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_FORMAT_FAULT_H_
