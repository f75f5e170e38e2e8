// SPDX-License-Identifier: Apache-2.0
// Exl3RangePlan: how the inputs of an EXL3 linear are cut into ranges that are summed apart. It is
// part of the arithmetic (clause row-invariance): a function of the STORED sizes (K, N) of the
// whole layer alone, never of rows, tile height, streams or a column slice's own width.
//
// With T = K / 16 k-tiles and R = splits * warps ranges, range r covers k-tiles [r T / R,
// (r + 1) T / R). A range is one chain of mma from zero; a split is the left fold of its `warps`
// ranges; the output is the left fold of the splits.
#ifndef HALLMARK_KERNELS_EXL3_RANGE_PLAN_H_
#define HALLMARK_KERNELS_EXL3_RANGE_PLAN_H_

#include <cstdint>

namespace hallmark {

struct Exl3RangePlan {
  int splits = 1;
  int warps = 1;  // ranges in a split
};

inline constexpr int kExl3MaxWarps = 8;
inline constexpr int kExl3MaxSplits = 16;
inline constexpr int kExl3MinRangeTiles = 8;

struct Exl3RangeEntry {
  int64_t k;
  int64_t n;
  Exl3RangePlan plan;
};

// Shapes of the 27B, chosen by measurement for launches that the linears of one input share; others
// follow the rule below.
inline constexpr Exl3RangeEntry kExl3RangeTable[] = {
    {5120, 17408, {2, 8}}, {17408, 5120, {3, 8}}, {5120, 10240, {1, 8}}, {5120, 6144, {1, 8}},
    {6144, 5120, {3, 8}},  {5120, 12288, {1, 8}}, {5120, 1024, {1, 8}},  {5120, 248320, {1, 8}},
};

// K and N are multiples of 128. The rule: up to 8 ranges a split of at least 8 k-tiles each, then
// splits until about 200 column blocks are in flight, again with at least 8 k-tiles a range.
constexpr Exl3RangePlan Exl3RangePlanOf(int64_t k, int64_t n) {
  for (const Exl3RangeEntry& entry : kExl3RangeTable) {
    if (entry.k == k && entry.n == n) return entry.plan;
  }
  const int64_t tiles = k / 16;
  const int64_t blocks = n / 128;
  Exl3RangePlan plan;
  while (plan.warps < kExl3MaxWarps && tiles >= 2 * plan.warps * kExl3MinRangeTiles) {
    plan.warps *= 2;
  }
  while (plan.splits < kExl3MaxSplits && blocks * plan.splits < 200 &&
         tiles >= int64_t{2} * plan.splits * plan.warps * kExl3MinRangeTiles) {
    plan.splits *= 2;
  }
  return plan;
}

}  // namespace hallmark

#endif  // HALLMARK_KERNELS_EXL3_RANGE_PLAN_H_
