// SPDX-License-Identifier: Apache-2.0
// Mutators keep enough of their input's structure to reach behind the first check, and change it
// enough to be worth running; the same seed gives the same change.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "engine/base/json.h"
#include "engine/format/safetensors.h"
#include "fuzz/folder/packed_folder.h"
#include "fuzz/mutators/folder_mutator.h"
#include "fuzz/mutators/json_mutator.h"
#include "fuzz/mutators/receipt_mutator.h"
#include "fuzz/mutators/safetensors_mutator.h"

namespace hallmark::fuzz {
namespace {

constexpr int kRuns = 2000;
constexpr size_t kMaxSize = 4096;

// In place of libFuzzer's: one byte more.
size_t Append(uint8_t* data, size_t size, size_t max_size) {
  if (size == max_size) return size;
  data[size] = 'x';
  return size + 1;
}

template <typename Mutator>
std::vector<std::string> Made(Mutator mutator, const std::string& seed) {
  std::vector<std::string> made;
  for (unsigned i = 1; i <= kRuns; ++i) {
    for (int repeat = 0; repeat < 2; ++repeat) {
      Random random(i * 2654435761u);  // far apart, as libFuzzer's are
      Mutation mutation{random, &Append, kMaxSize};
      std::string text = mutator(seed, mutation);
      if (repeat == 0) {
        made.push_back(std::move(text));
      } else {
        EXPECT_EQ(made.back(), text) << i;
      }
    }
  }
  return made;
}

size_t Distinct(const std::vector<std::string>& made) {
  return std::set<std::string>(made.begin(), made.end()).size();
}

template <typename Predicate>
int Count(const std::vector<std::string>& made, Predicate holds) {
  int count = 0;
  for (const std::string& text : made) count += holds(text) ? 1 : 0;
  return count;
}

bool IsJson(const std::string& text) { return Json::accept(text); }

TEST(JsonMutator, KeepsMostTextsJson) {
  const auto made = Made(MutateJson, R"({"a": [1, -2.5, {"b": "c\"d"}], "e": null, "f": true})");
  EXPECT_GT(Count(made, IsJson), kRuns * 6 / 10);
  EXPECT_GT(Distinct(made), kRuns / 4u);
}

TEST(JsonMutator, TakesBrokenTexts) {
  for (const char* text : {"", "{", "]", "\"", "{\"a\":[", "}}}", ",,,", "\\", "\"\\"}) {
    for (const std::string& made : Made(MutateJson, text)) EXPECT_LE(made.size(), 2 * kMaxSize);
  }
}

TEST(SafetensorsMutator, MakesWholeFilesAndBrokenOnes) {
  const std::string header = R"({"a":{"dtype":"F16","shape":[2,3],"data_offsets":[0,12]},)"
                             R"("b":{"dtype":"U8","shape":[],"data_offsets":[12,13]}})";
  std::string file(8, '\0');
  file[0] = static_cast<char>(header.size());
  file += header + std::string(13, 'd');
  const auto accepts = [](const std::string& text) {
    return ParseSafetensors(std::as_bytes(std::span(text)), "x").has_value();
  };
  ASSERT_TRUE(accepts(file));
  const auto made = Made(MutateSafetensors, file);
  EXPECT_GT(Count(made, accepts), kRuns / 20);
  EXPECT_LT(Count(made, accepts), kRuns * 9 / 10);
  EXPECT_GT(Distinct(made), kRuns / 4u);
}

TEST(SafetensorsMutator, LaysOutWhatHasASize) {
  const LaidOut laid_out = LayOut(
      R"({"a":{"dtype":"F32","shape":[3]},"b":{"dtype":"F99","shape":[1]},"c":7,)"
      R"("d":{"dtype":"U8","shape":[2],"data_offsets":[5,5]},"e":{"dtype":"U8","shape":[99]}})",
      20);
  EXPECT_EQ(laid_out.data_bytes, 14u);
  const Json json = Json::parse(laid_out.header);
  EXPECT_EQ(json["a"]["data_offsets"], Json({0, 12}));
  EXPECT_EQ(json["d"]["data_offsets"], Json({12, 14}));
  EXPECT_FALSE(json["e"].contains("data_offsets"));
}

TEST(FolderMutator, ChangesFilesAndNames) {
  const std::string seed = "%% config.json\n{\"a\": 1}\n%% model.safetensors\n{}\n";
  const auto made = Made(MutateFolder, seed);
  EXPECT_GT(Distinct(made), kRuns / 10u);
  const auto both = [](const std::string& text) { return Unpack(text).size() == 2; };
  EXPECT_GT(Count(made, both), kRuns / 2);
  EXPECT_LT(Count(made, both), kRuns);
}

TEST(ReceiptMutator, SealsWhatItChanges) {
  const std::string seed = R"({"predicate":{"context":{"b":1},"core":{"a":[1,2]}}})";
  const auto sealed = [](const std::string& text) {
    const Json json = Json::parse(text, nullptr, false);
    return json.is_object() && json.contains("predicate") && json["predicate"].is_object() &&
           json["predicate"].contains("core_sha256") && text == json.dump() + "\n";
  };
  EXPECT_GT(Count(Made(MutateReceipt, seed), sealed), kRuns / 5);
}

}  // namespace
}  // namespace hallmark::fuzz
