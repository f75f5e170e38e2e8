// SPDX-License-Identifier: Apache-2.0
#include "engine/base/json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace hallmark {
namespace {

TEST(ParseJson, AcceptsADocument) {
  const auto value = ParseJson(R"({"a": [1, 2.5, null], "b": {"a": 1}})", "x.json");
  ASSERT_TRUE(value.has_value());
  EXPECT_EQ((*value)["a"][0], 1);
}

TEST(ParseJson, RefusesADuplicateKeyByPointer) {
  const auto value = ParseJson(R"({"a": {"b/c": 1, "b/c": 2}})", "x.json");
  ASSERT_FALSE(value.has_value());
  EXPECT_EQ(value.error().code, Code::kMalformed);
  EXPECT_EQ(value.error().where.pointer, "/a/b~1c");
}

TEST(ParseJson, PointersCountTheItemsOfArrays) {
  const auto twice = ParseJson(R"([1, [], {"a": [true, {"b": 1, "b": 2}]}])", "x.json");
  ASSERT_FALSE(twice.has_value());
  EXPECT_EQ(twice.error().where.pointer, "/2/a/1/b");
  const auto deep = ParseJson(R"({"a": )" + std::string(64, '['), "x.json");
  ASSERT_FALSE(deep.has_value());
  EXPECT_EQ(deep.error().where.pointer.substr(0, 6), "/a/0/0");
}

TEST(ParseJson, RefusesTrailingBytesWithTheirOffset) {
  const auto value = ParseJson("{} x", "x.json");
  ASSERT_FALSE(value.has_value());
  EXPECT_EQ(value.error().where.byte, 3u);
}

TEST(ParseJson, RefusesDepth) {
  EXPECT_FALSE(ParseJson(std::string(100000, '['), "x.json").has_value());
  const std::string deep = std::string(65, '[') + std::string(65, ']');
  EXPECT_FALSE(ParseJson(deep, "x.json").has_value());
  const std::string fits = std::string(64, '[') + std::string(64, ']');
  EXPECT_TRUE(ParseJson(fits, "x.json").has_value());
}

TEST(ParseJson, RefusesInvalidUtf8AndEmptyText) {
  EXPECT_FALSE(ParseJson("\"\xff\"", "x.json").has_value());
  EXPECT_FALSE(ParseJson("", "x.json").has_value());
}

TEST(ParseJson, RefusesNulWhereverItStands) {
  using std::string_literals::operator""s;
  for (const auto& [text, byte] : {std::pair{"{}\0"s, 2},
                                   {"{} \0 x"s, 3},
                                   {"[1,\0 2]"s, 3},
                                   {"\"a\0b\""s, 2},
                                   {"\0{}"s, 0},
                                   {"7\0"s, 1}}) {
    const auto value = ParseJson(text, "x.json");
    ASSERT_FALSE(value.has_value()) << byte;
    EXPECT_EQ(value.error().code, Code::kMalformed);
    EXPECT_EQ(value.error().where.byte, static_cast<uint64_t>(byte));
  }
}

TEST(ParseJson, RefusesAByteOrderMark) {
  const auto value = ParseJson("\xef\xbb\xbf{}", "x.json");
  ASSERT_FALSE(value.has_value());
  EXPECT_EQ(value.error().where.byte, 0u);
}

TEST(ParseJson, BoundsTheNumberOfValues) {
  // The list itself is a value too.
  std::string text = "[0";
  for (size_t i = 2; i < kMaxJsonValues; ++i) text += ",0";
  EXPECT_TRUE(ParseJson(text + "]", "x.json").has_value());
  const auto value = ParseJson(text + ",0]", "x.json");
  ASSERT_FALSE(value.has_value());
  EXPECT_EQ(value.error().code, Code::kOutOfRange);
  EXPECT_EQ(value.error().where.pointer, "/" + std::to_string(kMaxJsonValues - 1));
}

// Quadratic time would be hours.
TEST(ParseJson, TakesAListOfAMillionObjects) {
  std::string text = "[{}";
  for (int i = 1; i < 1'000'000; ++i) text += ",{}";
  const auto value = ParseJson(text + "]", "x.json");
  ASSERT_TRUE(value.has_value());
  EXPECT_EQ(value->size(), 1'000'000u);
}

TEST(CanonicalJson, SortsKeysAndEndsWithANewline) {
  const auto value = ParseJson(R"({"b":1,"a":2})", "x.json");
  EXPECT_EQ(CanonicalJson(*value), "{\n  \"a\": 2,\n  \"b\": 1\n}\n");
}

}  // namespace
}  // namespace hallmark
