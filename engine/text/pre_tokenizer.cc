// SPDX-License-Identifier: Apache-2.0
#include "engine/text/pre_tokenizer.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <span>
#include <string>

#include "engine/base/check.h"
#include "engine/text/unicode_ranges.h"

namespace hallmark {

const std::string_view kQwen35SplitPattern =
    R"re((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)re";

namespace {

// White_Space, for use inside a class.
constexpr std::string_view kSpace =
    R"(\x09-\x0D \x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";

std::string ClassItems(std::string_view property, std::span<const CodePointRange> late) {
  std::string items(property);
  char text[40];
  for (const CodePointRange& range : late) {
    std::snprintf(text, sizeof(text), "\\x{%X}-\\x{%X}", static_cast<unsigned>(range.first),
                  static_cast<unsigned>(range.last));
    items += text;
  }
  return items;
}

std::string In(const std::string& items) { return "[" + items + "]"; }
std::string NotIn(const std::string& items) { return "[^" + items + "]"; }

// The accepted pattern's alternatives in their order.
std::string PatternForPcre2() {
  const std::string newline = "\\r\\n";
  const std::string space(kSpace);
  const std::string letter = ClassItems("\\p{L}", LateLetters());
  const std::string mark = ClassItems("\\p{M}", LateMarks());
  const std::string number = ClassItems("\\p{N}", LateNumbers());
  const std::string alternatives[] = {
      "(?i:'s|'t|'re|'ve|'m|'ll|'d)",
      NotIn(newline + letter + number) + "?" + In(letter + mark) + "+",
      In(number),
      " ?" + NotIn(space + letter + mark + number) + "+" + In(newline) + "*",
      In(space) + "*" + In(newline) + "+",
      In(space) + "+(?!" + NotIn(space) + ")",
      In(space) + "+",
  };
  std::string pattern;
  for (const std::string& alternative : alternatives) {
    if (!pattern.empty()) pattern += "|";
    pattern += alternative;
  }
  return pattern;
}

struct CodeFree {
  void operator()(pcre2_code_8* code) const { pcre2_code_free_8(code); }
};
struct MatchDataFree {
  void operator()(pcre2_match_data_8* data) const { pcre2_match_data_free_8(data); }
};
struct MatchContextFree {
  void operator()(pcre2_match_context_8* context) const { pcre2_match_context_free_8(context); }
};

// Steps PCRE2 may take in one match. The rule needs a small multiple of the text's length.
uint32_t StepLimit(size_t bytes) {
  constexpr uint64_t kStepsPerByte = 16;
  constexpr uint64_t kFloor = 1000;
  return static_cast<uint32_t>(
      std::min<uint64_t>(kFloor + kStepsPerByte * bytes, std::numeric_limits<uint32_t>::max()));
}

Error OutOfMemory() { return {Code::kResource, "no memory for the pre-tokenizer's regex", {}}; }

}  // namespace

struct PreTokenizer::Program {
  std::unique_ptr<pcre2_code_8, CodeFree> code;
};

PreTokenizer::PreTokenizer(std::unique_ptr<Program> program) : program_(std::move(program)) {}
PreTokenizer::PreTokenizer(PreTokenizer&&) noexcept = default;
PreTokenizer& PreTokenizer::operator=(PreTokenizer&&) noexcept = default;
PreTokenizer::~PreTokenizer() = default;

Result<PreTokenizer> PreTokenizer::Make(Engine engine) {
  const std::string pattern = PatternForPcre2();
  int error = 0;
  PCRE2_SIZE error_offset = 0;
  auto program = std::make_unique<Program>();
  program->code.reset(pcre2_compile_8(reinterpret_cast<PCRE2_SPTR8>(pattern.data()), pattern.size(),
                                      PCRE2_UTF | PCRE2_UCP | PCRE2_ANCHORED, &error, &error_offset,
                                      nullptr));
  if (program->code == nullptr) {
    // The pattern is ours, so memory is all that can be short; a PCRE2 built without Unicode is a
    // broken installation and is said to be one.
    if (error == PCRE2_ERROR_HEAP_FAILED) return Fail(OutOfMemory());
    return Fail(Code::kInternal,
                "PCRE2 refused the pre-tokenizer's pattern with error " + std::to_string(error));
  }
  if (engine == Engine::kFastest) {
    // Where executable memory is not to be had this fails, and matches run interpreted.
    pcre2_jit_compile_8(program->code.get(), PCRE2_JIT_COMPLETE);
  }
  return PreTokenizer(std::move(program));
}

Status PreTokenizer::Split(std::string_view text, std::vector<std::string_view>* pieces) const {
  const std::unique_ptr<pcre2_match_data_8, MatchDataFree> data(
      pcre2_match_data_create_8(1, nullptr));
  const std::unique_ptr<pcre2_match_context_8, MatchContextFree> context(
      pcre2_match_context_create_8(nullptr));
  if (data == nullptr || context == nullptr) return Fail(OutOfMemory());
  pcre2_set_match_limit_8(context.get(), StepLimit(text.size()));
  const auto* subject = reinterpret_cast<PCRE2_SPTR8>(text.data());
  const PCRE2_SIZE* bounds = pcre2_get_ovector_pointer_8(data.get());
  size_t at = 0;
  while (at < text.size()) {
    // Without NO_UTF_CHECK each match would read the whole text again.
    int found = pcre2_match_8(program_->code.get(), subject, text.size(), at, PCRE2_NO_UTF_CHECK,
                              data.get(), context.get());
    if (found == PCRE2_ERROR_JIT_STACKLIMIT) {
      found = pcre2_match_8(program_->code.get(), subject, text.size(), at,
                            PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, data.get(), context.get());
    }
    if (found < 0 && found != PCRE2_ERROR_NOMATCH) {
      return Fail(Code::kResource,
                  "PCRE2 gave up on splitting the text with error " + std::to_string(found),
                  {.byte = at});
    }
    // Every character is a space, a letter, a mark, a number or none of these, and each kind has
    // an alternative.
    CHECK(found > 0 && bounds[0] == at && bounds[1] > at);
    pieces->push_back(text.substr(at, bounds[1] - at));
    at = bounds[1];
  }
  return {};
}

}  // namespace hallmark
