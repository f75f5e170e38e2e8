// SPDX-License-Identifier: Apache-2.0
// Clause: format-accept, format-reject
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <cstring>

#include "conformance/harness/random_checkpoint.h"
#include "conformance/validate/numbers.h"
#include "engine/base/random.h"

namespace hallmark {
namespace {

SplitMix64 Random() {
  return SplitMix64(*rc::gen::resize(rc::kNominalSize, rc::gen::arbitrary<uint64_t>()));
}

// With all of its data: headers alone are what this step is there to find.
SyntheticModel Model(SplitMix64& random) {
  SyntheticModel model = RandomCheckpointModel(random);
  model.data = true;
  return model;
}

std::string Folder() { return testing::TempDir() + "/numbers_prop"; }

// Random weights mean nothing, and none of them is at fault.
RC_GTEST_PROP(NumbersProperty, RandomValidCheckpointsAreQuiet, ()) {
  SplitMix64 random = Random();
  CheckpointWriter writer(Model(random));
  if (random.Below(2) == 0) writer.Shard(1 + static_cast<int>(random.Below(4)));
  RC_ASSERT(writer.Write(Folder(), {.spaces = random.Below(9)}).has_value());
  const auto report = ValidateNumbers({.folder = Folder()}, {});
  if (!report.has_value()) RC_FAIL(report.error().ToString());
  for (const Finding& finding : report->findings) {
    if (finding.severity != Severity::kNote) {
      RC_FAIL(finding.check + ": " + finding.error.ToString());
    }
  }
}

// One value anywhere that is not finite is found where it lies.
RC_GTEST_PROP(NumbersProperty, AValueThatIsNotFiniteIsFoundAnywhere, ()) {
  SplitMix64 random = Random();
  CheckpointWriter writer(Model(random));
  std::vector<std::string> names;
  for (const TensorSpec& tensor : writer.tensors()) {
    if (tensor.dtype == DType::kF16 || tensor.dtype == DType::kBF16) names.push_back(tensor.name);
  }
  RC_PRE(!names.empty());
  TensorSpec& tensor = writer.Tensor(names[random.Below(names.size())]);
  const size_t index = random.Below(tensor.bytes.size() / 2);
  const uint16_t sign = random.Below(2) == 0 ? 0x8000 : 0;
  const uint16_t infinity = tensor.dtype == DType::kF16 ? 0x7C00 : 0x7F80;
  const auto bits = static_cast<uint16_t>(sign | infinity | random.Below(2));
  std::memcpy(tensor.bytes.data() + 2 * index, &bits, sizeof(bits));
  RC_ASSERT(writer.Write(Folder()).has_value());
  const auto report = ValidateNumbers({.folder = Folder()}, {});
  RC_ASSERT(report.has_value());
  bool found = false;
  for (const Finding& finding : report->findings) {
    if (!finding.check.ends_with("not-finite")) continue;
    RC_ASSERT(finding.error.where.tensor == tensor.name);
    RC_ASSERT(finding.error.message.ends_with("index " + std::to_string(index)));
    found = true;
  }
  RC_ASSERT(found);
}

}  // namespace
}  // namespace hallmark
