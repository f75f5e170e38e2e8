// SPDX-License-Identifier: Apache-2.0
// Clause: format-accept, format-reject
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "conformance/harness/random_checkpoint.h"
#include "conformance/validate/broken_checkpoint.h"
#include "conformance/validate/structure.h"
#include "engine/format/inventory.h"

namespace hallmark {
namespace {

// Seeds of full range, whatever the size of the run so far.
SplitMix64 Random() {
  return SplitMix64(*rc::gen::resize(rc::kNominalSize, rc::gen::arbitrary<uint64_t>()));
}

// What the reader that opens models for running says.
Status Open(const std::string& folder) {
  const Checkpoint checkpoint = TRY(Checkpoint::Open(folder));
  TRY(TakeInventory(checkpoint));
  return {};
}

// The writer makes no text side.
bool IsOfTheTextSide(const Finding& finding) {
  constexpr std::array<std::string_view, 4> kKnown = {"tokenizer-missing", "chat-template-missing",
                                                      "licence-missing", "no-stop-id"};
  return std::find(kKnown.begin(), kKnown.end(), finding.check) != kKnown.end();
}

// Five checkpoints a case: 500 in a run of 100.
RC_GTEST_PROP(StructureProperty, NothingIsWrongWithAValidCheckpoint, ()) {
  SplitMix64 random = Random();
  for (int i = 0; i < 5; ++i) {
    SyntheticModel model = RandomCheckpointModel(random);
    model.data = false;  // headers are all that is read
    CheckpointWriter writer(model);
    if (model.quantized && random.Below(2) == 0) writer.AddStorage();
    if (random.Below(2) == 0) writer.Shard(1 + static_cast<int>(random.Below(4)));
    const std::string folder = ScratchFolder();
    RC_ASSERT(writer.Write(folder, {.spaces = random.Below(9)}).has_value());
    const auto report = ValidateStructure({.folder = folder}, {});
    RC_ASSERT(report.has_value());
    for (const Finding& finding : report->findings) {
      if (finding.severity == Severity::kNote || IsOfTheTextSide(finding)) continue;
      RC_FAIL(finding.check + ": " + finding.error.ToString());
    }
  }
}

// Neither may know of a fault that the other does not.
RC_GTEST_PROP(StructureProperty, ErrorsAreFoundExactlyWhereTheReaderRefuses, ()) {
  SplitMix64 random = Random();
  SyntheticModel model = RandomCheckpointModel(random);
  model.data = false;
  for (int i = 0; i < 4; ++i) {
    CheckpointWriter writer(model);
    // Every fifth has no fault.
    if (random.Below(5) != 0) SpoilCheckpoint(writer, random);
    const std::string folder = ScratchFolder();
    RC_ASSERT(writer.Write(folder).has_value());
    const Status opened = Open(folder);
    const auto report = ValidateStructure({.folder = folder}, {});
    RC_ASSERT(report.has_value());
    const bool errors =
        std::any_of(report->findings.begin(), report->findings.end(),
                    [](const Finding& finding) { return finding.severity == Severity::kError; });
    if (errors == opened.has_value()) {
      RC_FAIL(opened.has_value() ? "found: " + report->findings[0].error.ToString()
                                 : "not found: " + opened.error().ToString());
    }
    for (const Finding& finding : report->findings) {
      RC_ASSERT(finding.error.where.file.starts_with(folder));
    }
  }
}

}  // namespace
}  // namespace hallmark
