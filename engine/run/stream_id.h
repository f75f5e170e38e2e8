// SPDX-License-Identifier: Apache-2.0
// StreamId: names a submitted request; never used twice in one session.
#ifndef HALLMARK_ENGINE_RUN_STREAM_ID_H_
#define HALLMARK_ENGINE_RUN_STREAM_ID_H_

#include <cstdint>

namespace hallmark {

using StreamId = uint64_t;

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_RUN_STREAM_ID_H_
