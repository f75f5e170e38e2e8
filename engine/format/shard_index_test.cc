// SPDX-License-Identifier: Apache-2.0
#include "engine/format/shard_index.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace hallmark {
namespace {

Result<ShardIndex> Parse(const char* text) {
  return ShardIndexFromJson(Json::parse(text), "index.json");
}

TEST(ShardIndex, ReadsTheMapAndEachFileOnce) {
  const auto index = Parse(R"({"metadata": {"total_size": 12}, "weight_map": {
    "b": "m-2.safetensors", "a": "m-1.safetensors", "c": "m-2.safetensors"}})");
  ASSERT_TRUE(index.has_value());
  EXPECT_EQ(index->total_size, 12u);
  EXPECT_EQ(index->weight_map.at("c"), "m-2.safetensors");
  EXPECT_EQ(index->Files(), (std::vector<std::string>{"m-1.safetensors", "m-2.safetensors"}));
  EXPECT_EQ(index->At("a/b").pointer, "/weight_map/a~1b");
}

TEST(ShardIndex, NeedsNoTotalSize) {
  EXPECT_FALSE(Parse(R"({"weight_map": {"a": "m.safetensors"}})")->total_size.has_value());
}

TEST(ShardIndex, RefusesNamesThatLeaveTheFolder) {
  for (const char* name : {"../m.safetensors", "a/m.safetensors", "a\\\\m.safetensors",
                           "C:m.safetensors", "m..safetensors", ".safetensors", "m.bin", ""}) {
    const std::string text = std::string(R"({"weight_map": {"a": ")") + name + "\"}}";
    const auto index = Parse(text.c_str());
    ASSERT_FALSE(index.has_value()) << name;
    EXPECT_EQ(index.error().code, Code::kMalformed);
    EXPECT_EQ(index.error().where.pointer, "/weight_map/a");
    EXPECT_EQ(index.error().where.tensor, "a");
  }
}

TEST(ShardIndex, KeepsTheGoodEntriesBesideEveryFault) {
  const Json document = Json::parse(R"({"metadata": {"total_size": -1},
    "weight_map": {"a": "../m.safetensors", "b": "m.safetensors", "c": 2}})");
  const ShardIndexReading reading = ReadShardIndex(document, "index.json");
  ASSERT_EQ(reading.faults.size(), 3u);
  EXPECT_EQ(reading.faults[0].where.pointer, "/metadata/total_size");
  EXPECT_EQ(reading.faults[1].where.pointer, "/weight_map/a");
  EXPECT_EQ(reading.faults[2].where.pointer, "/weight_map/c");
  EXPECT_EQ(reading.index.Files(), std::vector<std::string>{"m.safetensors"});
}

}  // namespace
}  // namespace hallmark
