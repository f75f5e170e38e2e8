// SPDX-License-Identifier: Apache-2.0
// Clause: format-accept, format-reject
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cstring>
#include <initializer_list>

#include "conformance/format/fault.h"
#include "conformance/harness/random_checkpoint.h"
#include "engine/base/random.h"
#include "engine/format/safetensors.h"

namespace hallmark {
namespace {

template <typename T>
T OneOf(SplitMix64& random, std::initializer_list<T> choices) {
  return *(choices.begin() + random.Below(choices.size()));
}

// Seeds of full range, whatever the size of the run so far.
SplitMix64 Random() {
  return SplitMix64(*rc::gen::resize(rc::kNominalSize, rc::gen::arbitrary<uint64_t>()));
}

RC_GTEST_PROP(FormatProperty, RandomValidCheckpointsAreAccepted, ()) {
  SplitMix64 random = Random();
  CheckpointWriter writer(RandomCheckpointModel(random));
  if (writer.model().quantized && random.Below(2) == 0) writer.AddStorage();
  if (random.Below(2) == 0) writer.Shard(1 + static_cast<int>(random.Below(4)));
  const std::string folder = TestFolder();
  RC_ASSERT(writer.Write(folder, {.spaces = random.Below(9)}).has_value());
  const Verdict verdict = Judge(folder);
  if (verdict.error) RC_FAIL(verdict.error->ToString());
}

// Four faults a checkpoint, each alone: 400 in a run of 100.
RC_GTEST_PROP(FormatProperty, OneFaultInARandomCheckpointIsRefused, ()) {
  SplitMix64 random = Random();
  const SyntheticModel model = RandomCheckpointModel(random);
  const std::string folder = TestFolder();
  RC_ASSERT(CheckpointWriter(model).Write(folder).has_value());
  RC_ASSERT(!Judge(folder).error.has_value());
  for (int i = 0; i < 4; ++i) {
    CheckpointWriter writer(model);
    SpoilCheckpoint(writer, random);
    RC_ASSERT(writer.Write(folder).has_value());
    const Verdict verdict = Judge(folder);
    RC_ASSERT(verdict.error.has_value());
    RC_ASSERT(verdict.error->code != Code::kInternal);
    RC_ASSERT(verdict.error->where.file.starts_with(folder));
  }
}

std::vector<TensorSpec> RandomTable(SplitMix64& random) {
  std::vector<TensorSpec> tensors;
  const uint64_t count = random.Below(12);
  for (uint64_t i = 0; i < count; ++i) {
    TensorSpec tensor;
    // Unique, and with every kind of character that JSON escapes or UTF-8 spells in several bytes.
    tensor.name =
        std::to_string(i) + OneOf<const char*>(random, {"", "\"", "\\", "/", "\n", "\x01", "\u00e9",
                                                        "\u20ac", "\U0001F600"});
    tensor.dtype = static_cast<DType>(random.Below(16));
    const uint64_t rank = random.Below(4);
    for (uint64_t d = 0; d < rank; ++d) {
      tensor.shape.push_back(static_cast<int64_t>(random.Below(5)));
    }
    for (uint64_t b = 0; b < tensor.size(); ++b) {
      tensor.bytes.push_back(static_cast<char>(random.Next()));
    }
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

RC_GTEST_PROP(FormatProperty, ATableWrittenAndReadBackIsEqual, ()) {
  SplitMix64 random = Random();
  const std::vector<TensorSpec> tensors = RandomTable(random);
  const std::string path = TestFolder() + ".safetensors";
  SafetensorsStyle style{.align_data = random.Below(2) == 0, .spaces = random.Below(9)};
  if (random.Below(2) == 0) style.metadata = {{"a\"\n", "\u20ac"}, {"", ""}};
  RC_ASSERT(WriteSafetensors(path, tensors, style).has_value());
  const auto file = SafetensorsFile::Open(path);
  RC_ASSERT(file.has_value());
  RC_ASSERT(file->tensors().size() == tensors.size());
  RC_ASSERT(file->metadata() == style.metadata);
  for (const TensorSpec& tensor : tensors) {
    const TensorView* view = file->Find(tensor.name);
    RC_ASSERT(view != nullptr);
    RC_ASSERT(view->dtype == tensor.dtype);
    RC_ASSERT(view->shape == tensor.shape);
    RC_ASSERT(view->bytes.size() == tensor.bytes.size());
    RC_ASSERT(tensor.bytes.empty() ||
              std::memcmp(view->bytes.data(), tensor.bytes.data(), tensor.bytes.size()) == 0);
  }
}

RC_GTEST_PROP(FormatProperty, AHeaderWithOneByteChangedIsRefusedOrStillTilesTheFile, ()) {
  SplitMix64 random = Random();
  const std::vector<TensorSpec> tensors = RandomTable(random);
  std::string data;
  for (const TensorSpec& tensor : tensors) data += tensor.bytes;
  const std::string good = SafetensorsText(SafetensorsHeader(tensors), data);
  for (int i = 0; i < 200; ++i) {
    std::string file = good;
    file[random.Below(good.size() - data.size())] = static_cast<char>(random.Next());
    const auto table = ParseSafetensors(std::as_bytes(std::span(file)), "x");
    if (!table) {
      RC_ASSERT(table.error().where.byte.has_value());
      RC_ASSERT(*table.error().where.byte <= file.size());
      continue;
    }
    uint64_t total = 0;
    for (const TensorView& tensor : table->tensors) {
      RC_ASSERT(tensor.file_offset + tensor.bytes.size() <= file.size());
      RC_ASSERT(tensor.elements() * DTypeSize(tensor.dtype) ==
                static_cast<int64_t>(tensor.bytes.size()));
      total += tensor.bytes.size();
    }
    RC_ASSERT(total == data.size());
  }
}

}  // namespace
}  // namespace hallmark
