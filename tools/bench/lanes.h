// SPDX-License-Identifier: Apache-2.0
// What drafting and copies bring on this machine: decoding with them over decoding without, windows
// chosen by measured costs as in any run. Both arms must draw the same ids; a speed of other ids
// does not count. Not a gate: ratios of one machine at one moment, arms in turn, medians.
#ifndef HALLMARK_TOOLS_BENCH_LANES_H_
#define HALLMARK_TOOLS_BENCH_LANES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/json.h"
#include "engine/run/session.h"

namespace hallmark {

struct LaneBenchOptions {
  std::vector<std::vector<int32_t>> prompts;  // ids; at least one
  int64_t tokens = 96;                        // drawn after each
  int rounds = 5;                             // every round runs both arms of every prompt
};

// {"prompts": [{"serial_tokens_per_second", "drafted_over_serial", "ids_a_round", "drafted",
//               "accepted"}, ...],       (drafted: drafter and copies as by default)
//  "copies": {"serial_tokens_per_second", "copied_over_serial", "ids_a_round", "copied"},
//  "tokens", "rounds"}. The copies' text is one that repeats itself by rule, whatever the model
//  would
// say. kMismatch if an arm drew other ids.
Result<Json> RunLaneBench(Session& session, const LaneBenchOptions& options);

// The same as a table for people.
std::string LaneBenchText(const Json& result);

}  // namespace hallmark

#endif  // HALLMARK_TOOLS_BENCH_LANES_H_
