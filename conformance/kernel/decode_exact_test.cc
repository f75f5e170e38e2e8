// SPDX-License-Identifier: Apache-2.0
// Clause decode-exact on golden/format/exl3_vectors.json: codebooks, tiles, sign words, encoder
// results. plan.md lists what must be seen.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "conformance/cases/exl3_truth.h"
#include "conformance/harness/comparators.h"
#include "conformance/harness/paths.h"
#include "engine/backend/cpu/cpu_linear.h"
#include "engine/backend/exl3_codec.h"
#include "engine/base/float_types.h"
#include "engine/base/json.h"
#include "engine/base/sha256.h"

namespace hallmark {
namespace {

const Json& Vectors() {
  static const Json vectors = ReadJsonFile(GoldenPath("format/exl3_vectors.json")).value();
  return vectors;
}

uint16_t FromHex(const std::string& hex) {
  uint16_t value = 0;
  const auto result = std::from_chars(hex.data(), hex.data() + hex.size(), value, 16);
  EXPECT_EQ(result.ptr, hex.data() + hex.size());
  return value;
}

using States = std::array<uint16_t, kTileWeights>;

States StatesFrom(const Json& list) {
  States states{};
  EXPECT_EQ(list.size(), states.size());
  std::copy_n(list.begin(), states.size(), states.begin());
  return states;
}

std::vector<CpuTier> Tiers() { return SupportedCpuTiers(); }

TEST(DecodeExact, CodebooksHaveThePublishedDigestsSamplesAndExtremes) {
  int books = 0;
  int samples = 0;
  for (const Codebook codebook : {Codebook::k3inst, Codebook::kMcg, Codebook::kMul1}) {
    const Json& book = Vectors()["codebooks"][std::string(CodebookName(codebook))];
    std::vector<uint16_t> values;
    for (int state = 0; state < 65536; ++state) {
      values.push_back(CodebookValue(codebook, static_cast<uint16_t>(state)));
    }
    EXPECT_EQ(Sha256HexOf<uint16_t>(values), book["sha256_le_u16_all_65536"].get<std::string>());
    for (const auto& [state, value] : book["samples"].items()) {
      EXPECT_EQ(values[FromHex(state)], FromHex(value.get<std::string>())) << state;
      ++samples;
    }
    std::set<float> distinct;
    for (const uint16_t value : values) distinct.insert(HalfToFloat(value));
    EXPECT_EQ(distinct.size(), book["distinct"].get<size_t>());
    EXPECT_EQ(*distinct.begin(), book["min"].get<float>());
    EXPECT_EQ(*distinct.rbegin(), book["max"].get<float>());
    ++books;
  }
  EXPECT_EQ(books, 3);
  EXPECT_EQ(samples, 36);
}

TEST(DecodeExact, EveryPublishedTileDecodesByTheDefinition) {
  int tiles = 0;
  for (const Exl3Rate rate : AllExl3Rates()) {
    const Exl3TileTruth truth = ReadTileTruth(GoldenPath(""), rate).value();
    States states{};
    for (int p = 0; p < kTileWeights; ++p) {
      states[static_cast<size_t>(p)] = StateAt(truth.words.data(), rate.k2, p);
    }
    std::vector<uint16_t> values(kTileWeights);
    DecodeTile(truth.words.data(), rate, values.data());
    EXPECT_TRUE(CompareBits<uint16_t>(truth.states, states).Passed()) << BitsText(rate.k2);
    EXPECT_TRUE(CompareBits<uint16_t>(truth.values, values).Passed()) << BitsText(rate.k2);
    ++tiles;
  }
  EXPECT_EQ(tiles, 27);
  EXPECT_EQ(Vectors()["tiles"].size(), 27u);
}

TEST(DecodeExact, EveryPublishedTileDecodesOnEveryTierAtEveryPlaceOfALayer) {
  int tiles = 0;
  for (const Exl3Rate rate : AllExl3Rates()) {
    const Exl3LayerTruth layer = LayerOfOneTile(ReadTileTruth(GoldenPath(""), rate).value());
    const Exl3Group group{.name = "tile",
                          .codebook = rate.codebook,
                          .k2 = rate.k2,
                          .k = kExl3Block,
                          .n = kExl3Block,
                          .trellis = {.name = "tile.trellis",
                                      .dtype = DType::kI16,
                                      .shape = {8, 8, TileWords(rate.k2)},
                                      .bytes = std::as_bytes(std::span(layer.trellis))}};
    for (const CpuTier tier : Tiers()) {
      EXPECT_TRUE(CompareBits<uint16_t>(layer.values, DecodeExl3(group, tier)).Passed())
          << CodebookName(rate.codebook) << " " << BitsText(rate.k2) << " " << CpuTierName(tier);
    }
    ++tiles;
  }
  EXPECT_EQ(tiles, 27);
}

TEST(DecodeExact, PublishedStatesPackToThePublishedWords) {
  int tiles = 0;
  for (const Exl3Rate rate : AllExl3Rates()) {
    const Exl3TileTruth truth = ReadTileTruth(GoldenPath(""), rate).value();
    const std::span<const uint16_t, kTileWeights> states(truth.states.data(), kTileWeights);
    EXPECT_TRUE(IsRing(states, rate.k2));
    std::vector<uint16_t> words(truth.words.size());
    PackStates(states, rate.k2, words.data());
    EXPECT_TRUE(CompareBits<uint16_t>(truth.words, words).Passed()) << BitsText(rate.k2);
    ++tiles;
  }
  EXPECT_EQ(tiles, 27);
}

// Packed signs as the output scales of a layer whose product is the same in every column but for
// them: y's signs are the words' signs.
TEST(DecodeExact, PackedSignsAreReadFromTheLowestBitUp) {
  const Json& published = Vectors()["sign_words"];
  ASSERT_EQ(published["values"].size(), 48u);
  std::vector<uint16_t> words(8, 0);
  for (size_t i = 0; i < 3; ++i) {
    words[i] = static_cast<uint16_t>(published["words_i16"][i].get<int>());
  }
  const std::vector<uint16_t> tiles(64 * TileWords(4), 0);
  const std::vector<uint16_t> ones(kExl3Block, 0x3C00);
  const auto view = [](const char* name, DType dtype, std::vector<int64_t> shape,
                       const std::vector<uint16_t>& values) {
    return TensorView{.name = name,
                      .dtype = dtype,
                      .shape = std::move(shape),
                      .bytes = std::as_bytes(std::span(values))};
  };
  Exl3Group group{.name = "signs",
                  .codebook = Codebook::kMcg,
                  .k2 = 4,
                  .k = kExl3Block,
                  .n = kExl3Block,
                  .trellis = view("signs.trellis", DType::kI16, {8, 8, 32}, tiles),
                  .input_scale = view("signs.suh", DType::kF16, {kExl3Block}, ones)};
  group.output_scale = view("signs.svh", DType::kF16, {kExl3Block}, ones);
  Exl3Group packed = group;
  packed.output_scale = view("signs.sv", DType::kI16, {kExl3Block / 16}, words);
  packed.output_packed = true;
  std::vector<float> x(kExl3Block);
  for (size_t i = 0; i < x.size(); ++i) x[i] = 1.0f + static_cast<float>(i);
  ThreadPool pool(1);
  for (const CpuTier tier : Tiers()) {
    std::vector<float> plain(kExl3Block), signs(kExl3Block);
    const auto run = [&](const Exl3Group& of, std::vector<float>& y) {
      const auto linear = CpuLinear::Load({kExl3Block, kExl3Block, of}, tier).value().release();
      const Status status = linear->Run({x.data(), 1, kExl3Block}, {y.data(), 1, kExl3Block}, pool);
      delete linear;
      ASSERT_TRUE(status.has_value());
    };
    run(group, plain);
    run(packed, signs);
    for (size_t i = 0; i < 48; ++i) {
      EXPECT_EQ(signs[i], plain[i] * published["values"][i].get<float>()) << i;
    }
  }
}

TEST(DecodeExact, PublishedEncoderResultsAreRingsWithTheirPublishedError) {
  int sequences = 0;
  const auto check = [&](const Json& entry, const char* states_name, const char* error_name) {
    const int k2 = static_cast<int>(std::lround(entry["bits"].get<double>() * 2));
    ASSERT_EQ(entry["codebook"], "mul1");
    const States states = StatesFrom(entry[states_name]);
    ASSERT_TRUE(IsRing(states, k2)) << k2;
    std::vector<uint16_t> words(static_cast<size_t>(TileWords(k2)));
    PackStates(states, k2, words.data());
    double error = 0.0;
    for (int p = 0; p < kTileWeights; ++p) {
      const uint16_t state = StateAt(words.data(), k2, p);
      ASSERT_EQ(state, states[static_cast<size_t>(p)]);
      const std::string target = entry["targets_f16_stream_order"][static_cast<size_t>(p)];
      const double difference = double{HalfToFloat(CodebookValue(Codebook::kMul1, state))} -
                                double{HalfToFloat(FromHex(target))};
      error += difference * difference;
    }
    EXPECT_EQ(error, entry[error_name].get<double>());
    ++sequences;
  };
  for (const Json& entry : Vectors()["encoder"]) {
    check(entry, "two_pass_states", "two_pass_sse_f64");
    if (entry.contains("exact_states")) {
      check(entry, "exact_states", "exact_tail_biting_sse_f64");
    }
  }
  EXPECT_EQ(sequences, 11 + 4);
}

}  // namespace
}  // namespace hallmark
