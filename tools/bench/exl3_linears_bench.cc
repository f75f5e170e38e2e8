// SPDX-License-Identifier: Apache-2.0
// First speed of the EXL3 linear on the GPU: the 401 calls of one pass through the 27B against the
// figures of ExLlamaV3 1.4.1 on the same card (mul1 at 3 bits, head at 6), and no cliff past 16
// rows.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "tools/bench/exl3_linears.h"

namespace hallmark {
namespace {

const std::vector<int64_t> kRows = {1, 8, 16, 17, 32, 33, 64, 128};

TEST(Exl3Linears, ThePassIsNoSlowerThanThePeers) {
  auto bench = Exl3LinearsBench::Create();
  ASSERT_TRUE(bench.has_value()) << bench.error().ToString();
  struct Rate {
    const char* name;
    Exl3KernelRate rate;
  };
  for (const Rate& rate :
       {Rate{"mul1 K3", {2, 6}}, Rate{"mul1 K4", {2, 8}}, Rate{"mcg K4", {1, 8}}}) {
    std::vector<double> sum(kRows.size());
    std::printf("%s, microseconds a launch of one input's linears\n%-10s", rate.name, "rows");
    for (const int64_t rows : kRows) std::printf("%9ld", static_cast<long>(rows));
    std::printf("\n");
    for (const LinearGroup& group : LinearsOf27B()) {
      const bool head = group.n[0] == 248320;
      const auto times = bench->Time(group, head ? Exl3KernelRate{2, 12} : rate.rate, kRows);
      ASSERT_TRUE(times.has_value()) << times.error().ToString();
      std::printf("%-10s", group.name.c_str());
      for (size_t i = 0; i < kRows.size(); ++i) {
        std::printf("%9.1f", (*times)[i].microseconds);
        sum[i] += (*times)[i].microseconds * group.times / 1e3;
      }
      std::printf("\n");
    }
    std::printf("%-10s", "pass, ms");
    for (const double value : sum) std::printf("%9.2f", value);
    std::printf("\nt(17)/t(16) %.3f, t(33)/t(32) %.3f\n", sum[3] / sum[2], sum[5] / sum[4]);
    EXPECT_LE(sum[3] / sum[2], 1.3);
    if (rate.rate.k2 == 6) {
      EXPECT_LE(sum[0], 12.4);
      EXPECT_LE(sum[1], 19.1);
      EXPECT_LE(sum[2], 19.0);
    }
  }
}

// HALLMARK_SWEEP=1: the split counts of the body shapes, for choosing the range table.
TEST(Exl3Linears, Sweep) {
  if (std::getenv("HALLMARK_SWEEP") == nullptr) return;
  auto bench = Exl3LinearsBench::Create();
  ASSERT_TRUE(bench.has_value()) << bench.error().ToString();
  for (const LinearGroup& group : LinearsOf27B()) {
    for (const int splits : {1, 2, 3, 4, 5, 6, 8, 10, 12, 16}) {
      const Exl3RangePlan plan{splits, 8};
      if (group.k / 16 < 4 * splits * 8 || (group.n[0] == 248320 && splits > 2)) continue;
      std::printf("%-10s splits %2d:", group.name.c_str(), splits);
      for (const int k2 : {6, 8}) {
        const auto times = bench->Time(group, {2, k2}, {1, 8, 16, 32, 64}, &plan);
        if (!times) continue;
        for (const LinearTime& time : *times) std::printf(" %7.1f", time.microseconds);
        std::printf(" |");
      }
      std::printf("\n");
    }
  }
}

}  // namespace
}  // namespace hallmark
