// SPDX-License-Identifier: Apache-2.0
// Error: a code, one sentence, and a locator that says where. Not for broken invariants of our own
// code: those are CHECK (check.h). Policy: docs/design/errors.md.
#ifndef HALLMARK_ENGINE_BASE_ERROR_H_
#define HALLMARK_ENGINE_BASE_ERROR_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hallmark {

enum class Code {
  kNotFound,     // a file, tensor or name that should exist does not
  kIo,           // the system could not read or write
  kMalformed,    // bytes that break their own format
  kUnsupported,  // well-formed, and outside what Hallmark does
  kMismatch,     // two sources of one fact disagree
  kOutOfRange,   // a value outside its stated range
  kResource,     // memory, pages or another budget ran out
  kDevice,       // a device call failed
  kInternal,     // a fault of ours that could be reported instead of aborting
};

// The stable word for a code, e.g. "malformed"; used in JSON and by tests.
std::string_view CodeName(Code code);

// Where a fault is. Every field is optional; tests compare code and locator, never the sentence.
struct Locator {
  std::string file;              // path as the user gave it
  std::optional<uint64_t> byte;  // offset from the file's start
  std::string pointer;           // JSON pointer (RFC 6901)
  std::string tensor;            // full tensor name
  std::string launcher;          // kernel launcher
  std::string flag;              // command-line flag

  // "file, byte 12, tensor x"; empty when nothing is known.
  std::string ToString() const;
  bool operator==(const Locator&) const = default;
};

struct Error {
  Code code = Code::kInternal;
  std::string message;  // one sentence: what was found, what was expected
  Locator where;

  // "malformed: <message> (<locator>)".
  std::string ToString() const;
};

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BASE_ERROR_H_
