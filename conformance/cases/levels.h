// SPDX-License-Identifier: Apache-2.0
// Levels: which cases a receipt of a level must hold. L0 format, L1 kernels and text, L2 model
// exact, L3 drafter and lanes exact; each holds those below. The names per level are committed in
// receipts/must_pass, and a receipt that lacks one is no receipt of that level.
#ifndef HALLMARK_CONFORMANCE_CASES_LEVELS_H_
#define HALLMARK_CONFORMANCE_CASES_LEVELS_H_

#include <optional>
#include <string>
#include <string_view>

#include "conformance/cases/subject.h"
#include "conformance/harness/registry.h"

namespace hallmark {

enum class Level { kL0, kL1, kL2, kL3 };
inline constexpr Level kLevels[] = {Level::kL0, Level::kL1, Level::kL2, Level::kL3};
std::string_view LevelName(Level level);  // "L0"
std::optional<Level> ParseLevel(std::string_view name);

// Adds the cases of exactly this level, those of no golden model among them. Without a drafter L3
// lacks the cases that need one, so it is no receipt's L3.
Status AddLevelCases(Level level, const CaseSubject& subject, CaseRegistry& registry);

// Backends that answer for more than results of operations: a receipt of one holds these cases
// besides, a receipt of any other backend none of them.
inline constexpr std::string_view kBackendsWithCases[] = {"cuda"};
// Adds the cases of exactly this level that a receipt of `backend` alone holds: none for a backend
// without any.
Status AddBackendCases(Level level, std::string_view backend, const CaseSubject& subject,
                       CaseRegistry& registry);

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_CASES_LEVELS_H_
