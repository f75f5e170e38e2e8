// SPDX-License-Identifier: Apache-2.0
// Forty requests in one process: resident memory stays where the first five came to. Drafted,
// copied, resumed and shared, of changing lengths, with a bound on kept states that is reached
// early.
#include <gtest/gtest.h>
#include <malloc.h>

#include <cstdio>
#include <fstream>
#include <string>

#include "conformance/cases/lane_runs.h"
#include "conformance/harness/paths.h"
#include "engine/run/session.h"

namespace hallmark {
namespace {

// Resident bytes, once the allocator has given back what it holds for later.
double ResidentBytes() {
  malloc_trim(0);
  std::ifstream status("/proc/self/status");
  std::string word;
  double kilobytes = 0;
  while (status >> word) {
    if (word == "VmRSS:") status >> kilobytes;
  }
  return kilobytes * 1024;
}

TEST(Memory, FortyRequestsStayWhereTheFirstFiveCame) {
  constexpr int kRequests = 40;
  auto session =
      Session::Open(GoldenPath("models/scribe-11m-exl3"),
                    {.drafter = GoldenPath("models/scribe-11m-dflash2"), .kept_bytes = 5 << 20});
  ASSERT_TRUE(session.has_value()) << session.error().ToString();
  double first_five = 0;
  double highest = 0;
  for (int i = 0; i < kRequests; ++i) {
    std::vector<StreamId> ids;
    for (int stream = 0; stream < 2; ++stream) {
      GenerateRequest request;
      request.prompt =
          RulePrompt(4000, 110 + 90 * stream + 30 * (i % 2), static_cast<uint64_t>(stream));
      request.max_tokens = 16;
      request.ignore_stop = true;
      request.draft.window = 7;
      auto id = (*session)->Submit(request);
      ASSERT_TRUE(id.has_value());
      ids.push_back(*id);
    }
    while (*(*session)->Round()) {
    }
    for (const StreamId id : ids) ASSERT_TRUE((*session)->Take(id).has_value());
    const double now = ResidentBytes();
    ASSERT_GT(now, 0);
    // The requests come in a cycle of five, and so do the readings: the first cycle's highest.
    double& mark = i < 5 ? first_five : highest;
    mark = std::max(mark, now);
  }
  std::printf("%.1f MB at most in the first five requests, %.1f MB after\n", first_five / 1e6,
              highest / 1e6);
  EXPECT_LE(highest, 1.01 * first_five);
}

}  // namespace
}  // namespace hallmark
