// SPDX-License-Identifier: Apache-2.0
// StepProgress: how a step of validation says how far it is. Not a report: nothing that it is told
// enters one. May be empty; called on the step's own thread, a few times a second at most.
#ifndef HALLMARK_CONFORMANCE_VALIDATE_PROGRESS_H_
#define HALLMARK_CONFORMANCE_VALIDATE_PROGRESS_H_

#include <cstdint>
#include <functional>
#include <string_view>

namespace hallmark {

// What is being done, and how much of how much (bytes, tensors, tokens: the step's choice).
using StepProgress = std::function<void(std::string_view what, uint64_t done, uint64_t total)>;

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_VALIDATE_PROGRESS_H_
