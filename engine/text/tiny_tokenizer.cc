// SPDX-License-Identifier: Apache-2.0
#include "engine/text/tiny_tokenizer.h"

#include <nlohmann/json.hpp>

#include "engine/base/check.h"
#include "engine/text/byte_alphabet.h"
#include "engine/text/pre_tokenizer.h"

namespace hallmark {
namespace {

Json Added(int32_t id, const std::string& content, bool special, bool normalized) {
  return {{"id", id},        {"content", content},       {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", normalized}, {"special", special}};
}

}  // namespace

Json TinyTokenizerJson() {
  Json vocab = Json::object();
  for (int byte = 0; byte < 256; ++byte) vocab[SpellByte(static_cast<uint8_t>(byte))] = byte;
  const std::string space = SpellByte(' ');
  vocab["th"] = kTinyTh;
  vocab["the"] = kTinyThe;
  vocab[space + "the"] = kTinySpaceThe;
  vocab["aa"] = kTinyAa;
  vocab["aaaa"] = kTinyAaaa;
  const Json byte_level = {{"type", "ByteLevel"},
                           {"add_prefix_space", false},
                           {"trim_offsets", true},
                           {"use_regex", false}};
  Json document;
  document["version"] = "1.0";
  document["truncation"] = nullptr;
  document["padding"] = nullptr;
  document["added_tokens"] = {Added(kTinyEnd, "<|end|>", true, false),
                              Added(kTinyThink, "<think>", false, false),
                              Added(kTinyNormalized, "\u00C5x", false, true)};
  document["normalizer"] = {{"type", "NFC"}};
  document["pre_tokenizer"] = {{"type", "Sequence"},
                               {"pretokenizers",
                                {{{"type", "Split"},
                                  {"pattern", {{"Regex", kQwen35SplitPattern}}},
                                  {"behavior", "Isolated"},
                                  {"invert", false}},
                                 byte_level}}};
  document["post_processor"] = nullptr;
  document["decoder"] = byte_level;
  document["model"] = {{"type", "BPE"},
                       {"dropout", nullptr},
                       {"unk_token", nullptr},
                       {"continuing_subword_prefix", ""},
                       {"end_of_word_suffix", ""},
                       {"fuse_unk", false},
                       {"byte_fallback", false},
                       {"ignore_merges", false},
                       {"vocab", vocab},
                       {"merges", Json::array({Json::array({"t", "h"}), Json::array({"th", "e"}),
                                               Json::array({space, "the"}), Json::array({"a", "a"}),
                                               Json::array({"aa", "aa"})})}};
  return document;
}

Tokenizer TinyTokenizer() {
  auto tokenizer = Tokenizer::FromJson(TinyTokenizerJson(), "tiny");
  CHECK(tokenizer.has_value());
  return *std::move(tokenizer);
}

}  // namespace hallmark
