// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <map>

#include "engine/base/float_types.h"
#include "engine/base/sha256.h"
#include "engine/format/drafter_config.h"
#include "engine/format/model_config.h"
#include "engine/format/synth_model.h"

namespace hallmark {
namespace {

std::vector<std::byte> Whole(const SynthTensor& tensor, uint64_t seed) {
  std::vector<std::byte> bytes(tensor.bytes());
  SynthFiller(seed).Fill(tensor, 0, bytes);
  return bytes;
}

std::vector<float> Values(const SynthTensor& tensor) {
  const std::vector<std::byte> bytes = Whole(tensor, 3);
  std::vector<float> values;
  for (size_t i = 0; i < bytes.size(); i += 2) {
    uint16_t bits;
    std::memcpy(&bits, bytes.data() + i, sizeof(bits));
    values.push_back(tensor.dtype == DType::kF16 ? HalfToFloat(bits) : Bf16ToFloat(bits));
  }
  return values;
}

TEST(SynthTensor, AnyPartIsThatPartOfTheWhole) {
  const SynthTensor tensor{.name = "a",
                           .dtype = DType::kBF16,
                           .shape = {1001},
                           .fill = SynthFill::kBell,
                           .middle = 1,
                           .spread = 2};
  const std::vector<std::byte> whole = Whole(tensor, 9);
  SynthFiller filler(9);
  for (const uint64_t offset : {0, 8, 800, 1992, 2000}) {
    for (const uint64_t count : {uint64_t{8}, tensor.bytes() - offset}) {
      if (offset + count > tensor.bytes()) continue;
      std::vector<std::byte> part(count);
      filler.Fill(tensor, offset, part);
      EXPECT_EQ(std::memcmp(part.data(), whole.data() + offset, count), 0) << offset;
    }
  }
}

TEST(SynthTensor, SeedAndNameDecide) {
  SynthTensor tensor{.name = "a.trellis", .dtype = DType::kI16, .shape = {64, 64}};
  const auto first = Whole(tensor, 1);
  EXPECT_EQ(first, Whole(tensor, 1));
  EXPECT_NE(first, Whole(tensor, 2));
  tensor.name = "b.trellis";
  EXPECT_NE(first, Whole(tensor, 1));
}

// The formula is part of every published figure that names a seed.
TEST(SynthTensor, BytesArePinned) {
  Sha256 hash;
  for (const SynthFill fill : {SynthFill::kWords, SynthFill::kBell, SynthFill::kUniform,
                               SynthFill::kSigned, SynthFill::kLeaning, SynthFill::kConstant}) {
    for (const DType dtype : {DType::kF16, DType::kBF16}) {
      hash.Update(Whole({.name = "pinned",
                         .dtype = dtype,
                         .shape = {37, 28},
                         .fill = fill,
                         .middle = 0.25f,
                         .spread = 0.5f},
                        77));
    }
  }
  EXPECT_EQ(Hex(hash.Finish()), "319b82301f2018b2f2d1bb64c55bacb24715dc3a5e3bd5268cffebd842382950");
}

TEST(SynthTensor, ValuesHaveTheStatedSpread) {
  const std::vector<float> bell = Values({.name = "x",
                                          .dtype = DType::kF16,
                                          .shape = {100000},
                                          .fill = SynthFill::kBell,
                                          .middle = 1,
                                          .spread = 0.5f});
  double sum = 0, squares = 0;
  for (const float value : bell) {
    sum += value;
    squares += (value - 1.0) * (value - 1.0);
  }
  EXPECT_NEAR(sum / 1e5, 1.0, 0.01);
  EXPECT_NEAR(std::sqrt(squares / 1e5), 0.5, 0.01);
  int negative = 0;
  for (const float value : Values({.name = "x",
                           .dtype = DType::kF16,
                           .shape = {10000},
                           .fill = SynthFill::kSigned,
                           .spread = 2})) {
    EXPECT_GE(std::abs(value), 1.499f);
    EXPECT_LE(std::abs(value), 2.501f);
    negative += value < 0 ? 1 : 0;
  }
  EXPECT_NEAR(negative, 5000, 300);
}

// Three rows in four lean by the middle, one does not, whichever part of the tensor is asked for.
TEST(SynthTensor, EveryFourthRowOfALeaningTensorStandsUpright) {
  constexpr int64_t kRows = 41, kCols = 60;
  const SynthTensor tensor{.name = "x",
                           .dtype = DType::kBF16,
                           .shape = {kRows, kCols},
                           .fill = SynthFill::kLeaning,
                           .middle = 16,
                           .spread = 1,
                           .word = 3};
  const std::vector<float> values = Values(tensor);
  for (int64_t row = 0; row < kRows; ++row) {
    double sum = 0;
    for (int64_t c = 0; c < kCols; ++c) sum += values[static_cast<size_t>(row * kCols + c)];
    EXPECT_NEAR(sum / kCols, row % 4 == 3 ? 0 : 16, 0.7) << row;
  }
  const std::vector<std::byte> whole = Whole(tensor, 9);
  SynthFiller filler(9);
  for (const uint64_t offset : {0, 112, 120, 128, 352, 360, 368, 480}) {
    for (const uint64_t count : {8, 16, 1000}) {
      std::vector<std::byte> part(count);
      filler.Fill(tensor, offset, part);
      EXPECT_EQ(std::memcmp(part.data(), whole.data() + offset, count), 0) << offset;
    }
  }
}

// A drafter guesses from the mask's row: one that does not lean sees none of the likely ids.
TEST(SynthModel, TheMasksRowLeansWhateverTheVocabulary) {
  for (int64_t vocab = 256; vocab < 264; ++vocab) {
    SynthGeometry geometry = SynthGeometries()[0];
    geometry.layers = 2;
    geometry.vocab = vocab;
    const auto model = MakeSynthModel({.geometry = geometry});
    ASSERT_TRUE(model.has_value());
    const SynthTensor* table = model->Find("model.language_model.embed_tokens.weight");
    ASSERT_NE(table, nullptr);
    EXPECT_EQ(table->fill, SynthFill::kLeaning);
    EXPECT_NE(static_cast<uint64_t>(SynthMaskId(vocab)) % 4, table->word) << vocab;
    const auto drafter = MakeSynthDrafter(geometry, SynthDrafterWeights::kBf16);
    ASSERT_TRUE(drafter.has_value());
    const std::string mask = "\"mask_token_id\": " + std::to_string(SynthMaskId(vocab));
    EXPECT_NE(drafter->config.find(mask), std::string::npos) << vocab;
  }
}

TEST(SynthModel, WidthsAverageToWhatIsAskedFor) {
  for (const SynthGeometry& geometry : SynthGeometries()) {
    for (const double bits : {3.0, 3.5, 4.25, 8.0}) {
      const auto model = MakeSynthModel({.geometry = geometry, .bits = bits});
      ASSERT_TRUE(model.has_value());
      EXPECT_NEAR(model->bits, bits, 0.03) << geometry.name;
      double stored = 0, weights = 0;
      for (const SynthTensor& tensor : model->tensors) {
        if (!tensor.name.ends_with(".trellis") || tensor.name.starts_with("lm_head")) continue;
        const int64_t width = tensor.shape[2] / 16;
        EXPECT_TRUE(width == std::floor(bits) || width == std::floor(bits) + 1) << tensor.name;
        stored += static_cast<double>(tensor.bytes()) * 8;
        weights += static_cast<double>(tensor.shape[0] * tensor.shape[1] * 256);
      }
      EXPECT_NEAR(stored / weights, model->bits, 1e-9);
    }
  }
  const auto big = MakeSynthModel({.geometry = *FindSynthGeometry("qwen3.8-27b"), .bits = 3.5});
  EXPECT_NEAR(big->bits, 3.5, 0.005);
}

TEST(SynthModel, LinearsThatShareAnInputHaveOneWidth) {
  const auto model = MakeSynthModel({.geometry = *FindSynthGeometry("qwen3.5-9b"), .bits = 3.5});
  ASSERT_TRUE(model.has_value());
  const auto width = [&](int layer, const std::string& name) {
    const std::string at = "model.language_model.layers." + std::to_string(layer) + ".";
    const SynthTensor* tensor = model->Find(at + name + ".trellis");
    return tensor == nullptr ? 0 : tensor->shape[2];
  };
  std::map<int64_t, int> seen;
  for (int layer = 0; layer < 32; ++layer) {
    EXPECT_EQ(width(layer, "mlp.gate_proj"), width(layer, "mlp.up_proj"));
    ++seen[width(layer, "mlp.gate_proj")];
    if (layer % 4 == 3) {
      EXPECT_EQ(width(layer, "self_attn.q_proj"), width(layer, "self_attn.k_proj"));
      EXPECT_EQ(width(layer, "self_attn.q_proj"), width(layer, "self_attn.v_proj"));
    } else {
      EXPECT_EQ(width(layer, "linear_attn.in_proj_qkv"), width(layer, "linear_attn.in_proj_z"));
    }
  }
  EXPECT_EQ(seen.size(), 2u);
  EXPECT_GT(seen[48], 8);
  EXPECT_GT(seen[64], 8);
}

TEST(SynthModel, ConfigsAreThoseOfTheGeometry) {
  for (const SynthGeometry& geometry : SynthGeometries()) {
    const auto model = MakeSynthModel({.geometry = geometry});
    ASSERT_TRUE(model.has_value());
    const auto config = ParseModelConfig(model->config, "config.json");
    ASSERT_TRUE(config.has_value()) << config.error().ToString();
    EXPECT_EQ(config->hidden, geometry.hidden);
    EXPECT_EQ(config->layers.size(), static_cast<size_t>(geometry.layers));
    for (const int64_t layers : {geometry.layers, int64_t{2}, int64_t{5}}) {
      SynthGeometry target = geometry;
      target.layers = layers;
      const auto cut = MakeSynthModel({.geometry = target});
      const auto drafter = MakeSynthDrafter(target, SynthDrafterWeights::kBf16);
      ASSERT_TRUE(cut.has_value() && drafter.has_value());
      const auto draft_config = ParseDrafterConfig(drafter->config, "config.json");
      ASSERT_TRUE(draft_config.has_value()) << draft_config.error().ToString();
      const auto cut_config = ParseModelConfig(cut->config, "config.json");
      EXPECT_TRUE(CheckDrafterFits(*draft_config, *cut_config).has_value());
    }
  }
  // The published drafter of the 27B: 1.924 thousand million parameters in 81 tensors.
  const auto drafter =
      MakeSynthDrafter(*FindSynthGeometry("qwen3.8-27b"), SynthDrafterWeights::kBf16);
  EXPECT_EQ(drafter->tensors.size(), 81u);
  uint64_t bytes = 0;
  for (const SynthTensor& tensor : drafter->tensors) bytes += tensor.bytes();
  EXPECT_NEAR(static_cast<double>(bytes) / 2e9, 1.924, 0.001);
}

TEST(SynthModel, RefusesWhatIsNoModel) {
  const SynthGeometry geometry = SynthGeometries()[0];
  EXPECT_EQ(FindSynthGeometry("qwen3.8-28b"), nullptr);
  for (const double bits : {0.5, 8.5}) {
    EXPECT_EQ(MakeSynthModel({.geometry = geometry, .bits = bits}).error().code, Code::kOutOfRange);
  }
  EXPECT_EQ(MakeSynthModel({.geometry = geometry, .head_bits = 9}).error().code, Code::kOutOfRange);
  SynthGeometry shallow = geometry;
  shallow.layers = 0;
  EXPECT_EQ(MakeSynthModel({.geometry = shallow}).error().code, Code::kOutOfRange);
  shallow.layers = 1;
  EXPECT_TRUE(MakeSynthModel({.geometry = shallow}).has_value());
  EXPECT_EQ(MakeSynthDrafter(shallow, SynthDrafterWeights::kBf16).error().code, Code::kOutOfRange);
}

}  // namespace
}  // namespace hallmark
