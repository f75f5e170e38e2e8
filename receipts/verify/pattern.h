// SPDX-License-Identifier: Apache-2.0
// Pattern: a regular expression (PCRE2) matched in bounded time against untrusted text, and a glob
// of '*' alone. '$' matches at the very end only, as in JSON Schema.
#ifndef HALLMARK_RECEIPTS_VERIFY_PATTERN_H_
#define HALLMARK_RECEIPTS_VERIFY_PATTERN_H_

#include <memory>
#include <string>
#include <string_view>

#include "engine/base/result.h"

namespace hallmark::verify {

class Pattern {
 public:
  static Result<Pattern> Compile(const std::string& expression);
  // False also when the match would take more steps than are allowed.
  bool Matches(std::string_view text) const;

 private:
  explicit Pattern(std::shared_ptr<void> code) : code_(std::move(code)) {}
  std::shared_ptr<void> code_;
};

// Whether all of `text` fits `glob`, where '*' stands for any run of characters.
bool GlobMatches(std::string_view glob, std::string_view text);

}  // namespace hallmark::verify

#endif  // HALLMARK_RECEIPTS_VERIFY_PATTERN_H_
