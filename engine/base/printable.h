// SPDX-License-Identifier: Apache-2.0
// Printable: a message as one line that a terminal can be given. Messages hold names from files:
// megabytes of them, and bytes of a terminal's own language. Not for JSON or HTML, which escape.
#ifndef HALLMARK_ENGINE_BASE_PRINTABLE_H_
#define HALLMARK_ENGINE_BASE_PRINTABLE_H_

#include <cstddef>
#include <string>

namespace hallmark {

// At most `most` bytes of `text`, and how many more there were; control characters become '?'.
std::string Printable(std::string text, size_t most);

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BASE_PRINTABLE_H_
