// SPDX-License-Identifier: Apache-2.0
// Tokenizer::FromJson takes any document; one that it accepts encodes any text, given as the part
// "text" of a packed folder, to ids of its own, and these decode to the text's NFC, in one piece or
// many.
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "engine/text/normalizer.h"
#include "engine/text/streaming_decoder.h"
#include "engine/text/tokenizer.h"
#include "engine/text/utf8.h"
#include "fuzz/folder/packed_folder.h"

namespace {

void Need(bool holds) {
  if (!holds) std::abort();
}

void CheckText(const hallmark::Tokenizer& tokenizer, const std::string& text) {
  const auto ids = tokenizer.Encode(text);
  const bool well_formed = !hallmark::FirstIllFormedByte(text).has_value();
  Need(ids.has_value() == well_formed);
  if (!well_formed) return;
  hallmark::StreamingDecoder decoder(&tokenizer, hallmark::SpecialTokens::kShow);
  std::string pieces;
  for (const int32_t id : *ids) {
    Need(tokenizer.Contains(id));
    const auto piece = decoder.Push(id);
    Need(piece.has_value());
    pieces += *piece;
  }
  pieces += decoder.Flush();
  const auto whole = tokenizer.Decode(*ids, hallmark::SpecialTokens::kShow);
  Need(whole.has_value() && *whole == pieces);
  const auto once = hallmark::NormalizeNfc(text);
  const auto again = hallmark::NormalizeNfc(*whole);
  Need(once.has_value() && again.has_value() && *once == *again);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string json;
  std::string text = "the a\u0301\n <|end|> 12";
  for (hallmark::fuzz::PackedFile& file :
       hallmark::fuzz::Unpack({reinterpret_cast<const char*>(data), size})) {
    (file.name == "text" ? text : json) = std::move(file.text);
  }
  const auto document = hallmark::ParseJson(json, "fuzz");
  if (!document.has_value()) return 0;
  const auto tokenizer = hallmark::Tokenizer::FromJson(*document, "fuzz");
  if (!tokenizer.has_value()) return 0;
  CheckText(*tokenizer, text);
  return 0;
}
