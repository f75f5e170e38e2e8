// SPDX-License-Identifier: Apache-2.0
#include "engine/model/memory_fit.h"

#include <algorithm>
#include <cstdio>

#include "engine/base/checked.h"

namespace hallmark {
namespace {

// Positions, together, beside `streams` streams.
int64_t PositionsLeft(const MemoryPlan& plan, uint64_t budget, int64_t streams) {
  const uint64_t without = plan.TotalBytes(streams, 0);
  if (without > budget) return 0;
  const auto most = static_cast<uint64_t>(streams * RoundUp(plan.max_positions, kKvPageTokens));
  if (plan.page_bytes == 0) return static_cast<int64_t>(most);
  return static_cast<int64_t>((budget - without) / plan.page_bytes * kKvPageTokens);
}

// 0 when there is no room for a page.
int64_t LargestContext(const MemoryPlan& plan, uint64_t budget, const StreamsAsked& asked) {
  if (!asked.together) return plan.LargestContext(budget, asked.streams);
  const int64_t most = asked.streams * RoundUp(plan.max_positions, kKvPageTokens);
  return std::min(most, PositionsLeft(plan, budget, asked.streams));
}

int64_t MostStreams(const MemoryPlan& plan, uint64_t budget, StreamsAsked asked) {
  while (asked.streams > 0 && NeededBytes(plan, asked) > budget) --asked.streams;
  return asked.streams;
}

}  // namespace

std::string ByteText(uint64_t bytes) {
  double value = static_cast<double>(bytes) / 1024;
  const char* format = "%.1f KiB";
  if (bytes >= uint64_t{1} << 20) {
    format = bytes >= uint64_t{1} << 30 ? "%.2f GiB" : "%.2f MiB";
    value /= bytes >= uint64_t{1} << 30 ? 1 << 20 : 1 << 10;
  }
  char text[40];
  std::snprintf(text, sizeof(text), format, value);
  return text;
}

uint64_t NeededBytes(const MemoryPlan& plan, const StreamsAsked& asked) {
  if (!asked.together) return plan.TotalBytes(asked.streams, asked.context);
  const int64_t pages = RoundUp(asked.context, kKvPageTokens) / kKvPageTokens;
  return plan.TotalBytes(asked.streams, 0) + static_cast<uint64_t>(pages) * plan.page_bytes;
}

std::string RefusalSentence(const MemoryPlan& plan, uint64_t budget, const StreamsAsked& asked) {
  const bool one = asked.streams == 1;
  const char* share = one ? "" : asked.together ? " together" : " each";
  std::string sentence =
      std::to_string(asked.streams) + (one ? " stream of " : " streams of ") +
      std::to_string(asked.context) + " positions" + (asked.together ? share : "") + " take " +
      ByteText(NeededBytes(plan, asked)) + ", expected " + ByteText(budget) + " at most";
  const int64_t context = LargestContext(plan, budget, asked);
  const int64_t streams = MostStreams(plan, budget, asked);
  const int64_t one_stream = plan.LargestContext(budget, 1);
  if (context == 0 && one_stream == 0) {
    sentence += "; before the first position it is " + ByteText(plan.TotalBytes(1, 0));
  } else if (context > 0) {
    sentence += "; the largest that fits is " + std::to_string(context) + " positions" + share;
  }
  if (streams > 0) {
    sentence += ", or " + std::to_string(streams) + (streams == 1 ? " stream" : " streams");
  } else if (context == 0 && one_stream > 0) {
    sentence +=
        "; the largest that fits is one stream of " + std::to_string(one_stream) + " positions";
  }
  return sentence;
}

Result<StreamsAsked> FitTogether(const MemoryPlan& plan, uint64_t budget, int64_t streams,
                                 int64_t context, int64_t most_streams) {
  StreamsAsked asked{.streams = streams, .context = context, .together = true};
  if (streams == 0) {
    asked.streams = most_streams;
    const int64_t usual = std::min(kUsualContext, plan.max_positions);
    asked.streams = context == 0 ? plan.MostStreams(budget, usual, most_streams)
                                 : MostStreams(plan, budget, asked);
    asked.streams = std::max<int64_t>(asked.streams, 1);
  }
  // The first position of a stream takes a page.
  if (context == 0) asked.context = 1;
  if (NeededBytes(plan, asked) > budget) {
    return Fail(Code::kResource, RefusalSentence(plan, budget, asked));
  }
  // More than the streams can come to is for the pages of kept states.
  if (context == 0) asked.context = PositionsLeft(plan, budget, asked.streams);
  return asked;
}

}  // namespace hallmark
