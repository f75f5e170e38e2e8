// SPDX-License-Identifier: Apache-2.0
// Clause: graph-equals-eager
// Any history of work under a few keys, with scratch that grows whenever it likes: what lies in
// memory after each step is what the same history leaves without graphs, and what lies where
// scratch lay before it grew stays as it is.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <memory>
#include <vector>

#include "engine/backend/cuda/execution.h"
#include "engine/backend/cuda/fake_device.h"

namespace hallmark {
namespace {

struct Step {
  uint64_t key = 0;
  bool grows = false;  // a wide call before it takes scratch of another size
};

constexpr size_t kBytes = 512;
constexpr size_t kGrowth = size_t{300} << 10;
constexpr uint8_t kTenant = 0xEE;

// Work of a key fills a part of scratch, copies it to a place that stays, and launches.
class Player {
 public:
  Player(FakeCudaDevice& device, bool graphs) {
    auto made = CudaExecution::Create(device);
    RC_ASSERT(made.has_value());
    execution_ = std::move(*made);
    execution_->graphs().set_enabled(graphs);
    auto result = execution_->arena().Allocate(kBytes);
    RC_ASSERT(result.has_value());
    result_ = std::move(*result);
  }

  std::vector<uint8_t> Play(const Step& step) {
    if (step.grows) {
      scratch_bytes_ += kGrowth;
      RC_ASSERT(execution_->draft().Reserve(scratch_bytes_).has_value());
      RC_ASSERT(execution_->split().Reserve(scratch_bytes_, scratch_bytes_ >> 10).has_value());
      MoveIn(scratch_bytes_ - kGrowth);
    }
    const auto work = [&]() -> Status {
      const size_t part = kBytes / 8 * (step.key + 1);
      void* scratch = TRY(execution_->draft().Reserve(kBytes));
      TRY(execution_->stream().Fill(scratch, static_cast<uint8_t>(step.key + 1), part));
      TRY(execution_->stream().CopyOnDevice(result_.data(), scratch, part));
      return execution_->Launch("LaunchNothing", [](cudaStream_t) { return cudaSuccess; });
    };
    RC_ASSERT(execution_->graphs().Run({step.key}, execution_->scratch_moves(), work).has_value());
    std::vector<uint8_t> seen(kBytes);
    RC_ASSERT(execution_->Download(seen.data(), result_.data(), kBytes).has_value());
    for (const Buffer& tenant : tenants_) {  // work touches the first bytes of scratch alone
      std::vector<uint8_t> kept(kBytes);
      RC_ASSERT(execution_->Download(kept.data(), tenant.data(), kBytes).has_value());
      RC_ASSERT(kept == std::vector<uint8_t>(kBytes, kTenant));
    }
    return seen;
  }
  Status Clear() { return execution_->stream().Fill(result_.data(), 0, kBytes); }
  int64_t replays() const { return execution_->graphs().replays(); }

 private:
  // Somebody else takes memory of the size that scratch gave up, so lies in its place.
  void MoveIn(size_t bytes) {
    auto tenant = execution_->arena().Allocate(bytes);
    RC_ASSERT(tenant.has_value());
    RC_ASSERT(execution_->stream().Fill(tenant->data(), kTenant, bytes).has_value());
    tenants_.push_back(std::move(*tenant));
  }

  std::unique_ptr<CudaExecution> execution_;
  Buffer result_;
  std::vector<Buffer> tenants_;
  size_t scratch_bytes_ = kBytes;
};

RC_GTEST_PROP(GraphCacheHistories, ReplayedWorkLeavesWhatEagerWorkLeaves, ()) {
  FakeCudaDevice device;
  {
    Player replaying(device, true), eager(device, false);
    for (Player* player : {&replaying, &eager}) RC_ASSERT(player->Clear().has_value());
    const auto steps = *rc::gen::inRange(1, 40);
    for (int i = 0; i < steps; ++i) {
      const Step step{*rc::gen::inRange<uint64_t>(0, 4), *rc::gen::inRange(0, 5) == 0};
      RC_ASSERT(replaying.Play(step) == eager.Play(step));
    }
    RC_ASSERT(eager.replays() == 0);
    // Of 4 keys, each is called once and recorded again at most once for each growth.
    RC_CLASSIFY(replaying.replays() > 0, "replayed");
  }
  RC_ASSERT(device.Problems().empty());
}

}  // namespace
}  // namespace hallmark
