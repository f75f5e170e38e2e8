// SPDX-License-Identifier: Apache-2.0
// Clause scratch-clean on the whole model: the memory that the phases of a layer share, filled with
// NaN whenever a phase has ended, changes no logit and no state; nor does sharing it.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "conformance/cases/faulty_backend.h"
#include "conformance/harness/comparators.h"
#include "conformance/harness/paths.h"
#include "conformance/model/golden.h"
#include "conformance/model/loaded_model.h"
#include "engine/model/forward.h"

namespace hallmark {
namespace {

constexpr ScratchOptions kApart = {.overlap = false};
constexpr ScratchOptions kShared = {};
constexpr ScratchOptions kPoisoned = {.poison = true};

struct Trace {
  std::vector<float> logits;
  std::string digests;
};

std::vector<int32_t> GoldenIds(const std::string& name, size_t count) {
  auto runs = ReadGolden(GoldenPath("models/" + name));
  EXPECT_TRUE(runs.has_value());
  for (const GoldenRun& run : *runs) {
    if (run.ids.size() >= count) return {run.ids.begin(), run.ids.begin() + count};
  }
  ADD_FAILURE() << name << " has no run of " << count << " ids";
  return {};
}

// Everything a pass does: a prompt in pieces, two streams in one call, a window that is verified
// and partly committed, and rows after it.
Trace Exercise(const LoadedModel& loaded, KvType kv, std::span<const int32_t> ids,
               const ScratchOptions& scratch) {
  Trace trace;
  const Model& model = *loaded.model;
  auto pass = ForwardPass::Create(model, 48, {1, 2}, scratch);
  auto first = Sequence::Create(*loaded.backend, model.config, kv);
  auto second = Sequence::Create(*loaded.backend, model.config, kv);
  auto window = VerifyWindow::Create(model, 9);
  EXPECT_TRUE(pass.has_value() && first.has_value() && second.has_value() && window.has_value());
  const auto keep = [&](const std::vector<float>& logits) {
    trace.logits.insert(trace.logits.end(), logits.begin(), logits.end());
  };
  const size_t prompt = ids.size() - 30;
  auto whole = pass->Run(*first, ids.first(prompt), {.logits = LogitRows::kAll});
  EXPECT_TRUE(whole.has_value()) << whole.error().ToString();
  if (!whole) return trace;
  keep(whole->logits);
  const PassSlice slices[] = {
      {.sequence = &*first,
       .ids = ids.subspan(prompt, 9),
       .logits = LogitRows::kAll,
       .window = &*window},
      {.sequence = &*second, .ids = ids.first(21), .logits = LogitRows::kAll}};
  auto verified = pass->RunSlices(slices);
  EXPECT_TRUE(verified.has_value()) << verified.error().ToString();
  if (!verified) return trace;
  for (const auto& logits : *verified) keep(logits);
  const Status committed = pass->Commit(*first, *window, 5);
  EXPECT_TRUE(committed.has_value());
  for (Sequence* sequence : {&*first, &*second}) {
    const size_t at = static_cast<size_t>(sequence->position());
    auto more = pass->Run(*sequence, ids.subspan(at, 3), {.logits = LogitRows::kAll});
    EXPECT_TRUE(more.has_value());
    if (more) keep(more->logits);
    auto digest = sequence->StateDigest();
    EXPECT_TRUE(digest.has_value());
    if (digest) trace.digests += *digest;
  }
  return trace;
}

class ScratchClean : public testing::TestWithParam<KvType> {
 protected:
  void Compare(const ScratchOptions& plain, const ScratchOptions& other) const {
    for (const char* name : {"scribe-11m-exl3", "prism-exl3"}) {
      for (const CpuTier tier : SupportedCpuTiers()) {
        auto loaded = LoadModel(GoldenPath(std::string("models/") + name), {.tier = tier});
        ASSERT_TRUE(loaded.has_value()) << loaded.error().ToString();
        const std::vector<int32_t> ids = GoldenIds(name, 100);
        const Trace expected = Exercise(*loaded, GetParam(), ids, plain);
        const Trace actual = Exercise(*loaded, GetParam(), ids, other);
        const BitComparison comparison = CompareBits<float>(expected.logits, actual.logits);
        EXPECT_TRUE(comparison.Passed()) << name << ": " << comparison.ToString();
        EXPECT_EQ(comparison.compared,
                  (70u + 9 + 21 + 3 + 3) * static_cast<size_t>(loaded->model->config.vocab));
        EXPECT_EQ(expected.digests.size(), 2u * 64);
        EXPECT_EQ(expected.digests, actual.digests) << name;
      }
    }
  }
};

TEST_P(ScratchClean, PoisonChangesNoBit) { Compare(kApart, kPoisoned); }

TEST_P(ScratchClean, SharedMemoryChangesNoBit) { Compare(kApart, kShared); }

INSTANTIATE_TEST_SUITE_P(Caches, ScratchClean, testing::Values(KvType::kBf16, KvType::kFp8E4m3),
                         [](const testing::TestParamInfo<KvType>& info) {
                           return info.param == KvType::kBf16 ? "bf16" : "fp8";
                         });

class FillCounter : public FaultyBackend {
 public:
  explicit FillCounter(Backend& real) : FaultyBackend(real, Fault::kNone) {}
  Status Fill(void* destination, uint8_t byte, size_t bytes) override {
    if (byte == 0xFF) sizes.push_back(bytes);
    return FaultyBackend::Fill(destination, byte, bytes);
  }
  std::vector<size_t> sizes;
};

// The poison is there: after every phase, over all of the memory that the phases share.
TEST(ScratchCleanControl, EveryPhaseEdgeFillsTheSharedMemory) {
  auto loaded = LoadModel(GoldenPath("models/scribe-11m-exl3"), {});
  ASSERT_TRUE(loaded.has_value());
  FillCounter counter(*loaded->backend);
  auto model = Model::Load(*loaded->inventory, loaded->checkpoint->config(), counter);
  ASSERT_TRUE(model.has_value());
  const std::vector<int32_t> ids = GoldenIds("scribe-11m-exl3", 20);
  for (const ScratchOptions& scratch : {kShared, kPoisoned}) {
    counter.sizes.clear();
    auto pass = ForwardPass::Create(**model, 16, {}, scratch);
    auto sequence = Sequence::Create(counter, (*model)->config, KvType::kBf16);
    ASSERT_TRUE(pass.has_value() && sequence.has_value());
    ASSERT_TRUE(pass->Run(*sequence, ids).has_value());
    // Two pieces; before the first layer, and after the mixer and the MLP of each.
    const size_t edges = 2 * (1 + 2 * (*model)->layers.size());
    EXPECT_EQ(counter.sizes.size(), scratch.poison ? edges : 0u);
    const ScratchLayout layout = LayOutScratch((*model)->config, 16, 0);
    for (const size_t bytes : counter.sizes) EXPECT_EQ(bytes, layout.shared_bytes);
  }
}

TEST(ScratchCleanControl, PhasesShareAndWhatOutlivesThemDoesNot) {
  auto loaded = LoadModel(GoldenPath("models/scribe-11m-exl3"), {});
  ASSERT_TRUE(loaded.has_value());
  const ModelConfig& config = loaded->model->config;
  const ScratchLayout shared = LayOutScratch(config, 48, 2);
  EXPECT_LT(shared.shared_bytes, LayOutScratch(config, 48, 2, false).shared_bytes);
  for (const ScratchPart part : {ScratchPart::kQGate, ScratchPart::kQkv, ScratchPart::kGate}) {
    EXPECT_TRUE(shared.at(part).phase.has_value());
    EXPECT_EQ(shared.at(part).offset, 0u);
  }
  for (const ScratchPart part : {ScratchPart::kHidden, ScratchPart::kNormed, ScratchPart::kMixed,
                                 ScratchPart::kTaps, ScratchPart::kLogits}) {
    EXPECT_FALSE(shared.at(part).phase.has_value());
  }
}

// Slots of one phase never meet, and every slot lies in the region.
TEST(ScratchCleanControl, SlotsOfAPhaseAreApart) {
  auto loaded = LoadModel(GoldenPath("models/prism-exl3"), {});
  ASSERT_TRUE(loaded.has_value());
  for (const bool overlap : {true, false}) {
    const ScratchLayout layout = LayOutScratch(loaded->model->config, 128, 0, overlap);
    int pairs = 0;
    for (const ScratchSlot& a : layout.slots) {
      if (!a.phase) continue;
      EXPECT_LE(a.offset + a.bytes, layout.shared_bytes);
      EXPECT_EQ(a.offset % kScratchAlignment, 0u);
      for (const ScratchSlot& b : layout.slots) {
        if (&a == &b || !b.phase || (overlap && a.phase != b.phase)) continue;
        EXPECT_TRUE(a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset);
        ++pairs;
      }
    }
    EXPECT_EQ(pairs, overlap ? 20 + 30 + 2 : 13 * 12);
  }
}

}  // namespace
}  // namespace hallmark
