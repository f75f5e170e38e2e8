// SPDX-License-Identifier: Apache-2.0
// RapidCheck's state machine over a LaneWorld: one random history a call, of requests, rounds,
// cancels and results taken, shrunk to the fewest commands that still fail.
#ifndef HALLMARK_CONFORMANCE_LANES_LANE_COMMANDS_H_
#define HALLMARK_CONFORMANCE_LANES_LANE_COMMANDS_H_

#include "conformance/lanes/lane_world.h"

namespace hallmark {

// Bounds of random requests.
struct LaneSizes {
  int tail = 12;        // own ids of a prompt, below this
  int max_tokens = 16;  // below this
  int window = 8;
};

// Runs one random history against `world`, to its end. To be called from inside a property.
void CheckHistory(LaneWorld& world, const LaneSizes& sizes);

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_LANES_LANE_COMMANDS_H_
