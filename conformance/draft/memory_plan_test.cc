// SPDX-License-Identifier: Apache-2.0
// The memory plan against what the engine allocates: a backend that adds up what it is asked for,
// rounded as the plan rounds, must come to the same bytes, part by part.
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "conformance/cases/faulty_backend.h"
#include "conformance/draft/loaded_drafter.h"
#include "conformance/harness/paths.h"
#include "engine/backend/slab_map.h"
#include "engine/draft/draft_pass.h"
#include "engine/draft/drafter_plan.h"
#include "engine/model/forward.h"
#include "engine/model/memory_fit.h"

namespace hallmark {
namespace {

class AllocationCounter : public FaultyBackend {
 public:
  explicit AllocationCounter(Backend& real) : FaultyBackend(real, Fault::kNone), real_(real) {}
  DraftOps* draft_ops() override { return real_.draft_ops(); }
  Result<Buffer> Allocate(size_t bytes) override {
    taken += AllocationBytes(bytes);
    return FaultyBackend::Allocate(bytes);
  }
  // Bytes since the last call.
  uint64_t Take() { return std::exchange(taken, 0); }
  uint64_t taken = 0;

 private:
  Backend& real_;
};

uint64_t Part(const std::vector<PlanPart>& parts, const std::string& id) {
  for (const PlanPart& part : parts) {
    if (part.id == id) return part.bytes;
  }
  ADD_FAILURE() << "no part " << id;
  return 0;
}

struct Planned {
  LoadedDrafter loaded;
  std::unique_ptr<AllocationCounter> counter;
  std::unique_ptr<Model> model;
  std::unique_ptr<Drafter> drafter;
  DrafterMemory memory;
};

Planned Open(const std::string& target, const std::string& drafter) {
  Planned opened;
  auto loaded = LoadDrafter(GoldenPath("models/" + target), GoldenPath("models/" + drafter));
  EXPECT_TRUE(loaded.has_value()) << loaded.error().ToString();
  opened.loaded = std::move(*loaded);
  const LoadedModel& model = opened.loaded.target;
  opened.counter = std::make_unique<AllocationCounter>(*model.backend);
  opened.model = *Model::Load(*model.inventory, model.checkpoint->config(), *opened.counter);
  const DrafterConfig& config = opened.loaded.checkpoint->config();
  opened.drafter = *Drafter::Load(*opened.loaded.inventory, config, *opened.model);
  opened.memory = *PlanDrafter(*opened.loaded.inventory, config, {}, model.inventory->head);
  opened.counter->Take();
  return opened;
}

class MemoryPlanOfGoldenModels
    : public testing::TestWithParam<std::pair<const char*, const char*>> {};

TEST_P(MemoryPlanOfGoldenModels, IsWhatThePassesAndStreamsAllocate) {
  const Planned opened = Open(GetParam().first, GetParam().second);
  const ModelConfig& config = opened.model->config;
  for (const KvType kv : {KvType::kBf16, KvType::kFp8E4m3}) {
    for (const bool overlap : {true, false}) {
      const MemoryPlan plan = MakeMemoryPlan(*opened.loaded.target.inventory, config,
                                             &opened.memory, {.kv = kv, .overlap = overlap});
      AllocationCounter& counter = *opened.counter;
      auto pass = ForwardPass::Create(*opened.model, ForwardPass::kMaxRows, opened.drafter->taps(),
                                      {.overlap = overlap});
      ASSERT_TRUE(pass.has_value());
      EXPECT_EQ(counter.Take(), Part(plan.fixed, "scratch.shared") +
                                    Part(plan.fixed, "scratch.rows") +
                                    Part(plan.fixed, "scratch.logits"));

      auto pool =
          std::make_shared<KvPool>(counter, config, KvPoolOptions{.type = kv, .max_pages = 4});
      auto sequence = Sequence::Create(pool, config);
      ASSERT_TRUE(sequence.has_value());
      EXPECT_EQ(counter.Take(),
                Part(plan.per_stream, "stream.state") + Part(plan.per_stream, "stream.pages"));
      auto window = VerifyWindow::Create(*opened.model, kPlannedWindowRows);
      ASSERT_TRUE(window.has_value());
      EXPECT_EQ(counter.Take(), Part(plan.per_stream, "stream.window"));
      ASSERT_TRUE(sequence->Reserve(257).has_value());
      // A drafter that sees all of the context has pages of its own beside these.
      EXPECT_EQ(counter.Take(), 2 * (plan.page_bytes - opened.memory.page_bytes));
    }
  }
}

TEST_P(MemoryPlanOfGoldenModels, HoldsTheDraftersPassAndItsContext) {
  const Planned opened = Open(GetParam().first, GetParam().second);
  AllocationCounter& counter = *opened.counter;
  auto pass = DraftPass::Create(*opened.drafter);
  ASSERT_TRUE(pass.has_value());
  const DrafterConfig& config = opened.drafter->config();
  const int64_t block = config.block_size;
  const auto window = config.widest_window();
  // The scores of attention are the CUDA backend's own.
  const uint64_t scores = window ? AllocationBytes(SlabMap::GrownBytes(
                                       sizeof(float) * static_cast<uint64_t>(block * config.heads) *
                                       static_cast<uint64_t>(*window + block)))
                                 : 0;
  EXPECT_EQ(counter.Take() + scores, Part(opened.memory.fixed, "drafter.scratch"));

  auto context = DraftContext::Create(*opened.drafter);
  ASSERT_TRUE(context.has_value());
  // Rows come twice before a proposal fuses them: the most that is ever held at once.
  const int64_t rows = DraftContext::kPendingRows - 2;
  const std::vector<float> zeros(static_cast<size_t>(config.tap_width() * rows));
  uint64_t most = 0;
  for (int piece = 0; piece < 16; ++piece) {
    const ConstRows taps{zeros.data(), rows, config.tap_width()};
    ASSERT_TRUE(pass->Append(*context, taps).has_value());
    if (piece % 2 == 1) {
      const DraftRequest ask{.context = &*context, .anchor = 1};
      ASSERT_TRUE(pass->Propose({&ask, 1}).has_value());
    }
    most = std::max<uint64_t>(most, context->bytes());
  }
  uint64_t planned = Part(opened.memory.per_stream, "stream.drafter");
  if (!window) planned += (16 * static_cast<uint64_t>(rows) + 255) / 256 * opened.memory.page_bytes;
  EXPECT_GT(most, 0u);
  EXPECT_LE(most, planned);
  if (window) {  // to the page
    const uint64_t taps = sizeof(float) * static_cast<uint64_t>(DraftContext::kPendingRows) *
                          static_cast<uint64_t>(config.tap_width());
    const uint64_t page = sizeof(float) * config.layers.size() * 2 *
                          static_cast<uint64_t>(DraftContext::kPageRows * config.kv_width());
    const uint64_t pages = (planned - AllocationBytes(taps)) / AllocationBytes(page);
    const uint64_t held = (most - taps) / page;
    EXPECT_LE(held, pages);
    EXPECT_GE(held + 1, pages);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Golden, MemoryPlanOfGoldenModels,
    testing::Values(std::pair("scribe-11m-exl3", "scribe-11m-dflash2"),
                    std::pair("prism-exl3", "prism-dflash")),
    [](const testing::TestParamInfo<std::pair<const char*, const char*>>& info) {
      return std::string(info.param.first).substr(0, 5);
    });

TEST(MemoryPlan, WeightsAreTheFilesOwnBytesUpToRounding) {
  const Planned opened = Open("scribe-11m-exl3", "scribe-11m-dflash2");
  const CheckpointInventory& inventory = *opened.loaded.target.inventory;
  const MemoryPlan plan = MakeMemoryPlan(inventory, opened.model->config, nullptr, {});
  uint64_t trellis = 0;
  for (const LinearSource* linear : Linears(inventory)) {
    if (const auto* group = std::get_if<Exl3Group>(&linear->weights)) {
      trellis += AllocationBytes(group->trellis.bytes.size());
    }
  }
  EXPECT_EQ(Part(plan.fixed, "weights.body") + Part(plan.fixed, "weights.head"), trellis);
}

TEST(MemoryPlan, WhatFitsIsTheLargestThatFits) {
  const Planned opened = Open("scribe-11m-exl3", "scribe-11m-dflash2");
  const MemoryPlan plan = MakeMemoryPlan(*opened.loaded.target.inventory, opened.model->config,
                                         &opened.memory, {.kept_bytes = 0});
  for (const int64_t streams : {1, 3, 8}) {
    for (uint64_t pages = 0; pages < 20; ++pages) {
      const uint64_t budget = plan.TotalBytes(streams, 0) +
                              static_cast<uint64_t>(streams) * pages * plan.page_bytes + 100;
      const int64_t context = plan.LargestContext(budget, streams);
      EXPECT_EQ(context, std::min<int64_t>(static_cast<int64_t>(pages) * 256, plan.max_positions));
      EXPECT_LE(plan.TotalBytes(streams, context), budget);
      if (context < plan.max_positions) {
        EXPECT_GT(plan.TotalBytes(streams, context + 1), budget);
      }
      if (context > 0) {
        EXPECT_GE(plan.MostStreams(budget, context, 8), streams);
      }
    }
    EXPECT_EQ(plan.LargestContext(plan.TotalBytes(streams, 0) - 1, streams), 0);
  }
  EXPECT_EQ(plan.MostStreams(plan.TotalBytes(3, 1000), 1000, 8), 3);
  EXPECT_EQ(plan.MostStreams(plan.TotalBytes(3, 1000) - 1, 1000, 8), 2);
  EXPECT_EQ(plan.MostStreams(plan.TotalBytes(3, 1000), 1000, 2), 2);
}

TEST(MemoryPlan, TheLastSlabsEndIsTakenUntilPagesFillIt) {
  const Planned opened = Open("scribe-11m-exl3", "scribe-11m-dflash2");
  const MemoryPlan plan = MakeMemoryPlan(*opened.loaded.target.inventory, opened.model->config,
                                         &opened.memory, {.kept_bytes = 0});
  ASSERT_GT(plan.tail_bytes, plan.page_bytes);
  // Whole slabs.
  EXPECT_EQ((plan.TakenBytes(1, 0) - kRuntimeBytes) % SlabMap::kPageBytes, 0u);
  EXPECT_EQ(plan.TakenBytes(1, 0), plan.TotalBytes(1, 0) + plan.tail_bytes);
  EXPECT_EQ(plan.TakenBytes(1, 1), plan.TakenBytes(1, 0));
  const int64_t streams = 8;
  ASSERT_GT(7 * plan.stream_bytes(), plan.tail_bytes);
  EXPECT_EQ(plan.TakenBytes(streams, 1), plan.TotalBytes(streams, 1));
}

TEST(MemoryPlan, RefusalsNameTheLargestThatFits) {
  const Planned opened = Open("scribe-11m-exl3", "scribe-11m-dflash2");
  const MemoryPlan plan = MakeMemoryPlan(*opened.loaded.target.inventory, opened.model->config,
                                         &opened.memory, {.kept_bytes = 0});
  const uint64_t budget = plan.TotalBytes(3, 512);
  const auto says = [&](const StreamsAsked& asked, const std::string& part) {
    EXPECT_GT(NeededBytes(plan, asked), budget);
    const std::string sentence = RefusalSentence(plan, budget, asked);
    EXPECT_TRUE(sentence.ends_with(part)) << sentence;
  };
  says({.streams = 3, .context = 513},
       "at most; the largest that fits is 512 positions each, or 2 streams");
  says({.streams = 3, .context = 1537, .together = true},
       "at most; the largest that fits is 1536 positions together, or 2 streams");
  says({.streams = 8, .context = 1 << 20, .together = true},
       "the largest that fits is one stream of " + std::to_string(plan.LargestContext(budget, 1)) +
           " positions");
  EXPECT_TRUE(RefusalSentence(plan, 1 << 20, {.streams = 1, .context = 1})
                  .ends_with("before the first position it is " + ByteText(plan.TotalBytes(1, 0))));
}

TEST(MemoryPlan, MappingMovesTablesToTheHostUnlessItIsTheDevices) {
  const Planned opened = Open("scribe-11m-exl3", "scribe-11m-dflash2");
  const auto plan = [&](TablePlacement tables, bool integrated) {
    return MakeMemoryPlan(*opened.loaded.target.inventory, opened.model->config, &opened.memory,
                          {.tables = tables, .integrated = integrated});
  };
  const MemoryPlan device = plan(TablePlacement::kDevice, false);
  const MemoryPlan mapped = plan(TablePlacement::kMapped, false);
  // What slabs leave over differs beside it.
  EXPECT_EQ(device.fixed_bytes() - Part(device.fixed, "slabs") - mapped.fixed_bytes() +
                Part(mapped.fixed, "slabs"),
            mapped.embedding_mapping_saves + mapped.codebook_mapping_saves);
  EXPECT_EQ(mapped.embedding_mapping_saves,
            AllocationBytes(opened.loaded.target.inventory->embedding.bytes.size()));
  EXPECT_GT(mapped.codebook_mapping_saves, 0u);
  for (const TablePlacement tables : {TablePlacement::kDevice, TablePlacement::kMapped}) {
    const MemoryPlan integrated = plan(tables, true);
    EXPECT_EQ(integrated.fixed_bytes(), device.fixed_bytes());
    EXPECT_EQ(integrated.embedding_mapping_saves + integrated.codebook_mapping_saves, 0u);
  }
}

}  // namespace
}  // namespace hallmark
