// SPDX-License-Identifier: Apache-2.0
// The gated delta rule (Gated DeltaNet), token by token. Not for the convolution before it (conv.h)
// nor the norm after it (gated_norm.h). Implements clauses row-invariance and chunked-equals-whole,
// with the bits of the CPU backend (RefDeltaNetGate, RefL2Norm, RefDeltaNetStep).
//
// Two launches. The first makes the gates and the L2-normed q and k of every row; the second runs
// the recurrence: columns of the state do not touch each other, so 16 lanes own a column for all
// rows of the call, lane j holding key rows j, j + 16, ..., and sums over the key dimension are
// BlockedSum. Where a call begins and ends reaches no bit: the state passes through memory in fp32.
#ifndef HALLMARK_KERNELS_MIXERS_DELTA_NET_H_
#define HALLMARK_KERNELS_MIXERS_DELTA_NET_H_

#include <cuda_runtime_api.h>

#include <cstdint>

namespace hallmark {

// Key and value dimension of a head: the only one that model configs may have.
inline constexpr int kDeltaNetHeadDim = 128;

struct DeltaNetHeads {
  int key_heads = 0;    // value_heads is a multiple; value head i reads key head
  int value_heads = 0;  // i / (value_heads / key_heads)
};

// All fp32. qkv holds the convolution's output, per row [q | k | v].
struct DeltaNetInputs {
  const float* qkv = nullptr;      // [rows, (2 key_heads + value_heads) * 128]
  const float* a = nullptr;        // [rows, value_heads]
  const float* b = nullptr;        // [rows, value_heads]
  const float* a_log = nullptr;    // [value_heads]
  const float* dt_bias = nullptr;  // [value_heads]
};

// Floats of scratch for a call of `rows` rows.
constexpr int64_t DeltaNetScratchFloats(const DeltaNetHeads& heads, int64_t rows) {
  return rows * (int64_t{2} * heads.key_heads * kDeltaNetHeadDim + int64_t{2} * heads.value_heads);
}

// out [rows, value_heads * 128]; state [value_heads, 128, 128], key rows by value columns, at
// multiples of 16 bytes. state_out (may be state_in, or null: nothing is kept) receives the state
// after the last row, which is state_in if there are none. `out` and `scratch` overlap nothing.
// cudaErrorInvalidValue for heads that do not divide, misaligned states or more than 2^31 - 1 rows.
cudaError_t LaunchDeltaNet(const DeltaNetHeads& heads, const DeltaNetInputs& inputs, int64_t rows,
                           const float* state_in, float* state_out, float* scratch, float* out,
                           cudaStream_t stream);

}  // namespace hallmark

#endif  // HALLMARK_KERNELS_MIXERS_DELTA_NET_H_
