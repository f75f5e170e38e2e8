// SPDX-License-Identifier: Apache-2.0
// ValueChecks: the checks of the numbers step, the gravest first. Ids never change their meaning:
// scripts and reports of vendors rest on them.
#ifndef HALLMARK_CONFORMANCE_VALIDATE_VALUE_CHECKS_H_
#define HALLMARK_CONFORMANCE_VALIDATE_VALUE_CHECKS_H_

#include <span>

#include "conformance/validate/step_findings.h"

namespace hallmark {

std::span<const StepCheck> ValueChecks();

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_VALIDATE_VALUE_CHECKS_H_
