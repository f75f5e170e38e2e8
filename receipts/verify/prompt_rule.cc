// SPDX-License-Identifier: Apache-2.0
#include "receipts/verify/prompt_rule.h"

#include <charconv>
#include <span>
#include <vector>

#include "engine/base/sha256.h"

namespace hallmark::verify {

std::optional<uint64_t> BoundOf(const PromptRule& expected, std::string_view rule) {
  if (!rule.starts_with(expected.words)) return std::nullopt;
  rule.remove_prefix(expected.words.size());
  uint64_t bound = 0;
  const auto [end, error] = std::from_chars(rule.data(), rule.data() + rule.size(), bound);
  const bool whole = error == std::errc() && end == rule.data() + rule.size();
  if (!whole || bound == 0 || bound > INT32_MAX || rule != std::to_string(bound)) {
    return std::nullopt;
  }
  return bound;
}

std::string PromptDigest(const PromptRule& rule, uint64_t bound) {
  uint64_t state = 0;
  std::from_chars(rule.seed.data(), rule.seed.data() + rule.seed.size(), state, 16);
  std::vector<int32_t> ids;
  for (uint64_t i = 0; i < rule.tokens; ++i) {
    state += 0x9E3779B97F4A7C15ull;
    uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
    ids.push_back(static_cast<int32_t>((z ^ (z >> 31)) % bound));
  }
  return Sha256HexOf(std::span<const int32_t>(ids));
}

}  // namespace hallmark::verify
