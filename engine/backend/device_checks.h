// SPDX-License-Identifier: Apache-2.0
// DeviceChecks: what a backend with memory and launches of its own lets a receipt see, beside the
// results of operations. A backend that is the machine itself has none, and needs none: it has no
// second place for a table and no counters. Clauses counters-zero and mapped-equals-device. Not for
// work: calls wait for the device.
#ifndef HALLMARK_ENGINE_BACKEND_DEVICE_CHECKS_H_
#define HALLMARK_ENGINE_BACKEND_DEVICE_CHECKS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/backend/backend.h"
#include "engine/backend/table_placement.h"
#include "engine/base/result.h"

namespace hallmark {

struct SplitCounters {
  std::vector<int32_t> values;  // every counter there is, as it lies in the device's memory
  int64_t launches = 0;         // of linears that are split, since the backend was made
  int64_t growths = 0;          // times that the counters came to lie in new memory
};

class DeviceChecks {
 public:
  virtual ~DeviceChecks() = default;

  // A backend on the same device with a stream, memory and counters of its own, whose tables lie in
  // `tables`. It must go before this one does.
  virtual Result<std::unique_ptr<Backend>> MakeBeside(TablePlacement tables) = 0;
  // What the launches asked for so far left in the counters.
  virtual Result<SplitCounters> ReadSplitCounters() = 0;
};

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BACKEND_DEVICE_CHECKS_H_
