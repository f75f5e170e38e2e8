// SPDX-License-Identifier: Apache-2.0
// MustPassTextOf: the must-pass list of a level as the code's own registries give it, canonical.
// For the tool that writes the committed lists and the test that compares them.
#ifndef HALLMARK_RECEIPTS_EMIT_MUST_PASS_TEXT_H_
#define HALLMARK_RECEIPTS_EMIT_MUST_PASS_TEXT_H_

#include <string>

#include "conformance/cases/levels.h"
#include "engine/base/result.h"

namespace hallmark {

// Reads the golden models (L2 lists their extra cases and file digests).
Result<std::string> MustPassTextOf(Level level, const std::string& golden);

}  // namespace hallmark

#endif  // HALLMARK_RECEIPTS_EMIT_MUST_PASS_TEXT_H_
