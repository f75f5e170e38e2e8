// SPDX-License-Identifier: Apache-2.0
// A validation as one HTML page that needs nothing beside it: no network, no script, no font. The
// verdict in words first, then the findings, the gravest first, then what was measured. For people;
// programs read the JSON, whose facts these are. Deterministic: no time, no machine.
#ifndef HALLMARK_CONFORMANCE_VALIDATE_REPORT_HTML_H_
#define HALLMARK_CONFORMANCE_VALIDATE_REPORT_HTML_H_

#include <string>

#include "engine/base/json.h"

namespace hallmark {

// `validation` is what ValidationJson returns.
std::string ValidationHtml(const Json& validation);

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_VALIDATE_REPORT_HTML_H_
