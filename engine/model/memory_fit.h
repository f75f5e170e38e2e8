// SPDX-License-Identifier: Apache-2.0
// What fits into a budget of device memory by a MemoryPlan, and the one sentence that says so where
// something does not: a session that is opened and the command that only asks give the same.
#ifndef HALLMARK_ENGINE_MODEL_MEMORY_FIT_H_
#define HALLMARK_ENGINE_MODEL_MEMORY_FIT_H_

#include <cstdint>
#include <string>

#include "engine/base/result.h"
#include "engine/model/memory_plan.h"

namespace hallmark {

// The context that the number of streams is judged by where neither is given.
inline constexpr int64_t kUsualContext = 32768;

// Streams, and positions of each of them, or of all together.
struct StreamsAsked {
  int64_t streams = 1;
  int64_t context = 0;
  bool together = false;
};

// "11.42 GiB", "3.00 MiB", "0.5 KiB".
std::string ByteText(uint64_t bytes);

uint64_t NeededBytes(const MemoryPlan& plan, const StreamsAsked& asked);

// For something that does not fit: what it takes, and the largest that does fit.
std::string RefusalSentence(const MemoryPlan& plan, uint64_t budget, const StreamsAsked& asked);

// Settles what is left open: `streams` 0 is as many as hold 32,768 positions each (or all that the
// model has) beside `context`, 1 to `most_streams`; `context` 0 is all the positions that are left,
// together. kResource with RefusalSentence when it does not fit.
Result<StreamsAsked> FitTogether(const MemoryPlan& plan, uint64_t budget, int64_t streams,
                                 int64_t context, int64_t most_streams);

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_MODEL_MEMORY_FIT_H_
