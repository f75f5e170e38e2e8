// SPDX-License-Identifier: Apache-2.0
#include "conformance/validate/error_band.h"

#include <algorithm>
#include <array>

#include "engine/base/check.h"

namespace hallmark {
namespace {

constexpr double kLeast = 0.6;
constexpr double kMost = 3.0;
constexpr double kGross = 12.0;

struct Line {
  int k2;
  std::array<double, 3> middle;  // by Codebook: 3inst, mcg, mul1; 0: no such rate
};
constexpr std::array<Line, 11> kLines = {{
    {2, {0.2669, 0.2669, 0.2728}},
    {3, {0, 0, 0.1366}},
    {4, {0.0693, 0.0687, 0.0683}},
    {5, {0, 0, 0.0347}},
    {6, {0.01774, 0.01743, 0.01744}},
    {7, {0, 0, 0.00884}},
    {8, {0.004626, 0.004534, 0.004467}},
    {10, {0.001218, 0.001204, 0.001162}},
    {12, {3.25e-4, 3.22e-4, 3.06e-4}},
    {14, {8.80e-5, 8.74e-5, 8.26e-5}},
    {16, {2.36e-5, 2.35e-5, 2.09e-5}},
}};

}  // namespace

ErrorBand ErrorBandOf(Exl3Rate rate) {
  const auto* line = std::ranges::find(kLines, rate.k2, &Line::k2);
  CHECK(line != kLines.end());
  const double middle = line->middle[static_cast<size_t>(rate.codebook)];
  CHECK(middle > 0);
  return {
      .least = kLeast * middle, .middle = middle, .most = kMost * middle, .gross = kGross * middle};
}

}  // namespace hallmark
