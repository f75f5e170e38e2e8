// SPDX-License-Identifier: Apache-2.0
// Launchers of the EXL3 linear, y = ((((x * suh) H) W_q) H) * svh + bias, in two steps: the input
// is rotated and rounded to fp16 once per layer (its suh is the layer's own), then parts of up to
// three layers are multiplied in one launch. Implements clauses row-invariance, counters-zero and
// slice-equals-parent.
//
// Bits of y[row, column] depend on x[row], the layer and its stored (K, N), and on nothing else:
// not on rows, on tile height, on which columns or layers share the launch, on who arrives first.
// Order of sums: range_plan.h. Rotations: fp32 butterflies of strides 1, 2, ..., 64, then one
// multiplication by fp32(1/sqrt(128)), as engine/backend/cpu/ref/hadamard.h states them.
#ifndef HALLMARK_KERNELS_EXL3_EXL3_LINEAR_H_
#define HALLMARK_KERNELS_EXL3_EXL3_LINEAR_H_

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "kernels/exl3/range_plan.h"

namespace hallmark {

// The 27 rates: codebook 0 (3inst), 1 (mcg), 2 (mul1); k2 = twice the bits a weight, odd with mul1
// alone.
struct Exl3KernelRate {
  int codebook = 0;
  int k2 = 0;

  bool operator==(const Exl3KernelRate&) const = default;
};

// The layer as it lies in device memory.
struct Exl3DeviceLayer {
  const uint32_t* trellis = nullptr;  // [k/16, n/16, 4 k2] words, 16-byte aligned
  const uint16_t* svh = nullptr;      // fp16 [n]
  const float* bias = nullptr;        // fp32 [n], or null
  int64_t k = 0;                      // stored sizes, multiples of 128
  int64_t n = 0;
};

// Rotated inputs, fp16, in the order in which the product reads them: per 8 rows and k-tile, lane
// by lane the B fragment of mma.m16n8k16. Rows are padded to 8 by zeros.
constexpr size_t Exl3RotatedBytes(int64_t rows, int64_t k) {
  return static_cast<size_t>((rows + 7) / 8 * 8 * k) * 2;
}

// What one layer makes of the input it shares with others.
struct Exl3Rotation {
  const uint16_t* suh = nullptr;  // fp16 [k]
  void* xh = nullptr;             // Exl3RotatedBytes(rows, k)
  int32_t layer_id = 0;           // > 0
};
inline constexpr int kExl3MaxRotations = 3;

// xh <- fp16((x * suh) H) for x fp32 [rows, in_features], extended by zeros to k, for each rotation
// in one launch. A value that is not finite in fp16 sets *overflow (an int32 that the caller
// zeroed) to the rotation's layer_id, unless a smaller id is there already.
cudaError_t LaunchExl3Rotations(const float* x, int64_t rows, int64_t in_features, int64_t k,
                                std::span<const Exl3Rotation> rotations, int32_t* overflow,
                                cudaStream_t stream);
inline cudaError_t LaunchExl3Rotate(const float* x, int64_t rows, int64_t in_features,
                                    const uint16_t* suh, int64_t k, void* xh, int32_t layer_id,
                                    int32_t* overflow, cudaStream_t stream) {
  const Exl3Rotation rotation{suh, xh, layer_id};
  return LaunchExl3Rotations(x, rows, in_features, k, {&rotation, 1}, overflow, stream);
}

// Some 128-column blocks of one layer, and where their results go.
struct Exl3Part {
  Exl3DeviceLayer layer;
  Exl3RangePlan plan;        // Exl3RangePlanOf the layer's K and N: MakeExl3Part
  const void* xh = nullptr;  // rotated with the layer's suh
  int64_t first_column = 0;  // a multiple of 128
  int64_t columns = 0;       // to the end of a block, or to the layer's last real column
  float* y = nullptr;        // column first_column of row 0
  int64_t y_stride = 0;      // floats between rows
};
inline constexpr int kExl3MaxParts = 8;

constexpr Exl3Part MakeExl3Part(const Exl3DeviceLayer& layer, const void* xh, int64_t first_column,
                                int64_t columns, float* y, int64_t y_stride) {
  return {layer, Exl3RangePlanOf(layer.k, layer.n), xh, first_column, columns, y, y_stride};
}

// Rows that one block of threads takes at once; 0 lets the launcher choose by rows.
inline constexpr int kExl3TileRows[] = {8, 16, 32, 64, 128};
constexpr int Exl3TileRowsFor(int64_t rows) {
  for (const int tile : kExl3TileRows) {
    if (rows <= tile) return tile;
  }
  return 128;
}

// Partial sums and counters of one stream of execution: no two streams may share them. Every
// counter is zero before a launch, and zero again after it.
struct Exl3Workspace {
  float* partials = nullptr;
  int32_t* counters = nullptr;
};
// What a launch of these parts needs.
size_t Exl3PartialsBytes(std::span<const Exl3Part> parts, int64_t rows, int tile_rows = 0);
size_t Exl3CounterCount(std::span<const Exl3Part> parts, int64_t rows, int tile_rows = 0);

// All parts have the rate given and the same K. cudaErrorInvalidValue for a rate that does not
// exist, sizes that are no multiples of 128, too many parts, or a tile height that is not listed.
cudaError_t LaunchExl3Linear(Exl3KernelRate rate, std::span<const Exl3Part> parts, int64_t rows,
                             const Exl3Workspace& workspace, cudaStream_t stream,
                             int tile_rows = 0);

// Bytes of static and dynamic shared memory of one block, for the static contract.
size_t Exl3SharedBytes(Exl3KernelRate rate, int tile_rows);

}  // namespace hallmark

#endif  // HALLMARK_KERNELS_EXL3_EXL3_LINEAR_H_
