// SPDX-License-Identifier: Apache-2.0
// Errors and texts of files as JSON holds them. Not for reading JSON: json.h.
#ifndef HALLMARK_ENGINE_BASE_ERROR_JSON_H_
#define HALLMARK_ENGINE_BASE_ERROR_JSON_H_

#include <string>

#include "engine/base/error.h"
#include "engine/base/json.h"

namespace hallmark {

// The text with U+FFFD for what is not UTF-8: JSON strings are UTF-8, a path need not be.
std::string Utf8(const std::string& text);

// The fields that are known, under their names in Locator.
Json LocatorJson(const Locator& where);

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BASE_ERROR_JSON_H_
