// SPDX-License-Identifier: Apache-2.0
// A memory plan as the program shows it: a table for people, an object for programs. Not what
// fits: that is engine/model/memory_plan.h.
#ifndef HALLMARK_TOOLS_HALLMARK_PLAN_TEXT_H_
#define HALLMARK_TOOLS_HALLMARK_PLAN_TEXT_H_

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "engine/model/memory_fit.h"

namespace hallmark {

// Streams of one context that fit.
struct PlannedStreams {
  int64_t context = 0;
  int64_t streams = 0;
};

struct PlanReport {
  std::string directory;
  std::string drafter;  // "": none
  MemoryPlanOptions options;
  MemoryPlan plan;
  uint64_t budget = 0;
  int64_t one_stream_context = 0;
  std::vector<PlannedStreams> streams;
  // What was asked for, or the largest context of one stream.
  PlannedStreams chosen;
};

// Schema: receipts/schemas/plan.v1.schema.json.
nlohmann::json PlanJson(const PlanReport& report);
std::string PlanText(const PlanReport& report);

}  // namespace hallmark

#endif  // HALLMARK_TOOLS_HALLMARK_PLAN_TEXT_H_
