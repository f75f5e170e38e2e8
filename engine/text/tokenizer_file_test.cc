// SPDX-License-Identifier: Apache-2.0
#include "engine/text/tokenizer_file.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/text/tiny_tokenizer.h"

namespace hallmark {
namespace {

using Pointer = Json::json_pointer;

TEST(TokenizerFile, ReadsTheTinyTokenizer) {
  const auto tables = ReadTokenizerTables(TinyTokenizerJson(), "t.json");
  ASSERT_TRUE(tables.has_value()) << tables.error().ToString();
  EXPECT_EQ(tables->token_bytes.size(), static_cast<size_t>(kTinyVocab));
  EXPECT_EQ(tables->token_bytes[kTinySpaceThe], " the");
  EXPECT_EQ(tables->token_bytes[kTinyEnd], "<|end|>");
  EXPECT_EQ(tables->byte_ids[200], 200);
  ASSERT_EQ(tables->merges.size(), 5u);
  EXPECT_EQ(tables->merges[1].left, kTinyTh);
  EXPECT_EQ(tables->merges[1].right, 'e');
  EXPECT_EQ(tables->merges[1].result, kTinyThe);
  EXPECT_EQ(tables->added.size(), 3u);
}

TEST(TokenizerFile, ReadsMergesSpelledAsOneString) {
  Json document = TinyTokenizerJson();
  for (Json& merge : document["/model/merges"_json_pointer]) {
    merge = merge[0].get<std::string>() + " " + merge[1].get<std::string>();
  }
  const auto strings = ReadTokenizerTables(document, "t.json");
  const auto pairs = ReadTokenizerTables(TinyTokenizerJson(), "t.json");
  ASSERT_TRUE(strings.has_value() && pairs.has_value());
  ASSERT_EQ(strings->merges.size(), pairs->merges.size());
  for (size_t i = 0; i < pairs->merges.size(); ++i) {
    EXPECT_EQ(strings->merges[i].left, pairs->merges[i].left);
    EXPECT_EQ(strings->merges[i].right, pairs->merges[i].right);
    EXPECT_EQ(strings->merges[i].result, pairs->merges[i].result);
  }
}

TEST(TokenizerFile, AcceptsSpellingsThatMeanTheSame) {
  struct Change {
    const char* pointer;
    Json value;
  };
  const Json byte_level = {{"type", "ByteLevel"}, {"trim_offsets", false}};
  const std::vector<Change> changes = {
      {"/post_processor", byte_level},
      {"/decoder", byte_level},
      {"/model/continuing_subword_prefix", nullptr},
      {"/model/end_of_word_suffix", nullptr},
      // One token that stands in both lists.
      {"/model/vocab/<|end|>", kTinyEnd},
  };
  for (const Change& change : changes) {
    Json document = TinyTokenizerJson();
    document[Pointer(change.pointer)] = change.value;
    const auto tables = ReadTokenizerTables(document, "t.json");
    EXPECT_TRUE(tables.has_value()) << change.pointer << ": " << tables.error().ToString();
  }
  for (const char* key : {"dropout", "fuse_unk", "ignore_merges", "byte_fallback", "unk_token"}) {
    Json document = TinyTokenizerJson();
    document["model"].erase(key);
    EXPECT_TRUE(ReadTokenizerTables(document, "t.json").has_value()) << key;
  }
}

struct Refusal {
  const char* name;
  const char* pointer;  // what is changed
  Json value;           // discarded: the member is erased
  Code code;
  const char* where;  // the pointer in the error
};

Json Erase() { return Json(Json::value_t::discarded); }

// Names the parameter in test listings.
void PrintTo(const Refusal& refusal, std::ostream* out) { *out << refusal.name; }

class TokenizerFileRefusal : public testing::TestWithParam<Refusal> {};

TEST_P(TokenizerFileRefusal, NamesTheFaultAndItsPlace) {
  const Refusal& refusal = GetParam();
  Json document = TinyTokenizerJson();
  const Pointer pointer(refusal.pointer);
  if (refusal.value.is_discarded()) {
    ASSERT_TRUE(document.contains(pointer));
    document[pointer.parent_pointer()].erase(pointer.back());
  } else {
    document[pointer] = refusal.value;
  }
  const auto tables = ReadTokenizerTables(document, "t.json");
  ASSERT_FALSE(tables.has_value());
  EXPECT_EQ(CodeName(tables.error().code), CodeName(refusal.code)) << tables.error().ToString();
  EXPECT_EQ(tables.error().where, (Locator{.file = "t.json", .pointer = refusal.where}));
}

INSTANTIATE_TEST_SUITE_P(
    Components, TokenizerFileRefusal,
    testing::Values(
        Refusal{"RootIsAnArray", "", Json::array(), Code::kMalformed, ""},
        Refusal{"UnknownMember", "/extra", 1, Code::kUnsupported, "/extra"},
        Refusal{"OtherVersion", "/version", "2.0", Code::kUnsupported, "/version"},
        Refusal{
            "Truncation", "/truncation", {{"max_length", 5}}, Code::kUnsupported, "/truncation"},
        Refusal{"Padding", "/padding", {{"pad_id", 0}}, Code::kUnsupported, "/padding"},
        Refusal{"NoNormalizer", "/normalizer", Erase(), Code::kMalformed, "/normalizer"},
        Refusal{"NullNormalizer", "/normalizer", nullptr, Code::kMalformed, "/normalizer"},
        Refusal{"Nfkc", "/normalizer/type", "NFKC", Code::kUnsupported, "/normalizer/type"},
        Refusal{"NormalizerOption", "/normalizer/strip", true, Code::kUnsupported,
                "/normalizer/strip"},
        Refusal{"PlainByteLevel", "/pre_tokenizer/type", "ByteLevel", Code::kUnsupported,
                "/pre_tokenizer/type"},
        Refusal{"ThirdStep",
                "/pre_tokenizer/pretokenizers/2",
                {{"type", "Digits"}},
                Code::kUnsupported,
                "/pre_tokenizer/pretokenizers"},
        Refusal{"OtherPattern", "/pre_tokenizer/pretokenizers/0/pattern/Regex", "\\p{N}{1,3}",
                Code::kUnsupported, "/pre_tokenizer/pretokenizers/0/pattern/Regex"},
        Refusal{"StringPattern",
                "/pre_tokenizer/pretokenizers/0/pattern",
                {{"String", " "}},
                Code::kUnsupported,
                "/pre_tokenizer/pretokenizers/0/pattern/String"},
        Refusal{"OtherBehavior", "/pre_tokenizer/pretokenizers/0/behavior", "Removed",
                Code::kUnsupported, "/pre_tokenizer/pretokenizers/0/behavior"},
        Refusal{"Inverted", "/pre_tokenizer/pretokenizers/0/invert", true, Code::kUnsupported,
                "/pre_tokenizer/pretokenizers/0/invert"},
        Refusal{"PrefixSpace", "/pre_tokenizer/pretokenizers/1/add_prefix_space", true,
                Code::kUnsupported, "/pre_tokenizer/pretokenizers/1/add_prefix_space"},
        Refusal{"OwnRegex", "/pre_tokenizer/pretokenizers/1/use_regex", true, Code::kUnsupported,
                "/pre_tokenizer/pretokenizers/1/use_regex"},
        Refusal{"OwnRegexByDefault", "/pre_tokenizer/pretokenizers/1/use_regex", Erase(),
                Code::kMalformed, "/pre_tokenizer/pretokenizers/1/use_regex"},
        Refusal{"TemplatePostProcessor",
                "/post_processor",
                {{"type", "TemplateProcessing"}},
                Code::kUnsupported,
                "/post_processor/type"},
        Refusal{"OtherDecoder", "/decoder/type", "Metaspace", Code::kUnsupported, "/decoder/type"},
        Refusal{"OtherModel", "/model/type", "Unigram", Code::kUnsupported, "/model/type"},
        Refusal{"UnknownModelMember", "/model/cache", 0, Code::kUnsupported, "/model/cache"},
        Refusal{"Dropout", "/model/dropout", 0.1, Code::kUnsupported, "/model/dropout"},
        Refusal{"UnknownToken", "/model/unk_token", "<unk>", Code::kUnsupported,
                "/model/unk_token"},
        Refusal{"SubwordPrefix", "/model/continuing_subword_prefix", "##", Code::kUnsupported,
                "/model/continuing_subword_prefix"},
        Refusal{"ByteFallback", "/model/byte_fallback", true, Code::kUnsupported,
                "/model/byte_fallback"},
        Refusal{"IgnoreMerges", "/model/ignore_merges", true, Code::kUnsupported,
                "/model/ignore_merges"},
        Refusal{"FlagOfAnotherType", "/model/fuse_unk", 0, Code::kMalformed, "/model/fuse_unk"}),
    [](const auto& info) { return std::string(info.param.name); });

INSTANTIATE_TEST_SUITE_P(
    Tables, TokenizerFileRefusal,
    testing::Values(
        Refusal{"NoVocabulary", "/model/vocab", Erase(), Code::kMalformed, "/model/vocab"},
        Refusal{"VocabularyArray", "/model/vocab", Json::array(), Code::kMalformed, "/model/vocab"},
        Refusal{"NegativeId", "/model/vocab/th", -1, Code::kOutOfRange, "/model/vocab/th"},
        Refusal{"FloatId", "/model/vocab/th", 256.0, Code::kMalformed, "/model/vocab/th"},
        Refusal{"TextId", "/model/vocab/th", "256", Code::kMalformed, "/model/vocab/th"},
        Refusal{"HugeId", "/model/vocab/th", 4294967552u, Code::kOutOfRange, "/model/vocab/th"},
        Refusal{"LargestId", "/model/vocab/th", 18446744073709551615u, Code::kMalformed,
                "/model/vocab/th"},
        Refusal{"IdPastTheLast", "/model/vocab/th", kTinyVocab, Code::kOutOfRange,
                "/model/vocab/th"},
        Refusal{"IdUsedTwice", "/model/vocab/the", kTinyTh, Code::kMalformed, "/model/vocab/the"},
        Refusal{"GapInTheIds", "/model/vocab/aaaa", Erase(), Code::kOutOfRange, "/added_tokens/2"},
        Refusal{"NotInTheAlphabet", "/model/vocab/a b", kTinyVocab, Code::kMalformed,
                "/model/vocab/a b"},
        Refusal{"EmptyToken", "/model/vocab/", kTinyVocab, Code::kMalformed, "/model/vocab/"},
        Refusal{"ByteWithoutToken", "/model/vocab",
                [] {
                  Json vocab = TinyTokenizerJson()["model"]["vocab"];
                  vocab.erase("q");
                  vocab["qq"] = 'q';
                  return vocab;
                }(),
                Code::kMalformed, "/model/vocab"},
        Refusal{"NoMerges", "/model/merges", Erase(), Code::kMalformed, "/model/merges"},
        Refusal{"MergeLeftUnknown", "/model/merges/0/0", "zz", Code::kMalformed, "/model/merges/0"},
        Refusal{"MergeRightUnknown", "/model/merges/2/1", "tho", Code::kMalformed,
                "/model/merges/2"},
        Refusal{"MergeResultUnknown", "/model/merges/0/0", "z", Code::kMalformed,
                "/model/merges/0"},
        Refusal{"MergeWithAnAddedToken", "/model/merges/0", Json::array({"<think>", "t"}),
                Code::kMalformed, "/model/merges/0"},
        Refusal{"MergeTwice", "/model/merges/4", Json::array({"t", "h"}), Code::kMalformed,
                "/model/merges/4"},
        Refusal{"MergeOfThree", "/model/merges/0/2", "e", Code::kMalformed, "/model/merges/0"},
        Refusal{"MergeSpellingsMixed", "/model/merges/4", "aa aa", Code::kMalformed,
                "/model/merges/4"},
        Refusal{"MergeIsANumber", "/model/merges/0", 3, Code::kMalformed, "/model/merges/0"},
        Refusal{"AddedTokensMissing", "/added_tokens", Erase(), Code::kMalformed, "/added_tokens"},
        Refusal{"AddedIdTaken", "/added_tokens/0/id", kTinyTh, Code::kMalformed, "/added_tokens/0"},
        Refusal{"AddedIdsCollide", "/added_tokens/1/id", kTinyEnd, Code::kMalformed,
                "/added_tokens/1"},
        Refusal{"AddedIdPastTheLast", "/added_tokens/2/id", 9999, Code::kOutOfRange,
                "/added_tokens/2"},
        Refusal{"AddedIdAgainstTheVocabulary", "/model/vocab/<think>", kTinyEnd, Code::kMismatch,
                "/added_tokens/1"},
        Refusal{"AddedContentEmpty", "/added_tokens/0/content", "", Code::kMalformed,
                "/added_tokens/0/content"},
        Refusal{"AddedContentTwice", "/added_tokens/1/content", "<|end|>", Code::kMalformed,
                "/added_tokens/1/content"},
        Refusal{"AddedFlagMissing", "/added_tokens/0/special", Erase(), Code::kMalformed,
                "/added_tokens/0/special"},
        Refusal{"LeftStrip", "/added_tokens/0/lstrip", true, Code::kUnsupported,
                "/added_tokens/0/lstrip"},
        Refusal{"RightStrip", "/added_tokens/0/rstrip", true, Code::kUnsupported,
                "/added_tokens/0/rstrip"},
        Refusal{"SingleWord", "/added_tokens/0/single_word", true, Code::kUnsupported,
                "/added_tokens/0/single_word"},
        Refusal{"AddedMemberUnknown", "/added_tokens/0/weight", 1, Code::kUnsupported,
                "/added_tokens/0/weight"}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace hallmark
