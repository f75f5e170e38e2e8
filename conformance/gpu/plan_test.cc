// SPDX-License-Identifier: Apache-2.0
// The memory plan against the device: what the driver has handed out once the checkpoint and
// drafter in HALLMARK_MODEL and HALLMARK_DRAFTER are open and a reply is drawn, fp8 keys and
// values, embedding mapped, plain matrices of the drafter in 4 bits.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <numeric>

#include "conformance/gpu/gpu_session.h"
#include "conformance/harness/paths.h"
#include "conformance/harness/tolerances.h"
#include "engine/backend/cuda/cuda_backend.h"
#include "engine/draft/drafter_plan.h"
#include "engine/format/checkpoint.h"
#include "engine/format/drafter_config.h"
#include "engine/format/drafter_inventory.h"
#include "engine/model/memory_plan.h"

namespace hallmark {
namespace {

constexpr int64_t kPrompt = 4200;  // fills what a drafter sees, which grows up to its window
constexpr int64_t kTokens = 64;
constexpr int64_t kPages = 17;  // of 256 positions

SessionOptions Options() {
  SessionOptions options;
  options.device = kSuiteDevice;
  options.kv = KvType::kFp8E4m3;
  options.mapped_embedding = true;
  options.drafter = DrafterUnderTest();
  options.drafter_options.weights = DrafterWeights::kAffine4;
  options.streams = 1;
  options.kept_bytes = 0;
  return options;
}

Result<MemoryPlan> Plan() {
  const Checkpoint checkpoint = TRY(Checkpoint::Open(ModelUnderTest()));
  const CheckpointInventory inventory = TRY(TakeInventory(checkpoint));
  const DrafterCheckpoint opened = TRY(DrafterCheckpoint::Open(DrafterUnderTest()));
  const DrafterInventory tensors = TRY(TakeDrafterInventory(opened));
  const DrafterMemory drafter =
      TRY(PlanDrafter(tensors, opened.config(), Options().drafter_options, inventory.head));
  return MakeMemoryPlan(
      inventory, checkpoint.config(), &drafter,
      {.kv = KvType::kFp8E4m3, .tables = TablePlacement::kMapped, .kept_bytes = 0});
}

// Bytes that opening and drawing took from the device, while the session is open.
Result<uint64_t> Taken() {
  const std::unique_ptr<Backend> watch = TRY(MakeCudaBackend({}));
  const uint64_t before = TRY(watch->FreeBytes()).value();
  const std::unique_ptr<Session> session = TRY(Session::Open(ModelUnderTest(), Options()));
  GenerateRequest request;
  request.prompt.resize(kPrompt);
  std::iota(request.prompt.begin(), request.prompt.end(), 1);
  request.max_tokens = kTokens;
  request.ignore_stop = true;
  TRY(session->Generate(request));
  return before - TRY(watch->FreeBytes()).value();
}

TEST(MemoryPlanGpu, IsWhatTheDeviceHandsOut) {
  const auto plan = Plan();
  ASSERT_TRUE(plan.has_value()) << plan.error().ToString();
  // The first round loads kernels, which the plan counts with the runtime.
  ASSERT_TRUE(Taken().has_value());
  const auto taken = Taken();
  ASSERT_TRUE(taken.has_value()) << taken.error().ToString();
  const uint64_t planned = plan->TakenBytes(1, kPages * 256) - kRuntimeBytes;
  const double off = static_cast<double>(*taken) / static_cast<double>(planned) - 1.0;
  std::printf("planned %.3f GiB, taken %.3f GiB, %+.2f %%\n", planned / 0x1p30, *taken / 0x1p30,
              100.0 * off);
  EXPECT_LT(std::fabs(off), Tolerance("cuda-memory-plan-relative"));
}

}  // namespace
}  // namespace hallmark
