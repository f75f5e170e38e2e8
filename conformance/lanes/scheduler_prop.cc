// SPDX-License-Identifier: Apache-2.0
// Clause: drafted-equals-undrafted
// Clause: resumed-equals-fresh
// Clause: concurrent-equals-solo
// Clause: copy-gate-neutral
// Clause: failure-isolation
// Random histories of the scheduler on a target whose every slip shows.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdio>

#include "conformance/lanes/fake_target.h"
#include "conformance/lanes/lane_commands.h"
#include "engine/base/random.h"

namespace hallmark {
namespace {

const std::vector<int32_t>& StopIds() {
  static const std::vector<int32_t> ids = {5};
  return ids;
}

// One random history. `counts` gathers what the histories came to.
void RunHistory(LaneCounts& counts) {
  FakeOptions options;
  options.max_pages = *rc::gen::element<int64_t>(0, 3, 9, 30);
  options.max_rows = *rc::gen::element<int64_t>(8, 11, 24, 128);
  options.max_drafts = *rc::gen::element<int64_t>(0, 1, 7, 15);
  options.echoes = *rc::gen::arbitrary<bool>();
  if (*rc::gen::inRange(0, 3) == 0) options.call_breaker = 11;
  if (*rc::gen::inRange(0, 3) == 0) options.logits_breaker = 12;
  if (*rc::gen::inRange(0, 4) == 0) options.draft_breaker = 13;
  // A clock that disagrees with itself: windows take every width, and the same ones again when the
  // history is repeated.
  SplitMix64 ticks(*rc::gen::inRange<uint64_t>(0, 1000));
  const SchedulerOptions scheduler{
      .max_streams = *rc::gen::inRange(1, kMaxStreams + 1),
      .kept_bytes = *rc::gen::element<size_t>(0, 150, 600, 2000, 1 << 20),
      .clock = [&ticks, now = 0.0]() mutable {
        return now += static_cast<double>(ticks.Below(9));
      }};
  FakeTarget target(options);
  {
    LaneWorld world(
        target, StopIds(), scheduler,
        [&](const GenerateRequest& request) { return SerialReply(target, request, StopIds()); },
        options.vocab - 2);
    CheckHistory(world, {.max_tokens = *rc::gen::element(5, 40)});
    counts.Add(world.counts());
  }
  for (const std::string& complaint : target.complaints()) RC_FAIL(complaint);
  RC_ASSERT(target.live_states() == 0);
  RC_ASSERT(target.pages_held() == 0);
}

TEST(SchedulerHistories, EqualTheSerialModel) {
  constexpr int kHistoriesACase = 20;  // a hundred cases by default: 2,000 histories
  LaneCounts counts;
  int64_t histories = 0;
  EXPECT_TRUE(rc::check("histories equal the serial model", [&] {
    for (int i = 0; i < kHistoriesACase; ++i) {
      RunHistory(counts);
      ++histories;
    }
  }));
  std::printf("%lld histories: %s\n", static_cast<long long>(histories), counts.ToString().c_str());
  // None of it in vain.
  EXPECT_GE(histories, 2000);
  EXPECT_GT(counts.accepted, 1000);
  EXPECT_GT(counts.copied, 100);
  EXPECT_GT(counts.resumes, 500);
  EXPECT_GT(counts.cancelled, 100);
  EXPECT_GT(counts.failed, 50);
  EXPECT_GT(counts.refused, 50);
  EXPECT_GE(counts.peak_streams, 4);
}

}  // namespace
}  // namespace hallmark
