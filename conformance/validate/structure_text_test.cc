// SPDX-License-Identifier: Apache-2.0
// Clauses: format-accept, format-reject. The structure step on the text side: tokenizer, stop ids,
// generation config, chat template, licence.
#include <gtest/gtest.h>

#include <set>

#include "conformance/validate/broken_checkpoint.h"
#include "conformance/validate/checks.h"

namespace hallmark {
namespace {

using Copy = CheckpointCopy;

const std::string kConfig = "config.json";
const std::string kGeneration = "generation_config.json";
const std::string kTokenizer = "tokenizer.json";
const std::string kTokenizerConfig = "tokenizer_config.json";
const std::string kTemplate = "chat_template.jinja";

BrokenCheckpoint Planted(std::string name, std::function<void(Copy&)> plant, Expected expected) {
  return {.name = std::move(name), .plant = std::move(plant), .expected = {std::move(expected)}};
}
BrokenCheckpoint Set(std::string name, std::string file, std::string pointer, std::string json,
                     std::string check, Code code, std::string place = "") {
  return Planted(std::move(name), [=](Copy& c) { c.Set(file, pointer, json); },
                 {std::move(check), code, file, place.empty() ? pointer : place});
}
std::function<void(Copy&)> Lack(std::string file) {
  return [=](Copy& c) { c.RemoveFile(file); };
}

std::vector<BrokenCheckpoint> Cases() {
  constexpr Code kMismatch = Code::kMismatch;
  constexpr Code kNotFound = Code::kNotFound;
  constexpr Code kMalformed = Code::kMalformed;
  constexpr Code kOutOfRange = Code::kOutOfRange;
  return {
      Planted("NoTokenizer", Lack(kTokenizer), {"tokenizer-missing", kNotFound, kTokenizer}),
      Set("AnotherNormalizer", kTokenizer, "/normalizer/type", "\"NFKC\"", "tokenizer-broken",
          Code::kUnsupported),
      Planted("MoreTokensThanTheModel",
              [](Copy& c) {
                c.Set(kTokenizer, "/added_tokens/-",
                      R"({"id":4096,"content":"<|more|>","single_word":false,"lstrip":false,
                          "rstrip":false,"normalized":false,"special":true})");
              },
              {"tokenizer-vocabulary", kMismatch, kTokenizer}),
      Planted("StopIdWithoutAToken",
              [](Copy& c) {
                c.Erase(kTokenizer, "/added_tokens/25");
                c.Set(kGeneration, "/eos_token_id/1", "4095");
                c.Set(kGeneration, "/eos_token_id/2", "4070");
              },
              {"stop-id-without-token", kMismatch, kGeneration, "/eos_token_id/1"}),
      Planted("NoStopIdAnywhere",
              [](Copy& c) {
                c.Erase(kConfig, "/eos_token_id");
                c.Erase(kGeneration, "/eos_token_id");
              },
              {"no-stop-id", kNotFound, kConfig, "/eos_token_id"}),
      Planted("TurnsDoNotEnd",
              [](Copy& c) {
                c.Set(kGeneration, "/eos_token_id", "4070");
                c.Set(kTokenizerConfig, "/eos_token", "\"<|endoftext|>\"");
              },
              {"chat-end-not-a-stop", kMismatch, kGeneration, "/eos_token_id"}),
      Set("ConfigAndGenerationDiffer", kConfig, "/eos_token_id", "4071", "stop-ids-differ",
          kMismatch),
      Set("TheTokenizersEndIsNoStop", kTokenizerConfig, "/eos_token", "\"<|spare_0|>\"",
          "stop-ids-differ", kMismatch),
      Set("StopIdAsText", kGeneration, "/eos_token_id", "\"4070\"", "generation-value", kMalformed),
      Set("StopIdBeyondTheVocabulary", kGeneration, "/eos_token_id/0", "5000", "generation-value",
          kOutOfRange),
      Set("TemperatureNegative", kGeneration, "/temperature", "-1", "generation-value",
          kOutOfRange),
      Set("TemperatureAsText", kGeneration, "/temperature", "\"0.6\"", "generation-value",
          kMalformed),
      Set("TopPAboveOne", kGeneration, "/top_p", "1.5", "generation-value", kOutOfRange),
      Set("TopKNegative", kGeneration, "/top_k", "-1", "generation-value", kOutOfRange),
      Set("PadBeyondTheVocabulary", kGeneration, "/pad_token_id", "4096", "generation-value",
          kOutOfRange),
      Set("PadAsText", kGeneration, "/pad_token_id", "\"0\"", "generation-value", kMalformed),
      Set("RepetitionPenalty", kGeneration, "/repetition_penalty", "1.05",
          "generation-setting-ignored", Code::kUnsupported),
      Set("RepetitionPenaltyOutOfRange", kGeneration, "/repetition_penalty", "-1",
          "generation-value", kOutOfRange),
      Set("PresencePenalty", kGeneration, "/presence_penalty", "1.5", "generation-setting-ignored",
          Code::kUnsupported),
      Set("NoRepeatedTriples", kGeneration, "/no_repeat_ngram_size", "3",
          "generation-setting-ignored", Code::kUnsupported),
      Set("Beams", kGeneration, "/num_beams", "4", "generation-setting-ignored",
          Code::kUnsupported),
      Set("SuppressedTokens", kGeneration, "/suppress_tokens", "[7]", "generation-setting-ignored",
          Code::kUnsupported),
      Set("StopStrings", kGeneration, "/stop_strings", "[\"User:\"]", "generation-setting-ignored",
          Code::kUnsupported),
      Planted("NoGenerationConfig",
              [](Copy& c) {
                c.RemoveFile(kGeneration);
                c.Set(kConfig, "/eos_token_id", "[4070, 4072]");
              },
              {"generation-config-missing", kNotFound, kGeneration}),
      Set("PadTokenUnknown", kTokenizerConfig, "/pad_token", "\"<|pad|>\"", "special-token-unknown",
          kMismatch),
      Set("AddedTokenOfAnotherId", kTokenizerConfig, "/added_tokens_decoder/4071",
          R"({"content": "<|im_end|>"})", "special-token-unknown", kMismatch),
      Planted("NoTemplate", Lack(kTemplate), {"chat-template-missing", kNotFound, kTemplate}),
      Planted("TemplateWithoutInstructions", [](Copy& c) { c.SetFile(kTemplate, "hello\n"); },
              {"chat-template-broken", kMalformed, kTemplate}),
      Planted("TemplateOfAnotherVocabulary",
              [](Copy& c) { c.SetFile(kTemplate, "{{ m }}<|eot_id|><|im_end|><|eot_id|>"); },
              {"chat-template-broken", kMismatch, kTemplate}),
      Set("TwoTemplates", kTokenizerConfig, "/chat_template", "\"{{ m }}\"", "chat-template-twice",
          kMismatch),
      Planted("NoLicence", Lack("LICENSE"), {"licence-missing", kNotFound, ""}),
      Planted("LicenceOfNoBytes", [](Copy& c) { c.SetFile("LICENSE", ""); },
              {"licence-missing", kNotFound, ""}),
      Planted("LicenceInWordsAlone",
              [](Copy& c) {
                c.RemoveFile("LICENSE");
                c.SetFile("README.md", "---\nlicense: apache-2.0\n---\n");
              },
              {"licence-file-missing", kNotFound, "LICENSE"}),
  };
}

class StructureText : public testing::TestWithParam<BrokenCheckpoint> {};

TEST_P(StructureText, FindsTheFaultAndNoOther) { ExpectFound(GetParam()); }

INSTANTIATE_TEST_SUITE_P(Text, StructureText, testing::ValuesIn(Cases()),
                         [](const testing::TestParamInfo<BrokenCheckpoint>& info) {
                           return info.param.name;
                         });

TEST(StructureText, ATemplateInTheTokenizersConfigIsOne) {
  ExpectFound({.name = "inner template", .plant = [](Copy& c) {
                 const std::string text = c.File(kTemplate);
                 c.RemoveFile(kTemplate);
                 c.Set(kTokenizerConfig, "/chat_template", "\"{{ m.content }}<|im_end|>\"");
               }});
}

// Settings that change no reply, or that say what happens without them.
TEST(StructureText, SettingsThatChangeNothingAreNotTold) {
  ExpectFound({.name = "neutral settings", .plant = [](Copy& c) {
                 c.Set(kGeneration, "", R"({"eos_token_id": [4072, 4070], "do_sample": true,
                   "temperature": 1.0, "top_k": 20, "top_p": 0.95, "min_p": 0.01,
                   "repetition_penalty": 1.0, "presence_penalty": 0, "frequency_penalty": 0.0,
                   "no_repeat_ngram_size": 0, "typical_p": 1.0, "num_beams": 1,
                   "length_penalty": 1.0, "bad_words_ids": null, "suppress_tokens": [],
                   "stop_strings": null, "min_length": 0, "early_stopping": false,
                   "max_new_tokens": 2048, "transformers_version": "5.17.0"})");
               }});
}

TEST(StructureChecks, HaveIdsOfTheirOwnAndSayWhatToDo) {
  std::set<std::string_view> ids;
  Severity last = Severity::kError;
  for (const CheckInfo& check : StructureChecks()) {
    EXPECT_TRUE(ids.insert(check.id).second) << check.id;
    EXPECT_TRUE(check.action.ends_with('.')) << check.id;
    EXPECT_LE(check.severity, last) << check.id << " stands below graver ones";
    last = check.severity;
  }
  EXPECT_GT(ids.size(), 40u);
}

}  // namespace
}  // namespace hallmark
