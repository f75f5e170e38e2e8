// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cuda/split_workspace.h"

#include <utility>

namespace hallmark {

Result<Exl3Workspace> SplitWorkspace::Reserve(size_t partials_bytes, size_t counters) {
  const size_t bytes = counters * sizeof(int32_t);
  if (bytes > counters_.bytes()) {
    Buffer grown = TRY(arena_.Allocate(bytes));
    // The call's own stream: any other would leave the first launch before the zeros.
    TRY(stream_.Fill(grown.data(), 0, grown.bytes()));
    counters_ = std::move(grown);
    ++growths_;
  }
  launches_ += counters > 0 ? 1 : 0;
  void* partials = TRY(partials_.Reserve(partials_bytes));
  return Exl3Workspace{static_cast<float*>(partials), static_cast<int32_t*>(counters_.data())};
}

}  // namespace hallmark
