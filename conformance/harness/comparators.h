// SPDX-License-Identifier: Apache-2.0
// How a result is held against the truth: bits against bits, or a measured drift that a registered
// tolerance bounds. Not for deciding which tolerance applies (tolerances.h) or what a verdict is
// (outcome.h). An empty comparison never passes, and a non-finite value never passes as small.
#ifndef HALLMARK_CONFORMANCE_HARNESS_COMPARATORS_H_
#define HALLMARK_CONFORMANCE_HARNESS_COMPARATORS_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace hallmark {

// Outcome of comparing two spans byte for byte, element by element (so -0 differs from 0, and one
// NaN equals only its own bits).
struct BitComparison {
  size_t compared = 0;    // elements both sides have
  size_t mismatches = 0;  // differing elements, plus those only one side has
  size_t first = 0;       // index of the first mismatch, when there is one

  bool Passed() const { return compared > 0 && mismatches == 0; }
  // "128 compared, 2 differ, first at 17".
  std::string ToString() const;
};

BitComparison CompareBytes(std::span<const std::byte> expected, std::span<const std::byte> actual,
                           size_t element_bytes);

// T is a plain value without padding (float, uint16_t, int32_t ...).
template <typename T>
BitComparison CompareBits(std::span<const T> expected, std::span<const T> actual) {
  return CompareBytes(std::as_bytes(expected), std::as_bytes(actual), sizeof(T));
}

// How far rows of `actual` lie from rows of `expected`, both [rows, columns].
struct Drift {
  size_t rows = 0;
  size_t non_finite = 0;    // values on either side that are NaN or infinite
  double worst_rms = 0;     // largest over rows of rms(actual - expected) / std(expected)
  size_t worst_row = 0;     // where that is
  double mean_kl = 0;       // KL(softmax(expected) || softmax(actual)) averaged over rows, nat
  double mean_entropy = 0;  // of softmax(actual), nat

  // True when there are rows, all values are finite, and both measures are within the bounds.
  bool Within(double max_rms, double max_kl) const;
  std::string ToString() const;
};

// Computes in double, rows in order. `columns` > 0; both spans hold whole rows and are equally
// long.
Drift MeasureDrift(std::span<const float> expected, std::span<const float> actual, size_t columns);

// Index of the largest value; the lowest index wins a tie. `row` is not empty; NaN never wins.
size_t Argmax(std::span<const float> row);

// Teacher-forced agreement: rows whose reference margin exceeds `min_margin` must have the
// reference's argmax.
struct ArgmaxAgreement {
  size_t compared = 0;  // rows above the margin
  size_t close = 0;     // rows at or below it, not compared
  size_t differ = 0;
  size_t first = 0;  // first differing row, when there is one

  bool Passed() const { return compared > 0 && differ == 0; }
  std::string ToString() const;
};

// `ids` and `margins` have one entry a row of `logits` [rows, columns].
ArgmaxAgreement CompareArgmax(std::span<const int32_t> ids, std::span<const float> margins,
                              std::span<const float> logits, size_t columns, double min_margin);

// Whether a run's logits [rows, columns] look alive: all finite, mean entropy of at least 0.5 nat,
// at least 16 distinct argmax ids. A stuck model would pass every bit comparison.
struct Liveness {
  size_t rows = 0;
  size_t non_finite = 0;
  double mean_entropy = 0;  // nat
  size_t distinct_ids = 0;

  bool Passed() const {
    return rows > 0 && non_finite == 0 && mean_entropy >= 0.5 && distinct_ids >= 16;
  }
  std::string ToString() const;
};

Liveness MeasureLiveness(std::span<const float> logits, size_t columns);

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_HARNESS_COMPARATORS_H_
