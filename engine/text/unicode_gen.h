// SPDX-License-Identifier: Apache-2.0
// For property tests: random well-formed UTF-8 that leans towards what splitting and NFC find hard.
#ifndef HALLMARK_ENGINE_TEXT_UNICODE_GEN_H_
#define HALLMARK_ENGINE_TEXT_UNICODE_GEN_H_

#include <string>

namespace hallmark {

// Draws from RapidCheck; only to be called inside a property.
std::string DrawUnicodeText();

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_TEXT_UNICODE_GEN_H_
