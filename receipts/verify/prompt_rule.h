// SPDX-License-Identifier: Apache-2.0
// PromptRule: a prompt that is a rule and not a text, so that a verifier finds its ids again with
// no file: id i is the i-th output of SplitMix64 from the seed, modulo a bound stated in the
// receipt.
#ifndef HALLMARK_RECEIPTS_VERIFY_PROMPT_RULE_H_
#define HALLMARK_RECEIPTS_VERIFY_PROMPT_RULE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hallmark::verify {

struct PromptRule {
  std::string name;
  std::string level;  // the lowest that needs it
  std::string words;  // of the rule; the bound follows them
  std::string seed;   // 16 hex digits
  uint64_t tokens = 0;
};

// The bound at the end of `rule`, in [1, 2^31 - 1], when its words are those of `expected`.
std::optional<uint64_t> BoundOf(const PromptRule& expected, std::string_view rule);

// SHA-256 of the ids as little-endian int32.
std::string PromptDigest(const PromptRule& rule, uint64_t bound);

}  // namespace hallmark::verify

#endif  // HALLMARK_RECEIPTS_VERIFY_PROMPT_RULE_H_
