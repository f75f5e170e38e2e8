// SPDX-License-Identifier: Apache-2.0
#include "engine/base/elementary.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "conformance/harness/tolerances.h"
#include "engine/base/random.h"

namespace hallmark {
namespace {

// |value - truth| in units of the last place of `truth` in T.
template <typename T>
long double Ulps(T value, long double truth) {
  const T rounded = static_cast<T>(truth);
  const T magnitude = std::max(std::abs(rounded), std::numeric_limits<T>::min());
  const T ulp = std::nextafter(magnitude, std::numeric_limits<T>::infinity()) - magnitude;
  return std::abs(static_cast<long double>(value) - truth) / ulp;
}

TEST(Elementary, ExpFloatWithinItsBound) {
  SplitMix64 random(1);
  long double worst = 0;
  for (int i = 0; i < 400000; ++i) {
    const float x = random.NextSigned() * 87.0f;
    worst = std::max(worst, Ulps(Exp(x), std::exp(static_cast<long double>(x))));
  }
  EXPECT_LE(worst, Tolerance("exp-float-ulps"));
}

TEST(Elementary, ExpFloatEdges) {
  EXPECT_EQ(Exp(0.0f), 1.0f);
  EXPECT_EQ(Exp(-0.0f), 1.0f);
  EXPECT_EQ(Exp(200.0f), std::numeric_limits<float>::infinity());
  EXPECT_EQ(Exp(-std::numeric_limits<float>::infinity()), 0.0f);
  EXPECT_EQ(Exp(-200.0f), 0.0f);
  EXPECT_GT(Exp(-100.0f), 0.0f);
  EXPECT_LT(Exp(88.7f), std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(Exp(std::numeric_limits<float>::quiet_NaN())));
}

TEST(Elementary, Log1pWithinItsBound) {
  SplitMix64 random(2);
  long double worst = 0;
  for (int i = 0; i < 400000; ++i) {
    // Spread over the exponents from 2^-40 to 2^30.
    const float x =
        std::ldexp(1.0f + std::abs(random.NextSigned()), static_cast<int>(random.Below(70)) - 40);
    worst = std::max(worst, Ulps(Log1p(x), std::log1p(static_cast<long double>(x))));
  }
  EXPECT_LE(worst, Tolerance("log1p-float-ulps"));
  EXPECT_EQ(Log1p(0.0f), 0.0f);
}

TEST(Elementary, SigmoidWithinItsBound) {
  SplitMix64 random(3);
  long double worst = 0;
  for (int i = 0; i < 400000; ++i) {
    const float x = random.NextSigned() * 86.0f;
    const long double truth = 1.0L / (1.0L + std::exp(-static_cast<long double>(x)));
    worst = std::max(worst, Ulps(Sigmoid(x), truth));
  }
  EXPECT_LE(worst, Tolerance("sigmoid-float-ulps"));
}

TEST(Elementary, SoftplusIsLinearAboveTwenty) {
  EXPECT_EQ(Softplus(20.5f), 20.5f);
  EXPECT_LE(Ulps(Softplus(0.0f), std::log(2.0L)), Tolerance("log1p-float-ulps"));
  EXPECT_GT(Softplus(-30.0f), 0.0f);
}

TEST(Elementary, ExpDoubleWithinItsBound) {
  SplitMix64 random(4);
  long double worst = 0;
  for (int i = 0; i < 400000; ++i) {
    const double x = (static_cast<double>(random.Next()) * 0x1p-64 - 0.5) * 1400.0;
    worst = std::max(worst, Ulps(Exp(x), std::exp(static_cast<long double>(x))));
  }
  EXPECT_LE(worst, Tolerance("exp-double-ulps"));
}

TEST(Elementary, LogDoubleWithinItsBound) {
  SplitMix64 random(5);
  long double worst = 0;
  for (int i = 0; i < 400000; ++i) {
    const double u = static_cast<double>(random.Next() >> 11) * 0x1p-53 + 0x1p-54;
    const double x =
        i % 2 == 0 ? u : std::ldexp(1.0 + u, static_cast<int>(random.Below(600)) - 300);
    worst = std::max(worst, Ulps(Log(x), std::log(static_cast<long double>(x))));
  }
  EXPECT_LE(worst, Tolerance("log-double-ulps"));
  EXPECT_EQ(Log(1.0), 0.0);
  EXPECT_EQ(Log(0.0), -std::numeric_limits<double>::infinity());
  EXPECT_TRUE(std::isnan(Log(-1.0)));
}

TEST(Elementary, SinCosWithinItsBound) {
  SplitMix64 random(6);
  long double worst = 0;
  for (int i = 0; i < 400000; ++i) {
    const float angle = random.NextSigned() * (i % 2 == 0 ? 3.2f : 262144.0f);
    const SinCosPair pair = SinCos(angle);
    worst = std::max(worst, Ulps(pair.sin, std::sin(static_cast<long double>(angle))));
    worst = std::max(worst, Ulps(pair.cos, std::cos(static_cast<long double>(angle))));
  }
  EXPECT_LE(worst, Tolerance("sincos-float-ulps"));
}

}  // namespace
}  // namespace hallmark
