// SPDX-License-Identifier: Apache-2.0
#include "engine/format/quantization_config.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace hallmark {
namespace {

Result<QuantizationConfig> Parse(const char* text) {
  return ParseQuantizationConfig(Json::parse(text), "config.json", "/quantization_config");
}

TEST(QuantizationConfig, ReadsWhatAConverterWrites) {
  const auto config = Parse(R"({"quant_method": "exl3", "version": "1.4.2", "bits": 3.0,
    "head_bits": 4, "calibration": {"rows": 250, "cols": 2048}, "out_scales": "always",
    "codebook": "mul1", "mtp_bits": 3})");
  ASSERT_TRUE(config.has_value());
  EXPECT_EQ(config->version, "1.4.2");
  EXPECT_EQ(config->bits, 3.0);
  EXPECT_EQ(config->head_bits, 4);
  EXPECT_EQ(config->mtp_bits, 3);
  EXPECT_EQ(config->codebook, Codebook::kMul1);
  EXPECT_TRUE(config->storage.empty());
}

TEST(QuantizationConfig, KeepsHalfBitsWhole) {
  const auto config = Parse(R"({"quant_method": "exl3", "bits": 2.5, "tensor_storage": {
    "p": {"quant_format": "exl3", "bits_per_weight": 2.5, "mul1_multiplier": 2212286765,
          "stored_tensors": {"p.suh": {"shape": [128], "n_bytes": 256, "dtype": "torch.float16"}}},
    "q": {"stored_tensors": {}}}})");
  ASSERT_TRUE(config.has_value()) << config.error().ToString();
  EXPECT_EQ(config->bits, 2.5);
  ASSERT_EQ(config->storage.size(), 2u);
  EXPECT_EQ(config->storage[0].bits_per_weight, 2.5);
  EXPECT_EQ(config->storage[0].mul1_multiplier, kMul1Multiplier);
  EXPECT_EQ(config->storage[0].tensors[0].shape, std::vector<int64_t>{128});
  EXPECT_TRUE(config->storage[0].exl3);
  EXPECT_FALSE(config->storage[1].exl3);
}

TEST(QuantizationConfig, TakesAMultiplierWithEitherSign) {
  const auto config = Parse(R"({"quant_method": "exl3", "tensor_storage": {
    "p": {"mcg_multiplier": -877912083}, "q": {"mcg_multiplier": 3417055213}}})");
  ASSERT_TRUE(config.has_value());
  EXPECT_EQ(config->storage[0].mcg_multiplier, kMcgMultiplier);
  EXPECT_EQ(config->storage[1].mcg_multiplier, kMcgMultiplier);
}

TEST(QuantizationConfig, RefusesAtThePointer) {
  const auto method = Parse(R"({"quant_method": "fp8"})");
  EXPECT_EQ(method.error().code, Code::kUnsupported);
  EXPECT_EQ(method.error().where.pointer, "/quantization_config/quant_method");
  const auto bits = Parse(R"({"quant_method": "exl3", "bits": 9})");
  EXPECT_EQ(bits.error().where.pointer, "/quantization_config/bits");
  const auto storage = Parse(R"({"quant_method": "exl3", "tensor_storage": {"a/b": 1}})");
  EXPECT_EQ(storage.error().where.pointer, "/quantization_config/tensor_storage/a~1b");
}

TEST(QuantizationConfig, TwoStatementsMustAgree) {
  const auto a = Parse(R"({"quant_method": "exl3", "bits": 3.0, "version": "1.4.1"})");
  const auto b = Parse(R"({"quant_method": "exl3", "bits": 3.0, "version": "1.4.2"})");
  const auto c = Parse(R"({"quant_method": "exl3", "bits": 3.5})");
  EXPECT_TRUE(CheckAgreement(*a, *b).has_value());
  const auto d = Parse(R"({"quant_method": "exl3", "head_bits": 6})");
  EXPECT_EQ(CheckAgreement(*a, *c).error().code, Code::kMismatch);
  EXPECT_TRUE(CheckAgreement(*a, *d).has_value());
}

TEST(QuantizationConfig, StorageIsHeldAgainstTheTensors) {
  const auto config = Parse(R"({"quant_method": "exl3", "tensor_storage": {
    "p": {"bits_per_weight": 2.5, "stored_tensors": {
      "p.trellis": {"shape": [8, 8, 40], "dtype": "torch.int16"}}}}})");
  TensorView trellis{.name = "p.trellis", .dtype = DType::kI16, .shape = {8, 8, 40}};
  EXPECT_TRUE(CheckStorage(*config, std::span(&trellis, 1)).has_value());
  EXPECT_EQ(CheckStorage(*config, {}).error().where.tensor, "p.trellis");
  trellis.shape = {8, 8, 32};
  EXPECT_EQ(CheckStorage(*config, std::span(&trellis, 1)).error().code, Code::kMismatch);
}

TEST(QuantizationConfig, KeepsTheGoodPartsBesideEveryFault) {
  const Json value = Json::parse(R"({"quant_method": "exl3", "bits": 9, "head_bits": 9,
    "codebook": "mul2", "tensor_storage": {"p": {"bits_per_weight": 9}, "q": {}}})");
  const QuantizationReading reading = ReadQuantizationConfig(value, "c.json", "/q");
  ASSERT_EQ(reading.faults.size(), 4u);
  EXPECT_EQ(reading.faults[0].where.pointer, "/q/bits");
  EXPECT_EQ(reading.faults[1].where.pointer, "/q/head_bits");
  EXPECT_EQ(reading.faults[2].where.pointer, "/q/codebook");
  EXPECT_EQ(reading.faults[3].where.pointer, "/q/tensor_storage/p/bits_per_weight");
  ASSERT_EQ(reading.config.storage.size(), 1u);
  EXPECT_EQ(reading.config.storage[0].key, "q");
}

TEST(QuantizationConfig, ListsEveryDisagreementAndEveryFaultOfStorage) {
  const auto a = Parse(R"({"quant_method": "exl3", "bits": 3, "head_bits": 6})");
  const auto b = Parse(R"({"quant_method": "exl3", "bits": 4, "head_bits": 8, "tensor_storage": {
    "p": {"stored_tensors": {"p.suh": {"shape": [1], "dtype": "torch.float16"},
                             "p.svh": {"shape": [1], "dtype": "torch.float16"}}}}})");
  ASSERT_TRUE(a.has_value() && b.has_value());
  EXPECT_EQ(Disagreements(*a, *b).size(), 2u);
  EXPECT_EQ(StorageFaults(*b, {}).size(), 2u);
}

}  // namespace
}  // namespace hallmark
