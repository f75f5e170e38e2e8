// SPDX-License-Identifier: Apache-2.0
// ScanTensors: reads every byte of a list of tensors once, in the order given, and says what can be
// seen at the speed of reading: values that are not finite, the largest one, runs of zeros, tiles
// that hold nothing. Not a decoder. Reads pieces of a MiB into memory of its own, so that a
// checkpoint of any size takes some MiB and a file that shrinks is an error, not zeros.
// Determinism: the outcome does not depend on the number of threads.
#ifndef HALLMARK_CONFORMANCE_VALIDATE_TENSOR_SCAN_H_
#define HALLMARK_CONFORMANCE_VALIDATE_TENSOR_SCAN_H_

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "conformance/validate/progress.h"
#include "conformance/validate/zero_runs.h"
#include "engine/backend/exl3_codec.h"
#include "engine/base/result.h"
#include "engine/format/tensor.h"

namespace hallmark {

// A block of this many bytes (a tile, in a trellis) is the unit of runs of zeros.
inline constexpr uint64_t kZeroUnit = 512;

struct ScanTarget {
  const TensorView* tensor = nullptr;
  // Of a trellis, which is cut into tiles; k2 = 0: not one.
  Exl3Rate rate = {Codebook::k3inst, 0};
  // Of a trellis [k/16, n/16, words]: n/16, and for each block of 128 outputs whether an output
  // scale is other than zero. Tiles of the other blocks reach no output and are not judged.
  int64_t tile_columns = 0;
  std::vector<bool> live;
};

struct TensorScan {
  ZeroRuns zeros;

  // Of F16, BF16 and F32.
  uint64_t values = 0;
  uint64_t not_finite = 0;
  uint64_t first_not_finite = 0;  // index of a value
  uint32_t largest_bits = 0;      // of the finite magnitude that is largest, in the tensor's type

  // Of a trellis: tiles that were judged, counted and numbered over the whole tensor.
  uint64_t tiles = 0;
  uint64_t constant = 0;  // one word all over, and the values are as large as a codebook's
  uint64_t first_constant = 0;
  uint64_t blank = 0;  // one word all over that stands for values near zero
  uint64_t first_blank = 0;
  uint64_t repeated = 0;  // equal to the tile before, and not of one word
  uint64_t first_repeated = 0;
  bool all_equal = false;  // more than one tile, each like the first
};

struct ScanOptions {
  int threads = 2;
  // Null: none. Else by path, the tensors' files among them: each gets the SHA-256 of the whole
  // file, from the same reading. The targets then come file by file, in the order of their bytes.
  std::map<std::string, std::string>* digests = nullptr;
};

// One scan a target. kIo when a file cannot be read or ends early.
Result<std::vector<TensorScan>> ScanTensors(std::span<const ScanTarget> targets,
                                            const ScanOptions& options,
                                            const StepProgress& progress);

}  // namespace hallmark

#endif  // HALLMARK_CONFORMANCE_VALIDATE_TENSOR_SCAN_H_
