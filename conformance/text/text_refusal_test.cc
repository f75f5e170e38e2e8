// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "conformance/harness/paths.h"
#include "engine/base/json.h"
#include "engine/text/tokenizer.h"

namespace hallmark {
namespace {

using Pointer = Json::json_pointer;

struct Fault {
  const char* name;
  const char* pointer;
  Json value;
  Code code;
  const char* where;
};

void PrintTo(const Fault& fault, std::ostream* out) { *out << fault.name; }

class TokenizerFault : public testing::TestWithParam<Fault> {
 protected:
  static Json RealFile() {
    return ReadJsonFile(GoldenPath("models/scribe-11m-exl3/tokenizer.json")).value();
  }
  static Result<Tokenizer> OpenWritten(const Json& document, const std::string& path) {
    std::ofstream(path) << document.dump();
    return Tokenizer::Open(path);
  }
};

TEST_F(TokenizerFault, AbsentTheRealFileOpens) {
  const std::string path = testing::TempDir() + "/tokenizer_without_fault.json";
  const auto tokenizer = OpenWritten(RealFile(), path);
  ASSERT_TRUE(tokenizer.has_value()) << tokenizer.error().ToString();
  EXPECT_EQ(tokenizer->AddedTokenId("<|im_end|>"), 4072);
}

TEST_P(TokenizerFault, IsRefusedWithItsPlace) {
  const Fault& fault = GetParam();
  const std::string path = testing::TempDir() + "/tokenizer_" + fault.name + ".json";
  Json document = RealFile();
  document[Pointer(fault.pointer)] = fault.value;
  const auto tokenizer = OpenWritten(document, path);
  ASSERT_FALSE(tokenizer.has_value());
  EXPECT_EQ(CodeName(tokenizer.error().code), CodeName(fault.code)) << tokenizer.error().ToString();
  EXPECT_EQ(tokenizer.error().where, (Locator{.file = path, .pointer = fault.where}));
}

INSTANTIATE_TEST_SUITE_P(
    InTheRealFile, TokenizerFault,
    testing::Values(
        Fault{
            "OlderSplitWithoutMarks", "/pre_tokenizer/pretokenizers/0/pattern/Regex",
            R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
            Code::kUnsupported, "/pre_tokenizer/pretokenizers/0/pattern/Regex"},
        Fault{"Lowercase", "/normalizer/type", "Lowercase", Code::kUnsupported, "/normalizer/type"},
        Fault{"WordPiece", "/model/type", "WordPiece", Code::kUnsupported, "/model/type"},
        Fault{"BytesThatFallBack", "/model/byte_fallback", true, Code::kUnsupported,
              "/model/byte_fallback"},
        Fault{"TwoTokensOneId", "/model/vocab/b", 64, Code::kMalformed, "/model/vocab/b"},
        Fault{"IdBeyondTheEnd", "/model/vocab/b", 4096, Code::kOutOfRange, "/model/vocab/b"},
        Fault{"MergeOfNoToken", "/model/merges/7", Json::array({"\u0120q", "zz"}), Code::kMalformed,
              "/model/merges/7"},
        Fault{"MergeTwice", "/model/merges/3", Json::array({"t", "h"}), Code::kMalformed,
              "/model/merges/3"},
        Fault{"SpecialOnABaseId", "/added_tokens/2/id", 64, Code::kMalformed, "/added_tokens/2"},
        Fault{"SpecialsCollide", "/added_tokens/2/id", 4071, Code::kMalformed, "/added_tokens/2"},
        Fault{"SpecialThatStrips", "/added_tokens/2/rstrip", true, Code::kUnsupported,
              "/added_tokens/2/rstrip"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(TokenizerFile, CutShortIsRefusedWithTheByte) {
  std::ifstream whole(GoldenPath("models/scribe-11m-exl3/tokenizer.json"), std::ios::binary);
  const std::string text((std::istreambuf_iterator<char>(whole)), {});
  ASSERT_GT(text.size(), 200000u);
  const std::string path = testing::TempDir() + "/tokenizer_cut.json";
  size_t refused = 0;
  for (const size_t length : {size_t{0}, size_t{1}, text.size() / 2, text.size() - 2}) {
    std::ofstream(path, std::ios::binary) << text.substr(0, length);
    const auto tokenizer = Tokenizer::Open(path);
    ASSERT_FALSE(tokenizer.has_value()) << length;
    EXPECT_EQ(tokenizer.error().code, Code::kMalformed);
    EXPECT_EQ(tokenizer.error().where.file, path);
    EXPECT_TRUE(tokenizer.error().where.byte.has_value());
    ++refused;
  }
  EXPECT_EQ(refused, 4u);
}

TEST(PaddedHead, IdsPastTheTokenizerAreRefusedAndTheLastDecodes) {
  const auto tokenizer = Tokenizer::Open(GoldenPath("models/scribe-11m-exl3/tokenizer.json"));
  ASSERT_TRUE(tokenizer.has_value());
  const std::vector<int32_t> last = {4095};
  EXPECT_EQ(tokenizer->Decode(last, SpecialTokens::kShow).value(), tokenizer->TokenBytes(4095));
  for (const int32_t id : {4096, 248319, -1}) {
    const auto text = tokenizer->Decode(std::vector<int32_t>{id});
    ASSERT_FALSE(text.has_value());
    EXPECT_EQ(text.error().code, Code::kOutOfRange);
  }
}

}  // namespace
}  // namespace hallmark
