// SPDX-License-Identifier: Apache-2.0
// Clause failure-isolation on the CUDA backend: whatever driver call fails while a session is
// opened, every byte goes back, page-locked memory included, and nothing is freed in flight; a
// device that is lost is named, and nothing more is asked of it.
#include <gtest/gtest.h>

#include <cstdio>
#include <string>
#include <vector>

#include "conformance/cuda/fake_session.h"
#include "engine/model/forward.h"

namespace hallmark {
namespace {

using Problems = std::vector<std::string>;

class DeviceFailures : public testing::TestWithParam<bool> {
 protected:
  static void SetUpTestSuite() {
    auto files = FakeFiles::Write(testing::TempDir() + "hallmark_cuda_failures");
    ASSERT_TRUE(files.has_value()) << files.error().ToString();
    files_ = new FakeFiles(*files);
  }
  static void TearDownTestSuite() { delete files_; }

  bool mapped() const { return GetParam(); }
  Result<std::unique_ptr<Session>> Open(FakeCudaDevice& device) const {
    return OpenFakeSession(*files_, device, mapped());
  }
  static GenerateRequest Request() {
    return {.prompt = {1, 2, 3, 4, 5}, .max_tokens = 4, .ignore_stop = true};
  }

  static FakeFiles* files_;
};
FakeFiles* DeviceFailures::files_ = nullptr;

TEST_P(DeviceFailures, AnOpenGivesEverythingBack) {
  FakeCudaDevice device;
  {
    const auto session = Open(device);
    ASSERT_TRUE(session.has_value()) << session.error().ToString();
    EXPECT_EQ((*session)->backend_name(), "cuda");
    EXPECT_EQ((*session)->tier(), "sm_90");
    EXPECT_GT(device.device_bytes(), size_t{1} << 20);
  }
  EXPECT_EQ(device.Problems(), Problems{});
}

TEST_P(DeviceFailures, ACallThatFailsLeavesNoByteBehind) {
  FakeCudaDevice counting;
  ASSERT_TRUE(Open(counting).has_value());
  const int64_t calls = counting.fallible_calls();
  ASSERT_GT(calls, 100);
  for (int64_t call = 0; call < calls; ++call) {
    FakeCudaDevice device;
    device.calls_left = call;
    {
      const auto session = Open(device);
      ASSERT_FALSE(session.has_value()) << "call " << call;
      EXPECT_EQ(session.error().code, Code::kDevice) << "call " << call;
    }
    ASSERT_EQ(device.Problems(), Problems{}) << "call " << call;
  }
  std::printf("%lld calls failed in turn\n", static_cast<long long>(calls));
}

TEST_P(DeviceFailures, MemoryThatRunsOutLeavesNoByteBehind) {
  FakeCudaDevice counting;
  ASSERT_TRUE(Open(counting).has_value());
  const int64_t allocations = counting.allocations();
  ASSERT_GT(allocations, 8);  // slabs and page-locked memory
  for (int64_t allocation = 0; allocation < allocations; ++allocation) {
    FakeCudaDevice device;
    device.allocations_left = allocation;
    device.allocations_short = 1 << 20;
    {
      const auto session = Open(device);
      ASSERT_FALSE(session.has_value()) << "allocation " << allocation;
      EXPECT_EQ(session.error().code, Code::kResource) << "allocation " << allocation;
    }
    ASSERT_EQ(device.Problems(), Problems{}) << "allocation " << allocation;
  }
  std::printf("%lld allocations failed in turn\n", static_cast<long long>(allocations));
}

TEST_P(DeviceFailures, AContextThatCannotFitIsRefused) {
  FakeCudaDevice device;
  ASSERT_TRUE(Open(device).has_value());
  auto backend = MakeCudaBackend(device, {.mapped_tables = mapped()});
  ASSERT_TRUE(backend.has_value());
  device.memory_limit = device.device_bytes() + (uint64_t{64} << 20);
  const auto session = Session::Open(files_->checkpoint, {.device = "cuda", .context = 1 << 20},
                                     std::move(*backend));
  ASSERT_FALSE(session.has_value());
  EXPECT_EQ(session.error().code, Code::kResource);
  EXPECT_EQ(session.error().where.flag, "--context");
  EXPECT_EQ(device.Problems(), Problems{});
}

// Any launch of a reply loses the device: the error names the launcher, and stays.
TEST_P(DeviceFailures, ALostDeviceIsNamedAndNotAskedAgain) {
  FakeCudaDevice counting;
  {
    auto session = Open(counting);
    ASSERT_TRUE(session.has_value());
    const auto reply = (*session)->Logits(std::vector<int32_t>{1, 2, 3});
    // No kernel ran, so there are no logits: but all of them were launched.
    ASSERT_FALSE(reply.has_value());
    EXPECT_EQ(reply.error().code, Code::kOutOfRange);
  }
  EXPECT_EQ(counting.Problems(), Problems{});
  FakeCudaDevice opening;
  ASSERT_TRUE(Open(opening).has_value());
  const int64_t first = opening.launches();
  ASSERT_GT(counting.launches() - first, 50);
  for (int64_t launch = first; launch < counting.launches(); ++launch) {
    FakeCudaDevice device;
    {
      auto session = Open(device);
      ASSERT_TRUE(session.has_value());
      device.launches_left = launch - first;
      const auto lost = (*session)->Logits(std::vector<int32_t>{1, 2, 3});
      ASSERT_FALSE(lost.has_value()) << "launch " << launch;
      EXPECT_EQ(lost.error().code, Code::kDevice) << "launch " << launch;
      EXPECT_TRUE(lost.error().where.launcher.starts_with("Launch")) << "launch " << launch;
      const int64_t calls = device.fallible_calls();
      const auto again = (*session)->Logits(std::vector<int32_t>{1});
      ASSERT_FALSE(again.has_value());
      EXPECT_EQ(again.error().ToString(), lost.error().ToString());
      const auto reply = (*session)->Generate(Request());
      ASSERT_FALSE(reply.has_value());
      EXPECT_EQ(reply.error().ToString(), lost.error().ToString());
      EXPECT_EQ(device.fallible_calls(), calls) << "launch " << launch;
    }
    ASSERT_EQ(device.Problems(), Problems{}) << "launch " << launch;
  }
}

// Calls that fail while a pass runs, not a launch among them alone.
TEST_P(DeviceFailures, ACallThatFailsInAPassLeavesNoByteBehind) {
  FakeCudaDevice counting;
  int64_t opened = 0;
  {
    auto session = Open(counting);
    ASSERT_TRUE(session.has_value());
    opened = counting.fallible_calls();
    ASSERT_FALSE((*session)->Logits(std::vector<int32_t>{1, 2, 3}).has_value());
  }
  const int64_t calls = counting.fallible_calls() - opened;
  ASSERT_GT(calls, 60);
  for (int64_t call = 0; call < calls; ++call) {
    FakeCudaDevice device;
    {
      auto session = Open(device);
      ASSERT_TRUE(session.has_value());
      device.calls_left = call;
      const auto logits = (*session)->Logits(std::vector<int32_t>{1, 2, 3});
      ASSERT_FALSE(logits.has_value());
      EXPECT_EQ(logits.error().code, Code::kDevice) << "call " << call;
    }
    ASSERT_EQ(device.Problems(), Problems{}) << "call " << call;
  }
}

std::string PlacementName(const testing::TestParamInfo<bool>& info) {
  return info.param ? "Mapped" : "Device";
}
INSTANTIATE_TEST_SUITE_P(Tables, DeviceFailures, testing::Bool(), PlacementName);

}  // namespace
}  // namespace hallmark
