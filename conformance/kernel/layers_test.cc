// SPDX-License-Identifier: Apache-2.0
// Clause decode-exact on whole layers: the four of golden/format/exl3_vectors.json, computed in
// fp64, and the 24 that ExLlamaV3 decoded, reconstructed and multiplied on a GPU
// (golden/kernel/exl3_reconstruct.safetensors). plan.md lists what must be seen.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "conformance/cases/exl3_truth.h"
#include "conformance/harness/comparators.h"
#include "conformance/harness/paths.h"
#include "conformance/harness/tolerances.h"
#include "engine/backend/cpu/cpu_linear.h"
#include "engine/backend/exl3_codec.h"
#include "engine/base/float_types.h"
#include "engine/base/json.h"
#include "engine/base/sha256.h"
#include "engine/format/safetensors.h"

namespace hallmark {
namespace {

std::vector<uint16_t> Words(const Json& list) {
  std::vector<uint16_t> words;
  for (const Json& item : list) {
    words.push_back(item.is_string()
                        ? static_cast<uint16_t>(std::stoul(item.get<std::string>(), nullptr, 16))
                        : static_cast<uint16_t>(item.get<int>()));
  }
  return words;
}

std::vector<float> Widen(std::span<const uint16_t> halves) {
  std::vector<float> values(halves.size());
  std::transform(halves.begin(), halves.end(), values.begin(), &HalfToFloat);
  return values;
}

TensorView View(const char* name, DType dtype, std::vector<int64_t> shape,
                std::span<const uint16_t> words) {
  return {.name = name, .dtype = dtype, .shape = std::move(shape), .bytes = std::as_bytes(words)};
}

std::vector<float> Multiply(const Exl3Group& group, CpuTier tier, std::span<const float> x) {
  const auto linear = std::move(*CpuLinear::Load({group.k, group.n, group}, tier));
  const int64_t rows = static_cast<int64_t>(x.size()) / group.k;
  std::vector<float> y(static_cast<size_t>(rows * group.n));
  ThreadPool pool(1);
  const Status status = linear->Run({x.data(), rows, group.k}, {y.data(), rows, group.n}, pool);
  EXPECT_TRUE(status.has_value());
  return y;
}

// One published layer and the storage its views point to.
struct PublishedLayer {
  explicit PublishedLayer(const Json& json) {
    const std::string codebook = json["codebook"];
    group.name = json["name"];
    group.codebook = codebook == "mul1"  ? Codebook::kMul1
                     : codebook == "mcg" ? Codebook::kMcg
                                         : Codebook::k3inst;
    group.k2 = static_cast<int>(std::lround(json["bits"].get<double>() * 2));
    group.k = json["in_features"];
    group.n = json["out_features"];
    trellis = Words(json["trellis_i16"]);
    group.trellis =
        View("trellis", DType::kI16, json["trellis_shape"].get<std::vector<int64_t>>(), trellis);
    group.input_packed = json.contains("su_i16");
    group.output_packed = json.contains("sv_i16");
    input = Words(json[group.input_packed ? "su_i16" : "suh_f16"]);
    output = Words(json[group.output_packed ? "sv_i16" : "svh_f16"]);
    const auto scale = [](const char* name, bool packed, std::span<const uint16_t> words) {
      return View(name, packed ? DType::kI16 : DType::kF16, {static_cast<int64_t>(words.size())},
                  words);
    };
    group.input_scale = scale("input", group.input_packed, input);
    group.output_scale = scale("output", group.output_packed, output);
    if (json.contains("bias_f16")) {
      bias = Words(json["bias_f16"]);
      group.bias = scale("bias", false, bias);
    }
  }

  Exl3Group group;
  std::vector<uint16_t> trellis, input, output, bias;
};

TEST(PublishedLayers, DecodeToTheDigestAndMultiplyWithinTolerance) {
  const Json vectors = ReadJsonFile(GoldenPath("format/exl3_vectors.json")).value();
  int layers = 0, packed = 0, biased = 0;
  double worst = 0.0;
  for (const Json& json : vectors["layers"]) {
    const PublishedLayer layer(json);
    const Exl3Group& group = layer.group;
    packed += group.input_packed && group.output_packed ? 1 : 0;
    biased += group.bias.has_value() ? 1 : 0;
    const std::vector<float> x = Widen(Words(json["x_f16"]));
    std::vector<float> expected;
    for (const Json& bits : json["y_f64_bits"]) {
      expected.push_back(static_cast<float>(
          std::bit_cast<double>(std::stoull(bits.get<std::string>(), nullptr, 16))));
    }
    for (const CpuTier tier : SupportedCpuTiers()) {
      const std::vector<uint16_t> w = DecodeExl3(group, tier);
      EXPECT_EQ(Sha256HexOf<uint16_t>(w), json["w_q_sha256_le_u16_rowmajor"].get<std::string>())
          << group.name;
      std::vector<uint16_t> column;
      for (int64_t row = 0; row < group.k; ++row) {
        column.push_back(w[static_cast<size_t>(row * group.n)]);
      }
      EXPECT_TRUE(CompareBits<uint16_t>(Words(json["w_q_row0_f16"]),
                                        std::span(w).first(static_cast<size_t>(group.n)))
                      .Passed());
      EXPECT_TRUE(CompareBits<uint16_t>(Words(json["w_q_col0_f16"]), column).Passed());
      const Drift drift =
          MeasureDrift(expected, Multiply(group, tier, x), static_cast<size_t>(group.n));
      worst = std::max(worst, drift.worst_rms);
      EXPECT_TRUE(drift.Within(Tolerance("published-layer-rms"), INFINITY)) << drift.ToString();
    }
    ++layers;
  }
  EXPECT_EQ(layers, 4);
  EXPECT_EQ(packed, 1);
  EXPECT_EQ(biased, 1);
  std::printf("published-layer-rms: worst %.3g\n", worst);
}

class PeerLayers : public testing::Test {
 protected:
  std::vector<uint16_t> Halves(const std::string& name) const { return Read<uint16_t>(name); }
  std::vector<float> Floats(const std::string& name) const { return Read<float>(name); }

