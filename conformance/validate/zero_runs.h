// SPDX-License-Identifier: Apache-2.0
// ZeroRuns: where a stretch of bytes is zero, gathered unit by unit and piece by piece: what stands
// at its two ends, and the longest run. Zero bytes are what a file holds where nothing was written.
#ifndef HALLMARK_CONFORMANCE_VALIDATE_ZERO_RUNS_H_
#define HALLMARK_CONFORMANCE_VALIDATE_ZERO_RUNS_H_

#include <cstdint>

namespace hallmark {

struct ZeroRuns {
  uint64_t total = 0;     // bytes seen
  uint64_t leading = 0;   // zero bytes before the first other unit
  uint64_t trailing = 0;  // zero bytes after the last one
  uint64_t longest = 0;
  uint64_t longest_begin = 0;

  bool all_zero() const { return total > 0 && leading == total; }

  // The next unit of `bytes`.
  void Add(uint64_t bytes, bool zero) {
    if (zero) {
      if (leading == total) leading += bytes;
      trailing += bytes;
    } else {
      trailing = 0;
    }
    total += bytes;
    Keep(trailing, total - trailing);
  }

  // The next piece, whose runs may join those of this one.
  void Append(const ZeroRuns& next) {
    if (leading == total) leading += next.leading;
    Keep(trailing + next.leading, total - trailing);
    Keep(next.longest, total + next.longest_begin);
    trailing = next.trailing == next.total ? trailing + next.trailing : next.trailing;
    total += next.total;
  }

 private:
  void Keep(uint64_t bytes, uint64_t begin) {
    if (bytes <= longest) return;
    longest = bytes;
    longest_begin = begin;
  }
};

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_VALIDATE_ZERO_RUNS_H_
