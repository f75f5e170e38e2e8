// SPDX-License-Identifier: Apache-2.0
#include "engine/format/exl3_group.h"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>

#include "engine/format/quantization_config.h"

namespace hallmark {
namespace {

// A group of K 256 and N 128 under "p", and the bytes behind it.
class Group {
 public:
  explicit Group(int64_t words = 48) {
    Add("trellis", DType::kI16, {16, 8, words});
    Add("suh", DType::kF16, {256});
    Add("svh", DType::kF16, {128});
  }
  TensorView& Add(const std::string& suffix, DType dtype, std::vector<int64_t> shape) {
    TensorView view{.name = "p." + suffix, .dtype = dtype, .shape = std::move(shape)};
    view.file = "x.safetensors";
    bytes_.emplace_back(static_cast<size_t>(view.elements() * DTypeSize(dtype)));
    view.bytes = bytes_.back();
    tensors_.push_back(std::move(view));
    return tensors_.back();
  }
  void Marker(const std::string& suffix, uint32_t value) {
    Add(suffix, DType::kI32, {});
    std::memcpy(bytes_.back().data(), &value, sizeof(value));
  }
  std::vector<std::byte>& bytes(size_t tensor) { return bytes_.at(tensor); }
  const TensorView& view(size_t tensor) const { return tensors_.at(tensor); }
  Result<Exl3Group> Parse() const { return ParseExl3Group("p", tensors_); }

 private:
  std::deque<std::vector<std::byte>> bytes_;
  std::vector<TensorView> tensors_;
};

TEST(Exl3Group, ReadsSizesWidthAndCodebook) {
  Group tensors(56);
  tensors.Marker("mul1", kMul1Multiplier);
  const auto group = tensors.Parse();
  ASSERT_TRUE(group.has_value()) << group.error().ToString();
  EXPECT_EQ(group->name, "p");
  EXPECT_EQ(group->k, 256);
  EXPECT_EQ(group->n, 128);
  EXPECT_EQ(group->bits(), 3.5);
  EXPECT_EQ(group->codebook, Codebook::kMul1);
  EXPECT_FALSE(group->input_packed);
  EXPECT_EQ(group->input_scale.name, "p.suh");
  EXPECT_FALSE(group->bias.has_value());
}

TEST(Exl3Group, KnowsExactlyElevenWidths) {
  int widths = 0;
  for (int64_t words = 0; words <= 160; ++words) {
    Group tensors(words);
    tensors.Marker("mul1", kMul1Multiplier);
    const auto group = tensors.Parse();
    if (group) {
      ++widths;
      EXPECT_EQ(group->bits(), static_cast<double>(words) / 16);
    } else {
      EXPECT_EQ(group.error().code, Code::kUnsupported) << words;
      EXPECT_EQ(group.error().where.tensor, "p.trellis");
    }
  }
  EXPECT_EQ(widths, 8 + 3);
}

TEST(Exl3Group, ReadsTheMarkersValue) {
  for (const uint32_t value : {kMul1Multiplier, kMcgMultiplier, 0u, kMul1Multiplier + 1}) {
    Group tensors;
    tensors.Marker("mul1", value);
    EXPECT_EQ(tensors.Parse().has_value(), value == kMul1Multiplier) << value;
  }
}

TEST(Exl3Group, RefusesExtentsThatOnlyAZeroKeepsFromOverflowing) {
  Group tensors;
  TensorView trellis{.name = "p.trellis", .dtype = DType::kI16};
  trellis.shape = {int64_t{1} << 62, 0, 48};
  EXPECT_EQ(ParseExl3Group("p", std::span(&trellis, 1)).error().code, Code::kMismatch);
}

TEST(Exl3Group, RefusesAnUnknownSuffixByName) {
  Group tensors;
  tensors.Add("g_idx", DType::kI32, {256});
  EXPECT_EQ(tensors.Parse().error().where.tensor, "p.g_idx");
  EXPECT_EQ(tensors.Parse().error().code, Code::kUnsupported);
}

TEST(Exl3Group, IsToldFromAPlainMatrix) {
  Group tensors;
  EXPECT_TRUE(LooksLikeExl3("p", std::span(&tensors.view(1), 1)));
  const TensorView weight{.name = "p.weight"};
  EXPECT_FALSE(LooksLikeExl3("p", std::span(&weight, 1)));
  EXPECT_FALSE(LooksLikeExl3("p", {}));
}

TEST(CheckFinite, GivesEachHalfItsVerdict) {
  Group tensors;
  int refused = 0;
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    std::memcpy(tensors.bytes(1).data() + 6, &half, 2);
    const auto status = CheckFinite(tensors.view(1));
    EXPECT_EQ(status.has_value(), (bits & 0x7C00) != 0x7C00) << bits;
    refused += status.has_value() ? 0 : 1;
  }
  EXPECT_EQ(refused, 2 * 1024);
}

TEST(CheckFinite, NamesCountAndFirst) {
  Group tensors;
  for (const size_t index : {9, 200}) {
    const uint16_t infinity = 0x7C00;
    std::memcpy(tensors.bytes(1).data() + 2 * index, &infinity, 2);
  }
  const auto status = CheckFinite(tensors.view(1));
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, Code::kOutOfRange);
  EXPECT_EQ(status.error().where.tensor, "p.suh");
  EXPECT_EQ(status.error().where.byte, 18u);
  EXPECT_EQ(status.error().message,
            "2 of 256 values are infinite or not a number, the first at index 9");
}

}  // namespace
}  // namespace hallmark
