// SPDX-License-Identifier: Apache-2.0
// PreTokenizer: cuts normalised text into the pieces that byte-pair merging never crosses. Knows
// one rule, the Qwen3.5 split ("isolated": every byte belongs to one piece). Not a general regex
// splitter: the pattern in a tokenizer.json is compared with kQwen35SplitPattern, never compiled.
//
// The rule runs on PCRE2 with three differences from its text, so that pieces equal the
// reference's (HF tokenizers, Oniguruma) on every code point: \s is Unicode White_Space (PCRE2
// would add U+180E), letters, marks and numbers are Unicode 16's (unicode_ranges.h), and a
// match is anchored, since some alternative matches everywhere. Time is linear: within one
// alternative each byte is visited at most twice, and a limit on match steps proportional to the
// text turns anything else into an error. With and without PCRE2's JIT the pieces are the same.
#ifndef HALLMARK_ENGINE_TEXT_PRE_TOKENIZER_H_
#define HALLMARK_ENGINE_TEXT_PRE_TOKENIZER_H_

#include <memory>
#include <string_view>
#include <vector>

#include "engine/base/result.h"

namespace hallmark {

// The one pattern that is accepted, as tokenizer.json spells it.
extern const std::string_view kQwen35SplitPattern;

class PreTokenizer {
 public:
  enum class Engine {
    kFastest,      // JIT where the machine allows it
    kInterpreter,  // for tests
  };
  // kResource when PCRE2 has no memory.
  static Result<PreTokenizer> Make(Engine engine = Engine::kFastest);

  PreTokenizer(PreTokenizer&&) noexcept;
  PreTokenizer& operator=(PreTokenizer&&) noexcept;
  ~PreTokenizer();

  // Appends the pieces of well-formed UTF-8 `text`, in order; together they are the text. May be
  // called from several threads at once.
  Status Split(std::string_view text, std::vector<std::string_view>* pieces) const;

 private:
  struct Program;
  explicit PreTokenizer(std::unique_ptr<Program> program);
  std::unique_ptr<Program> program_;
};

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_TEXT_PRE_TOKENIZER_H_
