// SPDX-License-Identifier: Apache-2.0
// Speed of the CPU backend's EXL3 linears, by tier, codebook and width: the decode alone, one row,
// eight rows. Every rate is first checked for equal bits on every tier; a speed of wrong bits does
// not count. Weights are random, which changes no speed. Not a gate: medians of one machine at one
// moment. Compare ratios of one run, never rates of two.
#ifndef HALLMARK_TOOLS_BENCH_CPU_LINEAR_H_
#define HALLMARK_TOOLS_BENCH_CPU_LINEAR_H_

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/json.h"
#include "engine/base/result.h"

namespace hallmark {

struct CpuLinearBenchOptions {
  int rounds = 7;                       // every round times every tier once, in turn
  int threads = 1;                      // for one and eight rows; the decode is always one thread
  int64_t inputs = 2048;                // of the wide tiers; multiples of 128, and large enough to
  int64_t outputs = 4096;               // leave the second-level cache
  std::vector<int> widths = {3, 4, 6};  // bits a weight
};

// {"rows": [{"codebook", "bits", "tier", "decode", "one_row", "eight_rows": G weights/s, medians},
//           ...],   (the scalar tier's layers keep decoded values, so its rows cost no decode)
//  "ratios": [{"codebook", "bits", "<tier>_over_<tier>": decode, "eight_rows_over_one": {tier: time
//              of eight rows over time of one}}, ...],
//  ... the options}. Ratios are medians of the rounds' own ratios. kMismatch if two tiers differ.
Result<Json> RunCpuLinearBench(const CpuLinearBenchOptions& options);

// The same as a table for people.
std::string CpuLinearBenchText(const Json& result);

}  // namespace hallmark

#endif  // HALLMARK_TOOLS_BENCH_CPU_LINEAR_H_
