// SPDX-License-Identifier: Apache-2.0
// Strict JSON: duplicate keys, non-UTF-8, trailing bytes (NUL among them), a byte order mark and
// excessive depth are refused, and the parser's exceptions end here. A parsed value takes at most
// some 150 bytes beside its text, so kMaxJsonValues bounds the memory of any document. Not for
// safetensors headers, which have their own bounded reader.
#ifndef HALLMARK_ENGINE_BASE_JSON_H_
#define HALLMARK_ENGINE_BASE_JSON_H_

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "engine/base/result.h"

namespace hallmark {

using Json = nlohmann::json;

inline constexpr int kMaxJsonDepth = 64;
// Values and keys of one document; the tokenizers of today have some 800,000.
inline constexpr size_t kMaxJsonValues = size_t{4} << 20;

// Parses one JSON document. kMalformed with the byte offset (syntax) or the JSON pointer
// (duplicate key, depth); kOutOfRange for more than kMaxJsonValues. `file` names the source in
// errors.
Result<Json> ParseJson(std::string_view text, const std::string& file);

// Reads and parses a file of at most `max_bytes`; kOutOfRange when it is larger.
Result<Json> ReadJsonFile(const std::string& path, size_t max_bytes = size_t{64} << 20);

// Canonical text: keys sorted, two-space indent, final newline. What vectors and receipts use.
std::string CanonicalJson(const Json& value);

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BASE_JSON_H_
