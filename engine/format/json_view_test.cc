// SPDX-License-Identifier: Apache-2.0
#include "engine/format/json_view.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace hallmark {
namespace {

const Json kDocument = Json::parse(R"({
  "i": 7, "neg": -7, "big": 18446744073709551615, "f": 6.0, "b": true, "s": "x", "n": null,
  "list": [1, 2, 300], "mixed": [1, "2"], "o": {"a/b~c": 1}})");

JsonView View() { return *JsonView::Of(kDocument, "x.json"); }

TEST(JsonView, ReadsEachType) {
  EXPECT_EQ(View().Int("i", 0, 9)->value(), 7);
  EXPECT_EQ(View().Int("neg", -9, 9)->value(), -7);
  EXPECT_EQ(View().Number("f")->value(), 6.0);
  EXPECT_EQ(View().Number("i")->value(), 7.0);
  EXPECT_EQ(View().Bool("b")->value(), true);
  EXPECT_EQ(View().Text("s")->value(), "x");
  EXPECT_EQ(View().Ints("list", 0, 300)->value(), (std::vector<int64_t>{1, 2, 300}));
  EXPECT_EQ(View().Object("o")->value().Keys(), std::vector<std::string>{"a/b~c"});
}

TEST(JsonView, TakesNullAndAbsentAlike) {
  for (const char* key : {"n", "absent"}) {
    EXPECT_FALSE(View().Has(key));
    EXPECT_FALSE(View().Int(key, 0, 9)->has_value());
    EXPECT_FALSE(View().Object(key)->has_value());
    EXPECT_EQ(View().NeedInt(key, 0, 9).error().code, Code::kMalformed);
  }
}

TEST(JsonView, RefusesOtherTypesAtTheirPointer) {
  EXPECT_EQ(View().Int("f", 0, 9).error().code, Code::kMalformed);
  EXPECT_EQ(View().Int("b", 0, 9).error().code, Code::kMalformed);
  EXPECT_EQ(View().Bool("i").error().code, Code::kMalformed);
  EXPECT_EQ(View().Text("i").error().where.pointer, "/i");
  EXPECT_EQ(View().Number("s").error().where.file, "x.json");
  EXPECT_EQ(View().Object("list").error().where.pointer, "/list");
  EXPECT_EQ(View().Ints("mixed", 0, 9).error().where.pointer, "/mixed/1");
  EXPECT_EQ(JsonView::Of(kDocument["list"], "x.json", "/list").error().code, Code::kMalformed);
}

TEST(JsonView, RefusesValuesOutOfRange) {
  EXPECT_EQ(View().Int("i", 8, 9).error().code, Code::kOutOfRange);
  EXPECT_EQ(View().Int("big", 0, 9).error().code, Code::kOutOfRange);
  EXPECT_EQ(View().Ints("list", 0, 299).error().where.pointer, "/list/2");
}

TEST(JsonView, EscapesPointers) {
  EXPECT_EQ(View().Object("o")->value().At("a/b~c").pointer, "/o/a~1b~0c");
  EXPECT_EQ(View().At().pointer, "");
}

}  // namespace
}  // namespace hallmark
