// SPDX-License-Identifier: Apache-2.0
// Clause failure-isolation, memory: the arena takes what the plan says; a session takes no more
// than it is allowed, and what cannot fit is refused before a weight is loaded, with the largest
// that fits.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <numeric>

#include "conformance/cuda/fake_session.h"
#include "conformance/harness/tolerances.h"
#include "engine/draft/drafter_plan.h"
#include "engine/format/checkpoint.h"
#include "engine/format/drafter_inventory.h"
#include "engine/model/memory_fit.h"
#include "engine/run/target.h"

namespace hallmark {
namespace {

constexpr int64_t kPage = kKvPageTokens;

class MemoryBudget : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const std::string folder = testing::TempDir() + "hallmark_cuda_budget";
    // Slabs of many sizes, and blocks that are none.
    const Status model = CheckpointWriter({.hidden = 1024,
                                           .intermediate = 3072,
                                           .vocab = 8000,
                                           .layers = 8,
                                           .heads = 4,
                                           .kv_heads = 2,
                                           .head_dim = 256,
                                           .key_heads = 4,
                                           .value_heads = 8})
                             .Write(folder + "/checkpoint");
    ASSERT_TRUE(model.has_value()) << model.error().ToString();
    const Status drafter =
        DrafterWriter({.hidden = 1024, .intermediate = 2048, .vocab = 8000, .target_layers = 8})
            .Write(folder + "/drafter");
    ASSERT_TRUE(drafter.has_value()) << drafter.error().ToString();
    files_ = new FakeFiles{folder + "/checkpoint", folder + "/drafter"};
  }
  static void TearDownTestSuite() { delete files_; }
  void TearDown() override { EXPECT_EQ(device_.Problems(), std::vector<std::string>{}); }

  static Result<MemoryPlan> Plan(bool drafts) {
    const Checkpoint checkpoint = TRY(Checkpoint::Open(files_->checkpoint));
    const CheckpointInventory inventory = TRY(TakeInventory(checkpoint));
    if (!drafts) return MakeMemoryPlan(inventory, checkpoint.config(), nullptr, {.kept_bytes = 0});
    const DrafterCheckpoint opened = TRY(DrafterCheckpoint::Open(files_->drafter));
    const DrafterMemory drafter =
        TRY(PlanDrafter(TRY(TakeDrafterInventory(opened)), opened.config(), {}, inventory.head));
    return MakeMemoryPlan(inventory, checkpoint.config(), &drafter, {.kept_bytes = 0});
  }
  static SessionOptions Options(int streams, int64_t context, uint64_t bytes) {
    return {.device = "cuda",
            .device_bytes = bytes,
            .streams = streams,
            .context = context,
            .kept_bytes = 0};
  }
  // What a session of the program is opened with: the arena's bound, too.
  Result<std::unique_ptr<Session>> Open(const SessionOptions& options) {
    const uint64_t arena =
        options.device_bytes == 0 ? 0 : std::max(options.device_bytes, kRuntimeBytes + 1);
    auto backend =
        TRY(MakeCudaBackend(device_, {.device_bytes = arena == 0 ? 0 : arena - kRuntimeBytes}));
    opened_ = device_.allocations();
    return Session::Open(files_->checkpoint, options, std::move(backend));
  }
  void ExpectRefused(const SessionOptions& options, const std::string& flag,
                     const std::string& part) {
    const auto session = Open(options);
    ASSERT_FALSE(session.has_value());
    EXPECT_EQ(session.error().code, Code::kResource);
    EXPECT_EQ(session.error().where.flag, flag);
    EXPECT_EQ(session.error().where.file, files_->checkpoint);
    EXPECT_NE(session.error().message.find(part), std::string::npos) << session.error().message;
    EXPECT_EQ(device_.allocations(), opened_) << "a weight was loaded";
  }

  static int64_t PagesIn(const MemoryPlan& plan, uint64_t budget, int64_t streams) {
    return static_cast<int64_t>((budget - plan.TotalBytes(streams, 0)) / plan.page_bytes);
  }

  static FakeFiles* files_;
  FakeCudaDevice device_;
  int64_t opened_ = 0;  // allocations of a backend alone
};
FakeFiles* MemoryBudget::files_ = nullptr;

// A window, all the positions that the model has, and a proposal: then nothing grows any more.
TEST_F(MemoryBudget, TheArenaTakesWhatThePlanSays) {
  for (const bool drafts : {false, true}) {
    const auto plan = Plan(drafts);
    ASSERT_TRUE(plan.has_value()) << plan.error().ToString();
    SessionOptions options = Options(1, 0, 0);
    if (drafts) options.drafter = files_->drafter;
    const auto session = Open(options);
    ASSERT_TRUE(session.has_value()) << session.error().ToString();
    Target& target = (*session)->target();
    const auto state = target.Create();
    ASSERT_TRUE(state.has_value());
    std::vector<int32_t> ids(static_cast<size_t>(target.info().max_rows));
    std::iota(ids.begin(), ids.end(), 1);
    const TargetSlice window{
        .state = state->get(), .ids = {ids.data(), 16}, .logits = LogitRows::kAll, .verify = true};
    ASSERT_TRUE(target.Run({&window, 1}).has_value());
    ASSERT_TRUE(target.Commit(**state, 0).has_value());
    const int64_t positions = plan->max_positions;
    while ((*state)->position() < positions) {
      const TargetSlice slice{.state = state->get(), .ids = ids};
      ASSERT_TRUE(target.Run({&slice, 1}).has_value());
    }
    if (drafts) {
      const DraftAsk ask{.state = state->get(), .anchor = 1};
      (void)target.Draft({&ask, 1});  // of numbers that no kernel made
    }
    const auto planned = static_cast<double>(plan->TakenBytes(1, positions) - kRuntimeBytes);
    const double off = static_cast<double>(device_.device_bytes()) / planned - 1.0;
    std::printf("planned %.3f MiB, taken %.3f MiB, %+.2f %%\n", planned / 0x1p20,
                static_cast<double>(device_.device_bytes()) / 0x1p20, 100.0 * off);
    EXPECT_LT(std::fabs(off), Tolerance("cuda-memory-plan-relative"));
  }
}

