// SPDX-License-Identifier: Apache-2.0
// Clause failure-isolation with faults from below: memory that runs out at any step of opening, and
// products that fail at any step of a round, on golden models with their drafters.
#include <gtest/gtest.h>

#include <memory>

#include "conformance/cases/faulty_backend.h"
#include "conformance/cases/lane_runs.h"
#include "conformance/harness/paths.h"
#include "engine/backend/cpu/cpu_backend.h"
#include "engine/draft/drafter.h"
#include "engine/format/checkpoint.h"
#include "engine/format/drafter_inventory.h"
#include "engine/format/inventory.h"
#include "engine/run/model_target.h"
#include "engine/run/scheduler.h"

namespace hallmark {
namespace {

// Fails one call of a kind, and counts the bytes that are out.
class FailingBackend : public FaultyBackend {
 public:
  explicit FailingBackend(Backend& real) : FaultyBackend(real, Fault::kNone), real_(real) {}

  // The `countdown`-th allocation (product) from now on fails, and no other; below 0: none.
  int64_t allocations_left = -1;
  int64_t products_left = -1;
  int64_t bytes_out = 0;
  int64_t bytes_limit = int64_t{1} << 40;  // that may be out

  Result<Buffer> Allocate(size_t bytes) override {
    if (allocations_left-- == 0) return Fail(Code::kResource, "no memory, as planned");
    if (bytes_out + static_cast<int64_t>(bytes) > bytes_limit) {
      return Fail(Code::kResource, "all memory is out, as planned");
    }
    auto* real = new Buffer(TRY(real_.Allocate(bytes)));
    bytes_out += static_cast<int64_t>(bytes);
    auto* owner = new Owner{this, real};
    return Buffer(real->data() == nullptr ? owner : real->data(), bytes, owner, &Release);
  }
  Result<Buffer> LoadVector(const TensorView& tensor) override {
    if (allocations_left-- == 0) return Fail(Code::kResource, "no memory, as planned");
    return real_.LoadVector(tensor);
  }
  Result<std::unique_ptr<LinearWeight>> LoadLinear(const LinearSource& source) override {
    if (allocations_left-- == 0) return Fail(Code::kResource, "no memory, as planned");
    return real_.LoadLinear(source);
  }
  DraftOps* draft_ops() override { return real_.draft_ops(); }
  Status Linear(const LinearWeight& weight, ConstRows x, Rows y) override {
    if (products_left-- == 0) return Fail(Code::kResource, "no memory for scratch, as planned");
    return real_.Linear(weight, x, y);
  }

 private:
  struct Owner {
    FailingBackend* backend;
    Buffer* real;
  };
  static void Release(void* owner_pointer, void*, size_t bytes) {
    auto* owner = static_cast<Owner*>(owner_pointer);
    owner->backend->bytes_out -= static_cast<int64_t>(bytes);
    delete owner->real;
    delete owner;
  }

  Backend& real_;
};

class Failures : public testing::Test {
 protected:
  void SetUp() override {
    auto real = MakeCpuBackend({.threads = 1});
    ASSERT_TRUE(real.has_value());
    real_ = std::move(*real);
    backend_ = std::make_unique<FailingBackend>(*real_);
    auto checkpoint = Checkpoint::Open(GoldenPath("models/scribe-11m-exl3"));
    ASSERT_TRUE(checkpoint.has_value());
    checkpoint_ = std::make_unique<Checkpoint>(std::move(*checkpoint));
    auto inventory = TakeInventory(*checkpoint_);
    ASSERT_TRUE(inventory.has_value());
    inventory_ = std::make_unique<CheckpointInventory>(std::move(*inventory));
    auto drafter = DrafterCheckpoint::Open(GoldenPath("models/scribe-11m-dflash2"));
    ASSERT_TRUE(drafter.has_value());
    drafter_checkpoint_ = std::make_unique<DrafterCheckpoint>(std::move(*drafter));
    auto tensors = TakeDrafterInventory(*drafter_checkpoint_);
    ASSERT_TRUE(tensors.has_value());
    drafter_inventory_ = std::make_unique<DrafterInventory>(std::move(*tensors));
  }

  // Everything that a session holds on its backend.
  struct Engine {
    std::unique_ptr<Model> model;
    std::unique_ptr<Drafter> drafter;
    std::unique_ptr<ModelTarget> target;
  };
  Result<Engine> Open() {
    Engine engine;
    engine.model = TRY(Model::Load(*inventory_, checkpoint_->config(), *backend_));
    engine.drafter =
        TRY(Drafter::Load(*drafter_inventory_, drafter_checkpoint_->config(), *engine.model));
    engine.target = TRY(ModelTarget::Create(*engine.model, engine.drafter.get(), {.poison = true},
                                            {.drawable_ids = 4000}));
    return engine;
  }

