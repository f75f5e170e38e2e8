// SPDX-License-Identifier: Apache-2.0
// NFC, through utf8proc, frozen at Unicode 9: what the reference tokenizer applies, whatever
// version of utf8proc is installed (unicode_ranges.h). Code points assigned later are left alone.
// Not for the compatibility forms. Policy for ill-formed UTF-8: refused (kMalformed, with the
// offset of the first bad byte), never replaced, since replacing would change the caller's text.
// Time is O(n log n) at worst, also for long runs of combining marks: utf8proc's own reordering is
// quadratic there, so marks are sorted here and utf8proc decomposes and composes.
#ifndef HALLMARK_ENGINE_TEXT_NORMALIZER_H_
#define HALLMARK_ENGINE_TEXT_NORMALIZER_H_

#include <string>
#include <string_view>

#include "engine/base/result.h"

namespace hallmark {

Result<std::string> NormalizeNfc(std::string_view text);

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_TEXT_NORMALIZER_H_