TEST_F(MemoryBudget, WhatJustFitsOpensAndAPageMoreIsRefused) {
  const auto plan = Plan(false);
  ASSERT_TRUE(plan.has_value());
  const uint64_t budget = plan->TotalBytes(2, 0) + 3 * plan->page_bytes;
  {
    const auto session = Open(Options(2, 3 * kPage, budget));
    ASSERT_TRUE(session.has_value()) << session.error().ToString();
    EXPECT_EQ((*session)->target().info().max_pages, 3);
    EXPECT_EQ((*session)->options().streams, 2);
    EXPECT_LE(device_.device_bytes(), budget - kRuntimeBytes);
    GenerateRequest request{.prompt = {1, 2, 3}, .max_tokens = 3 * kPage - 3};
    EXPECT_TRUE((*session)->Submit(request).has_value());
    request.max_tokens += 1;
    const auto refused = (*session)->Submit(request);
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, Code::kResource);
    EXPECT_EQ(refused.error().where.flag, "--context");
  }
  ExpectRefused(Options(2, 3 * kPage + 1, budget), "--context",
                "the largest that fits is 768 positions together, or 1 stream");
  ExpectRefused(Options(2, 3 * kPage, budget - 1), "--context",
                "the largest that fits is 512 positions together");
  ExpectRefused(Options(8, 0, budget), "--vram", "or 2 streams");
  ExpectRefused(Options(1, 0, plan->TotalBytes(1, 0)), "--vram", "before the first position it is");
}

TEST_F(MemoryBudget, WhatIsNotGivenComesFromThePlan) {
  const auto plan = Plan(false);
  ASSERT_TRUE(plan.has_value());
  const int64_t each = std::min(kUsualContext, plan->max_positions);
  const auto settled = [&](int streams, int64_t context, uint64_t budget) {
    const auto session = Open(Options(streams, context, budget));
    EXPECT_TRUE(session.has_value()) << session.error().ToString();
    if (!session.has_value()) return std::pair<int64_t, int64_t>();
    return std::pair<int64_t, int64_t>((*session)->options().streams,
                                       (*session)->target().info().max_pages);
  };
  using Settled = std::pair<int64_t, int64_t>;
  const uint64_t three = plan->TotalBytes(3, each);
  EXPECT_EQ(settled(0, 0, three), Settled(3, 3 * each / kPage));
  EXPECT_EQ(settled(0, 0, three - 1), Settled(2, PagesIn(*plan, three - 1, 2)));
  EXPECT_EQ(settled(1, 0, three), Settled(1, PagesIn(*plan, three, 1)));
  EXPECT_EQ(settled(0, kPage, plan->TotalBytes(5, 0) + plan->page_bytes), Settled(5, 1));
  EXPECT_EQ(settled(0, 0, plan->TotalBytes(1, 1)), Settled(1, 1));
  // Nothing given at all: what the device has free.
  device_.memory_limit = device_.device_bytes() + three;
  const auto session = Open(Options(0, 0, 0));
  ASSERT_TRUE(session.has_value());
  EXPECT_EQ((*session)->options().streams, 2);  // the backend itself holds a slab
}

TEST_F(MemoryBudget, ADeviceWithLessFreeDecides) {
  const auto plan = Plan(false);
  ASSERT_TRUE(plan.has_value());
  // The files would fit; with its scratch and a stream the model does not.
  device_.memory_limit = plan->TotalBytes(1, 0);
  ExpectRefused(Options(1, 0, uint64_t{1} << 40), "--vram", "; that much is free");
  ExpectRefused(Options(1, kPage, 0), "--context", "; that much is free");
  ExpectRefused(Options(1, 0, 0), "", "; that much is free");
}

// Promises aside: whoever allocates beyond the budget gets nothing, and a smaller block still.
TEST_F(MemoryBudget, TheBudgetHoldsWhileStreamsRun) {
  const auto plan = Plan(false);
  ASSERT_TRUE(plan.has_value());
  const uint64_t budget = plan->TotalBytes(1, 2 * kPage);
  const auto session = Open(Options(1, 0, budget));
  ASSERT_TRUE(session.has_value());
  Target& target = (*session)->target();
  std::vector<std::unique_ptr<TargetState>> states;
  while (true) {
    auto state = target.Create();
    EXPECT_LE(device_.device_bytes(), budget - kRuntimeBytes);
    if (!state.has_value()) {
      EXPECT_EQ(state.error().code, Code::kResource);
      break;
    }
    states.push_back(std::move(*state));
    ASSERT_LT(states.size(), 100u);
  }
  EXPECT_GT(states.size(), 1u);
  states.clear();
  EXPECT_TRUE(target.Create().has_value());
}

TEST_F(MemoryBudget, TheCpuHasNoneToBound) {
  const auto session = Session::Open(files_->checkpoint, {.device_bytes = uint64_t{1} << 40});
  ASSERT_FALSE(session.has_value());
  EXPECT_EQ(session.error().code, Code::kOutOfRange);
  EXPECT_EQ(session.error().where.flag, "--vram");
}

}  // namespace
}  // namespace hallmark
