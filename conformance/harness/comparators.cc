// SPDX-License-Identifier: Apache-2.0
#include "conformance/harness/comparators.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "engine/base/check.h"
#include "engine/base/elementary.h"

namespace hallmark {
namespace {

size_t CountNonFinite(std::span<const float> values) {
  return static_cast<size_t>(
      std::count_if(values.begin(), values.end(), [](float v) { return !std::isfinite(v); }));
}

// log(sum(exp(row))) in double, shifted by the largest value so that nothing overflows. Our own exp
// and log here and below: measures enter receipts, and libm's bits differ between machines.
double LogSumExp(std::span<const float> row) {
  const double largest = *std::max_element(row.begin(), row.end());
  double sum = 0;
  for (const float value : row) sum += Exp(value - largest);
  return largest + Log(sum);
}

// Entropy of softmax(row), nat.
double Entropy(std::span<const float> row) {
  const double norm = LogSumExp(row);
  double entropy = 0;
  for (const float value : row) {
    const double log_p = value - norm;
    entropy -= Exp(log_p) * log_p;
  }
  return entropy;
}

double KlDivergence(std::span<const float> expected, std::span<const float> actual) {
  const double expected_norm = LogSumExp(expected);
  const double actual_norm = LogSumExp(actual);
  double kl = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double log_p = expected[i] - expected_norm;
    const double log_q = actual[i] - actual_norm;
    kl += Exp(log_p) * (log_p - log_q);
  }
  return kl;
}

double RelativeRms(std::span<const float> expected, std::span<const float> actual) {
  const double count = static_cast<double>(expected.size());
  double mean = 0;
  for (const float value : expected) mean += value / count;
  double variance = 0;
  double error = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double centred = expected[i] - mean;
    const double difference = static_cast<double>(actual[i]) - expected[i];
    variance += centred * centred / count;
    error += difference * difference / count;
  }
  if (error == 0) return 0;
  return std::sqrt(error / variance);  // infinite for a constant row that differs
}

}  // namespace

std::string BitComparison::ToString() const {
  if (mismatches == 0) return fmt::format("{} compared, none differ", compared);
  return fmt::format("{} compared, {} differ, first at {}", compared, mismatches, first);
}

BitComparison CompareBytes(std::span<const std::byte> expected, std::span<const std::byte> actual,
                           size_t element_bytes) {
  CHECK(element_bytes > 0);
  const size_t expected_count = expected.size() / element_bytes;
  const size_t actual_count = actual.size() / element_bytes;
  BitComparison result;
  result.compared = std::min(expected_count, actual_count);
  for (size_t i = 0; i < result.compared; ++i) {
    const size_t at = i * element_bytes;
    if (std::memcmp(expected.data() + at, actual.data() + at, element_bytes) == 0) continue;
    if (result.mismatches++ == 0) result.first = i;
  }
  const size_t lonely = std::max(expected_count, actual_count) - result.compared;
  if (lonely > 0 && result.mismatches == 0) result.first = result.compared;
  result.mismatches += lonely;
  return result;
}

bool Drift::Within(double max_rms, double max_kl) const {
  // Written so that a NaN measure is outside.
  return rows > 0 && non_finite == 0 && worst_rms <= max_rms && mean_kl <= max_kl;
}

std::string Drift::ToString() const {
  return fmt::format(
      "{} rows, {} non-finite, worst rms/std {:.3e} at row {}, mean KL {:.3e} nat, mean entropy "
      "{:.2f} nat",
      rows, non_finite, worst_rms, worst_row, mean_kl, mean_entropy);
}

Drift MeasureDrift(std::span<const float> expected, std::span<const float> actual, size_t columns) {
  CHECK(columns > 0 && expected.size() == actual.size() && expected.size() % columns == 0);
  Drift drift;
  drift.rows = expected.size() / columns;
  drift.non_finite = CountNonFinite(expected) + CountNonFinite(actual);
  if (drift.non_finite > 0) return drift;  // no measure of such a run means anything
  for (size_t row = 0; row < drift.rows; ++row) {
    const auto want = expected.subspan(row * columns, columns);
    const auto got = actual.subspan(row * columns, columns);
    const double rms = RelativeRms(want, got);
    if (rms > drift.worst_rms) {
      drift.worst_rms = rms;
      drift.worst_row = row;
    }
    drift.mean_kl += KlDivergence(want, got) / static_cast<double>(drift.rows);
    drift.mean_entropy += Entropy(got) / static_cast<double>(drift.rows);
  }
  return drift;
}

size_t Argmax(std::span<const float> row) {
  CHECK(!row.empty());
  size_t best = 0;
  for (size_t i = 1; i < row.size(); ++i) {
    if (row[i] > row[best] || (std::isnan(row[best]) && !std::isnan(row[i]))) best = i;
  }
  return best;
}

std::string ArgmaxAgreement::ToString() const {
  const std::string text =
      fmt::format("{} compared, {} too close, {} differ", compared, close, differ);
  return differ == 0 ? text : text + fmt::format(", first at row {}", first);
}

ArgmaxAgreement CompareArgmax(std::span<const int32_t> ids, std::span<const float> margins,
                              std::span<const float> logits, size_t columns, double min_margin) {
  CHECK(columns > 0 && ids.size() == margins.size() && logits.size() == ids.size() * columns);
  ArgmaxAgreement result;
  for (size_t row = 0; row < ids.size(); ++row) {
    if (!(margins[row] > min_margin)) {
      ++result.close;
      continue;
    }
    ++result.compared;
    const size_t best = Argmax(logits.subspan(row * columns, columns));
    if (static_cast<int64_t>(best) == ids[row]) continue;
    if (result.differ++ == 0) result.first = row;
  }
  return result;
}

std::string Liveness::ToString() const {
  return fmt::format("{} rows, {} non-finite, mean entropy {:.2f} nat, {} distinct ids", rows,
                     non_finite, mean_entropy, distinct_ids);
}

Liveness MeasureLiveness(std::span<const float> logits, size_t columns) {
  CHECK(columns > 0 && logits.size() % columns == 0);
  Liveness result;
  result.rows = logits.size() / columns;
  result.non_finite = CountNonFinite(logits);
  if (result.non_finite > 0) return result;
  std::set<size_t> ids;
  for (size_t row = 0; row < result.rows; ++row) {
    const auto values = logits.subspan(row * columns, columns);
    ids.insert(Argmax(values));
    result.mean_entropy += Entropy(values) / static_cast<double>(result.rows);
  }
  result.distinct_ids = ids.size();
  return result;
}

}  // namespace hallmark
