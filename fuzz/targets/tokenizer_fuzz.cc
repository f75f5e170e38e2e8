// SPDX-License-Identifier: Apache-2.0
// Tokenizer::FromJson takes any document; one that it accepts encodes text to ids of its own, and
// these decode.
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "engine/text/tokenizer.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto document = hallmark::ParseJson(text, "fuzz");
  if (!document.has_value()) return 0;
  const auto tokenizer = hallmark::Tokenizer::FromJson(*document, "fuzz");
  if (!tokenizer.has_value()) return 0;
  const auto ids = tokenizer->Encode("the a\u0301\n <|end|> 12");
  if (!ids.has_value()) std::abort();
  for (const int32_t id : *ids) {
    if (id < 0 || id >= tokenizer->vocab_size()) std::abort();
  }
  if (!tokenizer->Decode(*ids, hallmark::SpecialTokens::kShow).has_value()) std::abort();
  return 0;
}