  std::unique_ptr<Backend> real_;
  std::unique_ptr<FailingBackend> backend_;
  std::unique_ptr<Checkpoint> checkpoint_;
  std::unique_ptr<CheckpointInventory> inventory_;
  std::unique_ptr<DrafterCheckpoint> drafter_checkpoint_;
  std::unique_ptr<DrafterInventory> drafter_inventory_;
};

TEST_F(Failures, AnOpenThatFailsAtAnyStepLeavesNoByteBehind) {
  backend_->allocations_left = int64_t{1} << 40;
  ASSERT_TRUE(Open().has_value());
  const int64_t steps = (int64_t{1} << 40) - backend_->allocations_left;
  ASSERT_GT(steps, 150);
  EXPECT_EQ(backend_->bytes_out, 0);
  int64_t failed = 0;
  for (int64_t step = 0; step < steps; step += step < 20 || step > steps - 40 ? 1 : 7) {
    backend_->allocations_left = step;
    const auto engine = Open();
    ASSERT_FALSE(engine.has_value()) << "step " << step;
    EXPECT_EQ(engine.error().code, Code::kResource);
    EXPECT_EQ(backend_->bytes_out, 0) << "step " << step;
    ++failed;
  }
  std::printf("%lld of %lld steps failed in turn\n", static_cast<long long>(failed),
              static_cast<long long>(steps));
  backend_->allocations_left = -1;
  EXPECT_TRUE(Open().has_value());
}

TEST_F(Failures, AProductThatFailsEndsOneStreamAtMost) {
  auto engine = Open();
  ASSERT_TRUE(engine.has_value());
  ModelTarget& target = *engine->target;
  const auto request = [&](int32_t seed) {
    GenerateRequest made;
    made.prompt = RulePrompt(4000, 20 + seed, static_cast<uint64_t>(seed));
    made.max_tokens = 10;
    made.ignore_stop = true;
    made.draft = {.copy_match = 3, .window = 4};
    return made;
  };
  auto fresh = Scheduler::Create(target, {}, {});
  ASSERT_TRUE(fresh.has_value());
  std::vector<LaneRun> serial;
  for (int32_t seed : {1, 2, 3}) {
    auto run = RunOne(**fresh, SerialOf(request(seed)));
    ASSERT_TRUE(run.has_value());
    serial.push_back(std::move(*run));
  }
  const int64_t bytes_before = backend_->bytes_out;
  int64_t failures = 0;
  int64_t survivors = 0;
  for (int64_t product = 0; product < 900; product += 23) {
    auto scheduler = Scheduler::Create(target, {}, {.kept_bytes = size_t{1} << 26});
    ASSERT_TRUE(scheduler.has_value());
    std::vector<StreamId> ids;
    for (int32_t seed : {1, 2, 3}) {
      LaneRun unused;
      GenerateRequest made = request(seed);
      made.digest = true;
      ids.push_back(*(*scheduler)->Submit(made));
    }
    backend_->products_left = product;
    ASSERT_TRUE(RunStreams(**scheduler).has_value());
    backend_->products_left = -1;
    int64_t failed = 0;
    for (size_t i = 0; i < ids.size(); ++i) {
      const auto reply = (*scheduler)->Take(ids[i]);
      if (!reply.has_value()) {
        EXPECT_EQ(reply.error().code, Code::kResource);
        ++failed;
        continue;
      }
      EXPECT_EQ(reply->ids, serial[i].generation.ids) << "product " << product;
      EXPECT_EQ(reply->state_digest, serial[i].generation.state_digest) << "product " << product;
      ++survivors;
    }
    EXPECT_LE(failed, 1) << "product " << product;
    failures += failed;
    // The next request, resumed from what was kept, finds nothing of it.
    const auto next = RunOne(**scheduler, request(2));
    ASSERT_TRUE(next.has_value());
    EXPECT_EQ(next->generation.ids, serial[1].generation.ids);
    EXPECT_EQ(next->generation.state_digest, serial[1].generation.state_digest);
  }
  std::printf("%lld streams failed, %lld beside them did not\n", static_cast<long long>(failures),
              static_cast<long long>(survivors));
  EXPECT_GT(failures, 5);
  EXPECT_GT(survivors, 50);
  EXPECT_EQ(target.pages_held(), 0);
  EXPECT_LE(backend_->bytes_out, bytes_before + (int64_t{4} << 20));  // pages wait on their shelf
}

// The bound of kept states is worth what their bytes are.
TEST_F(Failures, AKeptStateHoldsNoMoreThanItCounts) {
  auto engine = Open();
  ASSERT_TRUE(engine.has_value());
  auto scheduler = Scheduler::Create(*engine->target, {}, {.kept_bytes = size_t{1} << 30});
  ASSERT_TRUE(scheduler.has_value());
  const int64_t bytes_before = backend_->bytes_out;
  // One id of prompt, so that the reply's end is all that is kept and shares no page.
  const GenerateRequest request{.prompt = {7},
                                .max_tokens = 10,
                                .ignore_stop = true,
                                .draft = {.copy_match = 0, .window = 4}};
  const auto run = RunOne(**scheduler, request);
  ASSERT_TRUE(run.has_value());
  EXPECT_GT(run->generation.drafted, 0);
  ASSERT_EQ((*scheduler)->kept().count(), 1u);
  EXPECT_LE(backend_->bytes_out - bytes_before, static_cast<int64_t>((*scheduler)->kept().bytes()));
}

// Without a bound on pages the machine's memory is one: what is kept gives way to what runs.
TEST_F(Failures, KeptStatesGiveWayWhenMemoryRunsOut) {
  auto model = Model::Load(*inventory_, checkpoint_->config(), *backend_);
  ASSERT_TRUE(model.has_value());
  auto target = ModelTarget::Create(**model, nullptr, {}, {.drawable_ids = 4000});
  ASSERT_TRUE(target.has_value());
  const auto request = [](uint64_t seed) {
    return GenerateRequest{.prompt = RulePrompt(4000, 300, seed),
                           .max_tokens = 4,
                           .ignore_stop = true,
                           .draft = {.copy_match = 0}};
  };
  auto scheduler = Scheduler::Create(**target, {}, {.kept_bytes = size_t{1} << 30});
  ASSERT_TRUE(scheduler.has_value());
  std::vector<LaneRun> serial;
  for (uint64_t seed = 0; seed < 4; ++seed) {
    auto run = RunOne(**scheduler, SerialOf(request(seed)));
    ASSERT_TRUE(run.has_value());
    serial.push_back(std::move(*run));
  }
  // Every room between what two and what four requests leave behind, so that it runs out anywhere.
  const int64_t before = backend_->bytes_out;
  ASSERT_TRUE(RunOne(**scheduler, request(0)).has_value());
  const int64_t kept = backend_->bytes_out - before;
  ASSERT_GT(kept, 0);
  for (int64_t part = 8; part <= 16; part += 3) {
    auto crowded = Scheduler::Create(**target, {}, {.kept_bytes = size_t{1} << 30});
    ASSERT_TRUE(crowded.has_value());
    backend_->bytes_limit = backend_->bytes_out + kept * part / 4;
    for (uint64_t seed = 0; seed < 4; ++seed) {
      const auto run = RunOne(**crowded, request(seed));
      ASSERT_TRUE(run.has_value())
          << "part " << part << ", request " << seed << ": " << run.error().ToString();
      EXPECT_EQ(run->generation.ids, serial[seed].generation.ids);
      EXPECT_EQ(run->generation.state_digest, serial[seed].generation.state_digest);
    }
    EXPECT_GT((*crowded)->kept().count(), 0u);
    backend_->bytes_limit = int64_t{1} << 40;
  }
}

// The first memory a stream's context asks for is refused: the reply is the same, undrafted.
TEST_F(Failures, ADrafterContextWithoutMemoryLeavesTheReplyAlone) {
  auto engine = Open();
  ASSERT_TRUE(engine.has_value());
  auto scheduler = Scheduler::Create(*engine->target, {}, {});
  ASSERT_TRUE(scheduler.has_value());
  GenerateRequest request;
  request.prompt = RulePrompt(4000, 30, 9);
  request.max_tokens = 8;
  request.ignore_stop = true;
  request.draft = {.copy_match = 0, .window = 4};
  const auto serial = RunOne(**scheduler, SerialOf(request));
  ASSERT_TRUE(serial.has_value());
  int64_t given_up = 0;
  for (int64_t allocation = 0; allocation < 60; ++allocation) {
    backend_->allocations_left = allocation;
    const auto run = RunOne(**scheduler, request);
    backend_->allocations_left = -1;
    if (!run.has_value()) continue;  // the stream's own memory
    EXPECT_EQ(run->generation.ids, serial->generation.ids) << allocation;
    EXPECT_EQ(run->generation.state_digest, serial->generation.state_digest) << allocation;
    given_up += run->generation.draft_error.has_value();
  }
  EXPECT_GT(given_up, 0);
}

}  // namespace
}  // namespace hallmark
