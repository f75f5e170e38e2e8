// SPDX-License-Identifier: Apache-2.0
// Launchers of the EXL3 linear for long prompts: W_q is decoded once a call to an fp16 scratch, and
// a plain tensor-core product multiplies the rotated rows with it. Not for decoding: up to about a
// hundred rows LaunchExl3Linear is faster and needs no scratch. Implements clause row-invariance:
// y has the bits of LaunchExl3Linear for the same layer, plan and rotated rows, whatever the rows.
//
// The same bits because every output is the same sequence of operations: one mma.m16n8k16 a k-tile
// in order, from zero at each range; ranges folded from the left into splits, splits into y
// (range_plan.h); then the output's rotation, svh and bias. Decoding yields the very registers that
// the other kernel multiplies with, and a row is a column of the product, independent of the
// others.
#ifndef HALLMARK_KERNELS_EXL3_EXL3_PROMPT_H_
#define HALLMARK_KERNELS_EXL3_EXL3_PROMPT_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "kernels/exl3/exl3_linear.h"

namespace hallmark {

// The scratch of one layer. A stream of execution needs one, of its largest layer.
constexpr size_t Exl3DecodedBytes(int64_t k, int64_t n) { return static_cast<size_t>(k * n) * 2; }

// wq <- W_q as fp16, in the order in which the product reads it: [n/128, k/16, 8, 32, 8], that is
// per block of 128 columns and k-tile its 8 tiles, each lane by lane the A fragment of mma.m16n8k16
// whose rows are the tile's columns. 16-byte aligned. Reads layer.trellis, k and n alone.
// cudaErrorInvalidValue for a rate that does not exist or sizes that are no multiples of 128.
cudaError_t LaunchExl3Decode(Exl3KernelRate rate, const Exl3DeviceLayer& layer, void* wq,
                             cudaStream_t stream);

// The index in wq of the weight of one input and one output.
constexpr size_t Exl3DecodedIndex(int64_t input, int64_t output, int64_t k) {
  const int64_t in = input % 16;
  const int64_t out = output % 16;
  const int64_t tile = (output / 128 * (k / 16) + input / 16) * 8 + output % 128 / 16;
  const int64_t lane = out % 8 * 4 + in % 8 / 2;
  return static_cast<size_t>((tile * 32 + lane) * 8 + (in / 8 * 2 + out / 8) * 2 + in % 2);
}

// Columns [0, columns) of y [rows, y_stride] for rows rotated by LaunchExl3Rotate, 16-byte aligned;
// layer.trellis is not read. Cells of y between columns and y_stride are not written.
// cudaErrorInvalidValue for sizes that are no multiples of 128, a plan with more ranges than
// k-tiles, or columns outside 1..n; zero rows launch nothing.
cudaError_t LaunchExl3Prompt(const Exl3DeviceLayer& layer, Exl3RangePlan plan, const void* wq,
                             const void* xh, int64_t rows, float* y, int64_t y_stride,
                             int64_t columns, cudaStream_t stream);

// Most bytes of dynamic shared memory of one block of LaunchExl3Prompt, for the static contract.
// There is no static shared memory.
inline constexpr size_t kExl3PromptSharedBytes = 98304;

}  // namespace hallmark

#endif  // HALLMARK_KERNELS_EXL3_EXL3_PROMPT_H_
