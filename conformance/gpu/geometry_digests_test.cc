// SPDX-License-Identifier: Apache-2.0
// Four seeded layers of every public geometry: finite, lively logits that no cut of the ids
// changes, and the digests that golden/gpu/geometry_digests.json holds for this device's
// arithmetic. Where it holds none they are printed, to be recorded: another device, or one that
// computes otherwise.
#include <gtest/gtest.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "conformance/cases/lane_runs.h"
#include "conformance/gpu/gpu_session.h"
#include "conformance/harness/comparators.h"
#include "conformance/harness/safetensors_writer.h"
#include "engine/backend/backend.h"
#include "engine/base/json.h"
#include "engine/base/mapped_file.h"
#include "engine/base/sha256.h"
#include "engine/format/synth_model.h"

namespace hallmark {
namespace {

constexpr uint64_t kSeed = 20261129;
constexpr int64_t kLayers = 4;    // three DeltaNet, one attention
constexpr int64_t kVocab = 8192;  // the head's rows are not what this is about
constexpr double kBits = 3.5;     // two widths in one model
constexpr int64_t kTokens = 150;

// Writes the model into `folder`, which is there.
Status WriteModel(const SynthCheckpoint& model, const std::string& folder) {
  SynthFiller filler(kSeed);
  std::vector<TensorSpec> tensors;
  for (const SynthTensor& tensor : model.tensors) {
    TensorSpec& spec = tensors.emplace_back(
        TensorSpec{.name = tensor.name, .dtype = tensor.dtype, .shape = tensor.shape});
    spec.bytes.resize(tensor.bytes());
    filler.Fill(tensor, 0, std::as_writable_bytes(std::span(spec.bytes)));
  }
  TRY(WriteSafetensors(folder + "/model.safetensors", tensors, {.align_data = true}));
  if (!model.quantization.empty()) {
    TRY(WriteText(folder + "/quantization_config.json", model.quantization));
  }
  return WriteText(folder + "/config.json", model.config);
}

// What the digests depend on beside the weights.
std::string ArithmeticOf(const Session& session) {
  const auto device = session.device();
  return session.backend_name() + "," + session.tier() + "," + (device ? device->fingerprint : "");
}

// The digest on record; empty where there is none for this arithmetic. Fails on an arithmetic that
// is on record and lacks the model: a record is whole or absent.
Result<std::string> Recorded(const std::string& arithmetic, const std::string& model, KvType kv) {
  const std::string path = GoldenPath("gpu/geometry_digests.json");
  if (!HasEntry(path)) return std::string();
  const Json json = TRY(ReadJsonFile(path));
  const Json::json_pointer all("/arithmetics");
  if (!json.contains(all)) return Fail(Code::kMalformed, "no arithmetics", {.file = path});
  if (!json[all].contains(arithmetic)) return std::string();
  const Json& models = json[all][arithmetic];
  if (!models.contains(model) || !models[model].contains(KvName(kv)) ||
      !models[model][KvName(kv)].is_string()) {
    return Fail(Code::kMalformed, "no digest of " + model + " " + KvName(kv), {.file = path});
  }
  return models[model][KvName(kv)].get<std::string>();
}

// The names under which geometries differ.
std::vector<std::string> GeometryNames() {
  std::vector<std::string> names;
  std::set<std::pair<int64_t, int64_t>> seen;
  for (const SynthGeometry& geometry : SynthGeometries()) {
    if (seen.emplace(geometry.hidden, geometry.value_heads).second) {
      names.emplace_back(geometry.name);
    }
  }
  return names;
}

class GeometryDigests : public testing::TestWithParam<std::string> {};

TEST_P(GeometryDigests, FourLayersGiveTheRecordedLogits) {
  SynthModelOptions options{.geometry = *FindSynthGeometry(GetParam()), .bits = kBits};
  options.geometry.layers = kLayers;
  options.geometry.vocab = kVocab;
  const auto model = MakeSynthModel(options);
  ASSERT_TRUE(model.has_value()) << model.error().ToString();
  const auto folder = SyntheticFolder::Make();
  ASSERT_TRUE(folder.has_value()) << folder.error().ToString();
  const Status written = WriteModel(*model, folder->path());
  ASSERT_TRUE(written.has_value()) << written.error().ToString();

  const std::vector<int32_t> ids = RulePrompt(kVocab, kTokens, kSeed);
  for (const KvType kv : {KvType::kBf16, KvType::kFp8E4m3}) {
    const auto session = OpenOnDevice(folder->path(), {.kv = kv});
    ASSERT_TRUE(session.has_value()) << session.error().ToString();
    const auto whole = (*session)->Logits(ids);
    ASSERT_TRUE(whole.has_value()) << whole.error().ToString();
    const Liveness liveness = MeasureLiveness(*whole, static_cast<size_t>(kVocab));
    EXPECT_TRUE(liveness.Passed()) << liveness.ToString();
    for (const int64_t chunk : {1, 17}) {
      const auto pieces = (*session)->Logits(ids, chunk);
      ASSERT_TRUE(pieces.has_value()) << pieces.error().ToString();
      const BitComparison comparison = CompareBits<float>(*whole, *pieces);
      EXPECT_TRUE(comparison.Passed()) << "pieces of " << chunk << ": " << comparison.ToString();
    }
    const std::string arithmetic = ArithmeticOf(**session);
    const std::string digest = Sha256HexOf(std::span<const float>(*whole));
    const auto recorded = Recorded(arithmetic, GetParam(), kv);
    ASSERT_TRUE(recorded.has_value()) << recorded.error().ToString();
    std::printf("%s: {\"%s\": {\"%s\": \"%s\"}}\n", arithmetic.c_str(), GetParam().c_str(),
                KvName(kv).c_str(), digest.c_str());
    if (!recorded->empty()) {
      EXPECT_EQ(digest, *recorded) << GetParam() << " " << KvName(kv);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Public, GeometryDigests, testing::ValuesIn(GeometryNames()),
                         [](const auto& info) {
                           std::string name = info.param;
                           for (char& c : name) {
                             if (c == '.' || c == '-') c = '_';
                           }
                           return name;
                         });

}  // namespace
}  // namespace hallmark
