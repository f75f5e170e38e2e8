// SPDX-License-Identifier: Apache-2.0
#include "receipts/verify/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <utility>

namespace hallmark::verify {
namespace {

constexpr uint32_t kMostSteps = 100000;

struct MatchContext {
  MatchContext() : context(pcre2_match_context_create(nullptr)) {
    pcre2_set_match_limit(context, kMostSteps);
    pcre2_set_depth_limit(context, kMostSteps);
  }
  ~MatchContext() { pcre2_match_context_free(context); }
  MatchContext(const MatchContext&) = delete;
  MatchContext& operator=(const MatchContext&) = delete;
  pcre2_match_context* context;
};

}  // namespace

Result<Pattern> Pattern::Compile(const std::string& expression) {
  int error = 0;
  PCRE2_SIZE offset = 0;
  pcre2_code* code =
      pcre2_compile(reinterpret_cast<PCRE2_SPTR>(expression.data()), expression.size(),
                    PCRE2_DOLLAR_ENDONLY | PCRE2_UTF, &error, &offset, nullptr);
  if (code == nullptr) {
    return Fail(Code::kMalformed, "not a regular expression: " + expression,
                {.byte = static_cast<uint64_t>(offset)});
  }
  return Pattern(std::shared_ptr<void>(
      code, [](void* pointer) { pcre2_code_free(static_cast<pcre2_code*>(pointer)); }));
}

bool Pattern::Matches(std::string_view text) const {
  static const MatchContext limits;
  const auto* code = static_cast<const pcre2_code*>(code_.get());
  pcre2_match_data* data = pcre2_match_data_create_from_pattern(code, nullptr);
  const int found = pcre2_match(code, reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), 0, 0,
                                data, limits.context);
  pcre2_match_data_free(data);
  return found >= 0;
}

bool GlobMatches(std::string_view glob, std::string_view text) {
  const size_t star = glob.find('*');
  if (star == std::string_view::npos) return glob == text;
  if (!text.starts_with(glob.substr(0, star))) return false;
  glob.remove_prefix(star);
  text.remove_prefix(star);
  // Each '*' takes as little as it can; the last part must end the text.
  while (true) {
    glob.remove_prefix(1);
    const size_t next = glob.find('*');
    const std::string_view part = glob.substr(0, next);
    if (next == std::string_view::npos) return text.ends_with(part);
    const size_t at = text.find(part);
    if (at == std::string_view::npos) return false;
    text.remove_prefix(at + part.size());
    glob.remove_prefix(next);
  }
}

}  // namespace hallmark::verify
