// SPDX-License-Identifier: Apache-2.0
// Clause draft-golden: what a drafter takes from its target and its files, and what it refuses.
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "conformance/cases/faulty_backend.h"
#include "conformance/draft/loaded_drafter.h"
#include "conformance/harness/drafter_writer.h"
#include "conformance/harness/paths.h"

namespace hallmark {
namespace {

const std::string kTarget = "models/scribe-11m-exl3";
const std::string kDrafter = "models/scribe-11m-dflash2";

// A real backend but for its fault, with draft operations or without.
class DraftingBackend : public FaultyBackend {
 public:
  DraftingBackend(Backend& real, Fault fault, DraftOps* ops)
      : FaultyBackend(real, fault), ops_(ops) {}
  DraftOps* draft_ops() override { return ops_; }

 private:
  DraftOps* ops_;
};

void ExpectRefused(const Result<LoadedDrafter>& loaded, Code code, const std::string& pointer) {
  ASSERT_FALSE(loaded.has_value()) << pointer;
  EXPECT_EQ(loaded.error().code, code) << loaded.error().ToString();
  EXPECT_EQ(loaded.error().where.pointer, pointer) << loaded.error().ToString();
}

TEST(DrafterLoad, TapsAreLayerOutputsInTheListedOrder) {
  const auto loaded = LoadDrafter(GoldenPath(kTarget), GoldenPath(kDrafter));
  ASSERT_TRUE(loaded.has_value()) << loaded.error().ToString();
  EXPECT_EQ(loaded->drafter->taps(), (std::vector<int>{2, 4, 6}));
  EXPECT_EQ(loaded->drafter->context_rows(), 127);
  EXPECT_EQ(loaded->drafter->quantized_matrices(), 0);
  const std::string folder = testing::TempDir() + "hallmark_drafter_taps";
  ASSERT_TRUE(
      DrafterWriter(
          {.hidden = 256, .vocab = 4096, .window = 0, .targets = {5, 0, 3}, .target_layers = 8})
          .Write(folder));
  const auto other = LoadDrafter(GoldenPath(kTarget), folder);
  ASSERT_TRUE(other.has_value()) << other.error().ToString();
  EXPECT_EQ(other->drafter->taps(), (std::vector<int>{6, 1, 4}));
  EXPECT_EQ(other->drafter->context_rows(), std::nullopt);
}

TEST(DrafterLoad, ADrafterOfAnotherTargetIsRefused) {
  const std::string folder = testing::TempDir() + "hallmark_drafter_misfit";
  const auto load = [&](const SyntheticDrafter& drafter) {
    EXPECT_TRUE(DrafterWriter(drafter).Write(folder));
    return LoadDrafter(GoldenPath(kTarget), folder);
  };
  const SyntheticDrafter fits{.hidden = 256, .vocab = 4096, .target_layers = 8};
  ASSERT_TRUE(load(fits).has_value());
  SyntheticDrafter other = fits;
  other.hidden = 128;
  ExpectRefused(load(other), Code::kMismatch, "/hidden_size");
  other = fits;
  other.vocab = 4097;
  ExpectRefused(load(other), Code::kMismatch, "/vocab_size");
  other = fits;
  other.target_layers = 9;
  ExpectRefused(load(other), Code::kMismatch, "/num_target_layers");
  DrafterWriter writer(fits);
  writer.Erase("/num_target_layers");
  writer.Set("/dflash_config/target_layer_ids", "[0, 7]");  // the last layer's output
  ASSERT_TRUE(writer.Write(folder));
  ExpectRefused(LoadDrafter(GoldenPath(kTarget), folder), Code::kMismatch,
                "/dflash_config/target_layer_ids/1");
}

TEST(DrafterLoad, ABackendWithoutMemoryOrDraftOperationsIsRefused) {
  const auto loaded = LoadDrafter(GoldenPath(kTarget), GoldenPath(kDrafter));
  ASSERT_TRUE(loaded.has_value()) << loaded.error().ToString();
  Backend& real = *loaded->target.backend;
  const auto load = [&](Fault fault, DraftOps* ops) -> std::optional<Code> {
    DraftingBackend backend(real, fault, ops);
    const auto model =
        Model::Load(*loaded->target.inventory, loaded->target.checkpoint->config(), real);
    (*model)->backend = &backend;
    const auto drafter = Drafter::Load(*loaded->inventory, loaded->checkpoint->config(), **model);
    if (drafter) return std::nullopt;
    return drafter.error().code;
  };
  EXPECT_EQ(load(Fault::kNone, real.draft_ops()), std::nullopt);
  EXPECT_EQ(load(Fault::kNone, nullptr), Code::kUnsupported);
  EXPECT_EQ(load(Fault::kOutOfMemory, real.draft_ops()), Code::kResource);
}

TEST(DrafterLoad, ABadDraftVocabularyIsRefused) {
  const auto none =
      LoadDrafter(GoldenPath(kTarget), GoldenPath(kDrafter), {.vocabulary = {{0, 5000}}});
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().code, Code::kOutOfRange);
  EXPECT_EQ(none.error().where.flag, "draft vocabulary");
  const std::string folder = testing::TempDir() + "hallmark_drafter_top_k";
  ASSERT_TRUE(DrafterWriter({.hidden = 256, .vocab = 4096, .target_layers = 8, .top_k = 200})
                  .Write(folder));
  ExpectRefused(LoadDrafter(GoldenPath(kTarget), folder, {.vocabulary = {{0, 128}}}),
                Code::kOutOfRange, "/dflash_config/selector_top_k");
}

TEST(DrafterLoad, QuantizesMatricesThatAreLargeEnough) {
  const auto count = [](int64_t min_elements) {
    const auto loaded =
        LoadDrafter(GoldenPath(kTarget), GoldenPath(kDrafter),
                    {.weights = DrafterWeights::kAffine4, .affine_min_elements = min_elements});
    EXPECT_TRUE(loaded.has_value()) << loaded.error().ToString();
    return loaded ? loaded->drafter->quantized_matrices() : -1;
  };
  EXPECT_EQ(count(int64_t{1} << 20), 0);   // this drafter has none of that size
  EXPECT_EQ(count(256 * 768), 1 + 3 * 3);  // fc, gate, up, down
  EXPECT_EQ(count(1), 1 + 3 * 9 + 1);
}

}  // namespace
}  // namespace hallmark
