// SPDX-License-Identifier: Apache-2.0
// One launcher a rate, each in a file of its own that CMake generates (exl3_rate.cu.in), so that a
// build compiles them side by side.
#ifndef HALLMARK_KERNELS_EXL3_EXL3_RATES_H_
#define HALLMARK_KERNELS_EXL3_EXL3_RATES_H_

#include <cuda_runtime_api.h>

namespace hallmark {

struct Exl3KernelParts;

// `grid`: column blocks times splits of all parts, then row tiles.
template <int kCodebook, int kK2>
cudaError_t LaunchExl3Rate(int tile_rows, const Exl3KernelParts& parts, dim3 grid,
                           cudaStream_t stream);

}  // namespace hallmark

#endif  // HALLMARK_KERNELS_EXL3_EXL3_RATES_H_
