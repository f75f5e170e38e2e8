// SPDX-License-Identifier: Apache-2.0
#include "engine/format/generation_config.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace hallmark {
namespace {

TEST(StopIds, AreTheUnionWithEveryPlace) {
  StopIds stops;
  const Json config =
      Json::parse(R"({"eos_token_id": 9, "text_config": {"eos_token_id": [7, 9]}})");
  const Json generation = Json::parse(R"({"eos_token_id": [9, 3]})");
  ASSERT_TRUE(AddStopIds(config, "config.json", 10, &stops).has_value());
  ASSERT_TRUE(AddStopIds(generation, "generation_config.json", 10, &stops).has_value());
  EXPECT_EQ(stops.values(), (std::vector<int64_t>{3, 7, 9}));
  ASSERT_EQ(stops.ids[2].stated_at.size(), 3u);
  EXPECT_EQ(stops.ids[2].stated_at[0].pointer, "/eos_token_id");
  EXPECT_EQ(stops.ids[2].stated_at[1].pointer, "/text_config/eos_token_id/1");
  EXPECT_EQ(stops.ids[2].stated_at[2].file, "generation_config.json");
}

TEST(StopIds, MayBeNone) {
  StopIds stops;
  EXPECT_TRUE(AddStopIds(Json::parse(R"({"eos_token_id": null})"), "c", 10, &stops).has_value());
  EXPECT_TRUE(AddStopIds(Json::parse("{}"), "c", 10, &stops).has_value());
  EXPECT_TRUE(stops.ids.empty());
  EXPECT_FALSE(stops.Contains(0));
}

TEST(StopIds, RefuseWhatIsNoIdOfTheVocabulary) {
  StopIds stops;
  const auto code = [&](const char* text) {
    return AddStopIds(Json::parse(text), "c", 10, &stops).error().code;
  };
  EXPECT_EQ(code(R"({"eos_token_id": 10})"), Code::kOutOfRange);
  EXPECT_EQ(code(R"({"eos_token_id": -1})"), Code::kOutOfRange);
  EXPECT_EQ(code(R"({"eos_token_id": "9"})"), Code::kMalformed);
  EXPECT_EQ(code(R"({"eos_token_id": [[9]]})"), Code::kMalformed);
  EXPECT_EQ(code("[]"), Code::kMalformed);
}

}  // namespace
}  // namespace hallmark
