// SPDX-License-Identifier: Apache-2.0
// A validation as JSON (receipts/schemas/validation.v1.schema.json) and as text for a terminal. The
// JSON is stable: members are added, never changed. Not for receipts: a validation proves nothing.
#ifndef HALLMARK_CONFORMANCE_VALIDATE_VALIDATION_JSON_H_
#define HALLMARK_CONFORMANCE_VALIDATE_VALIDATION_JSON_H_

#include <string>
#include <string_view>

#include "conformance/validate/validation.h"
#include "engine/base/json.h"

namespace hallmark {

std::string_view SeverityName(Severity severity);  // "note", "warning", "error"

// `version` is the program's.
Json ValidationJson(const Validation& validation, const std::string& version);

// The first line names the gravest finding and its place; then the findings by step, errors first;
// the last line is the verdict in words.
std::string ValidationText(const Validation& validation);

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_VALIDATE_VALIDATION_JSON_H_
