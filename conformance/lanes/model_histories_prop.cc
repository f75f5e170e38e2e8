// SPDX-License-Identifier: Apache-2.0
// Clause: verify-equals-serial
// Clause: commit-equals-serial
// Clause: drafted-equals-undrafted
// Clause: resumed-equals-fresh
// Clause: concurrent-equals-solo
// Clause: copy-gate-neutral
// Clause: failure-isolation
// Random histories on the real engine: golden scribe with its drafter, against a second session
// that runs every request alone, one row a round, with nothing drafted, copied, kept or resumed.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdio>

#include "conformance/cases/lane_runs.h"
#include "conformance/harness/paths.h"
#include "conformance/lanes/lane_commands.h"
#include "engine/base/random.h"
#include "engine/run/session.h"

namespace hallmark {
namespace {

constexpr char kModel[] = "models/scribe-11m-exl3";

std::unique_ptr<Session> Open(SessionOptions options) {
  auto session = Session::Open(GoldenPath(kModel), options);
  EXPECT_TRUE(session.has_value()) << session.error().ToString();
  return std::move(*session);
}

class ModelHistories : public testing::TestWithParam<KvType> {};

TEST_P(ModelHistories, EqualTheSerialSession) {
  const auto session = Open({.kv = GetParam(),
                             .drafter = GoldenPath("models/scribe-11m-dflash2"),
                             .context = 3072,
                             .poison_pages = true});
  const auto serial = Open({.kv = GetParam(), .streams = 1, .kept_bytes = 0});
  LaneCounts counts;
  int64_t histories = 0;
  EXPECT_TRUE(rc::check("histories equal the serial session", [&] {
    // A hundred cases by default, of which every third is run: 34 histories a cache type.
    if (histories++ % 3 != 0) return;
    SplitMix64 ticks(*rc::gen::inRange<uint64_t>(0, 1000));
    const SchedulerOptions options{.max_streams = *rc::gen::inRange(1, kMaxStreams + 1),
                                   .kept_bytes = *rc::gen::element<size_t>(0, 8 << 20, 1 << 28),
                                   .clock = [&ticks, now = 0.0]() mutable {
                                     return now += static_cast<double>(ticks.Below(9));
                                   }};
    LaneWorld world(
        session->target(), session->stop_ids(), options,
        [&](const GenerateRequest& request) { return serial->Generate(SerialOf(request)); },
        session->drawable_ids());
    CheckHistory(world, {.tail = *rc::gen::element(8, 8, 8, 150), .max_tokens = 12, .window = 8});
    counts.Add(world.counts());
  }));
  std::printf("%lld histories: %s\n", static_cast<long long>((histories + 2) / 3),
              counts.ToString().c_str());
  EXPECT_GE((histories + 2) / 3, 34);
  EXPECT_GT(counts.accepted, 20);
  EXPECT_GT(counts.resumes, 20);
  EXPECT_GT(counts.cancelled, 5);
  EXPECT_GE(counts.peak_streams, 3);
}

INSTANTIATE_TEST_SUITE_P(Scribe, ModelHistories, testing::Values(KvType::kBf16, KvType::kFp8E4m3),
                         [](const auto& info) {
                           return info.param == KvType::kBf16 ? "bf16" : "fp8";
                         });

}  // namespace
}  // namespace hallmark