  // Every whole width of every codebook.
  template <typename Check>
  void ForEachLayer(const Check& check) const {
    int layers = 0;
    for (const Exl3Rate rate : AllExl3Rates()) {
      if (rate.k2 % 2 != 0) continue;
      const std::string prefix =
          std::string(CodebookName(rate.codebook)) + "_" + BitsText(rate.k2) + "_";
      const std::vector<uint16_t> trellis = Halves(prefix + "trellis");
      const std::vector<uint16_t> suh = Halves(prefix + "suh");
      const std::vector<uint16_t> svh = Halves(prefix + "svh");
      const Exl3Group group{.name = prefix,
                            .codebook = rate.codebook,
                            .k2 = rate.k2,
                            .k = kExl3Block,
                            .n = kExl3Block,
                            .trellis = View("trellis", DType::kI16, {8, 8, 8 * rate.k2}, trellis),
                            .input_scale = View("suh", DType::kF16, {kExl3Block}, suh),
                            .output_scale = View("svh", DType::kF16, {kExl3Block}, svh)};
      for (const CpuTier tier : SupportedCpuTiers()) check(group, prefix, tier);
      ++layers;
    }
    EXPECT_EQ(layers, 24);
  }

 private:
  template <typename T>
  std::vector<T> Read(const std::string& name) const {
    const TensorView* tensor = file_.Find(name);
    if (tensor == nullptr) {
      ADD_FAILURE() << "no tensor " << name;
      return {};
    }
    std::vector<T> values(tensor->bytes.size() / sizeof(T));
    std::memcpy(values.data(), tensor->bytes.data(), values.size() * sizeof(T));
    return values;
  }

  SafetensorsFile file_ =
      std::move(*SafetensorsFile::Open(GoldenPath("kernel/exl3_reconstruct.safetensors")));
};

TEST_F(PeerLayers, DecodeToTheValuesOfExLlamaV3OnEveryTier) {
  ForEachLayer([&](const Exl3Group& group, const std::string& prefix, CpuTier tier) {
    const BitComparison bits = CompareBits<uint16_t>(Halves(prefix + "w"), DecodeExl3(group, tier));
    EXPECT_TRUE(bits.Passed()) << prefix << " " << CpuTierName(tier) << ": " << bits.ToString();
    EXPECT_EQ(bits.compared, 128u * 128u);
  });
}

TEST_F(PeerLayers, MultiplyLikeExLlamaV3WithinTolerance) {
  double worst = 0.0;
  ForEachLayer([&](const Exl3Group& group, const std::string& prefix, CpuTier tier) {
    const std::vector<float> x = Widen(Halves(prefix + "x"));
    ASSERT_EQ(x.size(), 4u * 128u);
    const Drift drift = MeasureDrift(Floats(prefix + "y"), Multiply(group, tier, x), 128);
    worst = std::max(worst, drift.worst_rms);
    EXPECT_TRUE(drift.Within(Tolerance("reconstruct-linear-rms"), INFINITY))
        << prefix << " " << drift.ToString();
  });
  std::printf("reconstruct-linear-rms: worst %.3g\n", worst);
}

// The peer's W in the original basis, row by row, against ours: unit vectors through the layer.
TEST_F(PeerLayers, ReconstructLikeExLlamaV3WithinTolerance) {
  std::vector<float> unit(128 * 128, 0.0f);
  for (size_t i = 0; i < 128; ++i) unit[i * 128 + i] = 1.0f;
  double worst = 0.0;
  ForEachLayer([&](const Exl3Group& group, const std::string& prefix, CpuTier tier) {
    const Drift drift =
        MeasureDrift(Widen(Halves(prefix + "wh")), Multiply(group, tier, unit), 128);
    EXPECT_EQ(drift.rows, 128u);
    worst = std::max(worst, drift.worst_rms);
    EXPECT_TRUE(drift.Within(Tolerance("reconstruct-original-basis-rms"), INFINITY))
        << prefix << " " << drift.ToString();
  });
  std::printf("reconstruct-original-basis-rms: worst %.3g\n", worst);
}

}  // namespace
}  // namespace hallmark
