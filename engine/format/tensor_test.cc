// SPDX-License-Identifier: Apache-2.0
#include "engine/format/tensor.h"

#include <gtest/gtest.h>

#include "engine/format/linear.h"

namespace hallmark {
namespace {

TEST(DType, NamesRoundTripAndHaveTheirSize) {
  int bytes = 0;
  for (int i = 0; i <= static_cast<int>(DType::kF64); ++i) {
    const auto dtype = static_cast<DType>(i);
    EXPECT_EQ(ParseDType(DTypeName(dtype)), dtype);
    bytes += DTypeSize(dtype);
  }
  EXPECT_EQ(bytes, 6 * 1 + 4 * 2 + 3 * 4 + 3 * 8);
  EXPECT_EQ(DTypeName(DType::kF8E4M3), "F8_E4M3");
  EXPECT_EQ(DTypeSize(DType::kBF16), 2);
}

TEST(DType, RefusesOtherSpellings) {
  for (const char* name : {"", "f16", "F16 ", "FP16", "F4", "C64"}) {
    EXPECT_FALSE(ParseDType(name).has_value()) << name;
  }
}

TEST(TensorView, CountsElements) {
  TensorView tensor;
  EXPECT_EQ(tensor.elements(), 1);  // a scalar
  tensor.shape = {3, 0, 5};
  EXPECT_EQ(tensor.elements(), 0);
  tensor.shape = {3, 4, 5};
  EXPECT_EQ(tensor.elements(), 60);
}

TEST(ShapeText, IsBracketed) {
  EXPECT_EQ(ShapeText({}), "[]");
  EXPECT_EQ(ShapeText(std::vector<int64_t>{320, 15520, 96}), "[320, 15520, 96]");
}

TEST(LinearSource, HasTheNameOfItsWeights) {
  LinearSource source;
  source.weights = PlainLinear{.name = "a"};
  EXPECT_EQ(source.name(), "a");
  source.weights = Exl3Group{.name = "b"};
  EXPECT_EQ(source.name(), "b");
  EXPECT_EQ(CodebookName(Codebook::kMul1), "mul1");
}

}  // namespace
}  // namespace hallmark
