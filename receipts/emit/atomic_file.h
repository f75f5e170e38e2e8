// SPDX-License-Identifier: Apache-2.0
// WriteFileAtomically: a file appears whole or not at all. For every file the tools write.
#ifndef HALLMARK_RECEIPTS_EMIT_ATOMIC_FILE_H_
#define HALLMARK_RECEIPTS_EMIT_ATOMIC_FILE_H_

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "engine/base/result.h"

namespace hallmark {

// Takes the next bytes of the file; kIo when they cannot be written.
using ByteSink = std::function<Status(std::span<const std::byte>)>;

// Has `write` fill a new file beside `path`, then renames it to `path`. On any error, of `write`
// included, nothing is left behind and an older file at `path` is untouched. A link is followed.
// kIo names the file; so it does when `path` is a folder, a device, a pipe or a link that leads
// nowhere.
Status WriteFileAtomically(const std::string& path,
                           const std::function<Status(const ByteSink&)>& write);
Status WriteFileAtomically(const std::string& path, std::string_view text);

}  // namespace hallmark

#endif  // HALLMARK_RECEIPTS_EMIT_ATOMIC_FILE_H_
