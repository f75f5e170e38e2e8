// SPDX-License-Identifier: Apache-2.0
// Clause: model-golden
// Clause: chunked-equals-whole
// Clause: scratch-clean
// Random tiny models: the engine against an independent fp64 forward pass, and against itself under
// random cuts, tiers, threads and caches.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "conformance/harness/checkpoint_writer.h"
#include "conformance/harness/comparators.h"
#include "conformance/harness/tolerances.h"
#include "conformance/model/loaded_model.h"
#include "conformance/model/reference.h"
#include "engine/backend/cpu/widen.h"
#include "engine/base/random.h"
#include "engine/model/forward.h"

namespace hallmark {
namespace {

SyntheticModel RandomGeometry(SplitMix64& random) {
  SyntheticModel model;
  model.seed = random.Next();
  model.hidden = random.Below(2) == 0 ? 128 : 256;
  model.intermediate = 100 + static_cast<int64_t>(random.Below(200));
  model.vocab = 200 + static_cast<int64_t>(random.Below(200));
  model.interval = 2 + static_cast<int>(random.Below(2));
  model.layers = 2 * model.interval;
  model.kv_heads = 1 + static_cast<int>(random.Below(2));
  model.heads = model.kv_heads * (1 + static_cast<int>(random.Below(3)));
  model.key_heads = 1 + static_cast<int>(random.Below(2));
  model.value_heads = model.key_heads * (1 + static_cast<int>(random.Below(3)));
  model.tied = random.Below(3) == 0;
  return model;
}

std::vector<int32_t> RandomIds(SplitMix64& random, size_t count, int64_t vocab) {
  std::vector<int32_t> ids(count);
  for (int32_t& id : ids) id = static_cast<int32_t>(random.Below(static_cast<uint64_t>(vocab)));
  return ids;
}

// Writes `model` to a folder of this process and loads it.
LoadedModel WriteAndLoad(const SyntheticModel& model, const CpuBackendOptions& options,
                         std::string* folder = nullptr) {
  // One folder a process: the properties of this file may run side by side.
  const std::string path = testing::TempDir() + "/model_prop." + std::to_string(::getpid());
  const Status written = CheckpointWriter(model).Write(path);
  RC_ASSERT(written.has_value());
  auto loaded = LoadModel(path, options);
  if (!loaded) RC_FAIL(loaded.error().ToString());
  if (folder != nullptr) *folder = path;
  return std::move(*loaded);
}

// Every tensor of the model as fp64, without the prefix.
ReferenceWeights WidenAll(const LoadedModel& loaded, const std::string& prefix) {
  ReferenceWeights weights;
  for (const TensorView& tensor : loaded.checkpoint->tensors()) {
    std::vector<float> values(static_cast<size_t>(tensor.elements()));
    RC_ASSERT(WidenToFloat(tensor, 0, tensor.elements(), values.data()).has_value());
    std::string name = tensor.name;
    if (name.starts_with(prefix)) name = name.substr(prefix.size());
    weights[name] = std::vector<double>(values.begin(), values.end());
  }
  return weights;
}

struct Trace {
  std::vector<float> logits;
  std::string digest;
};

// Feeds ids in pieces of the given lengths (the last piece takes the rest).
Trace Feed(const LoadedModel& loaded, KvType kv, std::span<const int32_t> ids,
           const std::vector<size_t>& pieces, const ScratchOptions& scratch = {}) {
  auto pass = ForwardPass::Create(*loaded.model, ForwardPass::kMaxRows, {}, scratch);
  auto sequence = Sequence::Create(*loaded.backend, loaded.model->config, kv);
  RC_ASSERT(pass.has_value() && sequence.has_value());
  Trace trace;
  size_t done = 0;
  for (size_t i = 0; done < ids.size(); ++i) {
    const size_t left = ids.size() - done;
    const size_t count = i < pieces.size() ? std::min(pieces[i], left) : left;
    auto output = pass->Run(*sequence, ids.subspan(done, count), {.logits = LogitRows::kAll});
    if (!output) RC_FAIL(output.error().ToString());
    trace.logits.insert(trace.logits.end(), output->logits.begin(), output->logits.end());
    done += count;
  }
  trace.digest = *sequence->StateDigest();
  return trace;
}

RC_GTEST_PROP(TinyModel, LogitsAgreeWithTheFp64Reference, (uint64_t seed)) {
  SplitMix64 random(seed);
  SyntheticModel model = RandomGeometry(random);
  model.quantized = false;
  const LoadedModel loaded = WriteAndLoad(model, {});
  const auto ids = RandomIds(random, 4 + random.Below(20), model.vocab);
  const auto truth =
      ReferenceLogits(loaded.model->config, WidenAll(loaded, loaded.inventory->prefix), ids);
  const Trace ours = Feed(loaded, KvType::kBf16, ids, {});
  const std::vector<float> expected(truth.begin(), truth.end());
  const Drift drift = MeasureDrift(expected, ours.logits, static_cast<size_t>(model.vocab));
  RC_LOG() << drift.ToString();
  RC_ASSERT(drift.rows == ids.size());
  RC_ASSERT(drift.Within(Tolerance("tiny-logits-rms"), Tolerance("tiny-logits-kl")));
}

RC_GTEST_PROP(TinyModel, AnyCutTierAndThreadCountGivesTheSameBits, (uint64_t seed)) {
  SplitMix64 random(seed);
  SyntheticModel model = RandomGeometry(random);
  model.codebook = static_cast<Codebook>(random.Below(3));
  model.k2 = 2 * (1 + static_cast<int>(random.Below(8)));
  model.packed_signs = random.Below(4) == 0;
  const KvType kv = random.Below(2) == 0 ? KvType::kBf16 : KvType::kFp8E4m3;
  const auto ids = RandomIds(random, 2 + random.Below(90), model.vocab);
  const LoadedModel loaded = WriteAndLoad(model, {.threads = 1});
  const Trace whole = Feed(loaded, kv, ids, {});
  const auto tiers = SupportedCpuTiers();
  const CpuTier tier = tiers[random.Below(tiers.size())];
  auto other = LoadModel(loaded.checkpoint->folder(),
                         {.threads = 1 + static_cast<int>(random.Below(3)), .tier = tier});
  RC_ASSERT(other.has_value());
  std::vector<size_t> pieces;
  for (size_t total = 0; total < ids.size(); total += pieces.back()) {
    pieces.push_back(1 + random.Below(random.Below(2) == 0 ? 4 : 70));
  }
  const Trace cut = Feed(*other, kv, ids, pieces);
  RC_ASSERT(CompareBits<float>(whole.logits, cut.logits).Passed());
  RC_ASSERT(whole.digest == cut.digest);
}

RC_GTEST_PROP(TinyModel, PoisonInSharedScratchChangesNoBit, (uint64_t seed)) {
  SplitMix64 random(seed);
  const SyntheticModel model = RandomGeometry(random);
  const KvType kv = random.Below(2) == 0 ? KvType::kBf16 : KvType::kFp8E4m3;
  const auto ids = RandomIds(random, 2 + random.Below(60), model.vocab);
  const LoadedModel loaded = WriteAndLoad(model, {});
  const std::vector<size_t> pieces = {1 + random.Below(ids.size())};
  const Trace apart = Feed(loaded, kv, ids, pieces, {.overlap = false});
  const Trace poisoned = Feed(loaded, kv, ids, pieces, {.poison = true});
  RC_ASSERT(CompareBits<float>(apart.logits, poisoned.logits).Passed());
  RC_ASSERT(apart.digest == poisoned.digest);
}

}  // namespace
}  // namespace hallmark
