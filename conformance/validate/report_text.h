// SPDX-License-Identifier: Apache-2.0
// Text of the HTML report: what comes from files, escaped; numbers, keys and facts as a reader
// meets them. Not a template language. Deterministic.
#ifndef HALLMARK_CONFORMANCE_VALIDATE_REPORT_TEXT_H_
#define HALLMARK_CONFORMANCE_VALIDATE_REPORT_TEXT_H_

#include <string>
#include <string_view>

#include "engine/base/json.h"

namespace hallmark {

// For element text and for attributes in double quotes. `text` is UTF-8; control characters and
// those that turn the direction of writing become U+FFFD.
std::string EscapeHtml(std::string_view text);

// Escaped. Whole numbers in groups of three (not in a list, whose numbers are ids), fractions with
// four digits, null as a dash.
std::string HtmlOfValue(const Json& value);
// "used_tensors" is "used tensors". Escaped.
std::string HtmlOfKey(std::string_view key);

// Facts as lists and tables. Every value stands in an element whose data-fact is its JSON pointer,
// which begins with `pointer`.
std::string HtmlOfFacts(const Json& facts, const std::string& pointer);
// A list of objects, or an object of them, as one table that scrolls by itself.
std::string HtmlOfTable(const Json& rows, const std::string& pointer);

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_VALIDATE_REPORT_TEXT_H_
