// SPDX-License-Identifier: Apache-2.0
#include "kernels/exl3/exl3_prompt.cuh"

#include "kernels/exl3/decode.cuh"

namespace hallmark {
namespace {

constexpr int kDecodeWarps = 8;

// A warp decodes the 8 tiles of one k-tile and one block of 128 columns: its reads and its writes
// are each contiguous.
template <int kCodebook, int kK2>
__global__ void __launch_bounds__(32 * kDecodeWarps)
    Exl3DecodeKernel(const uint32_t* __restrict__ trellis, int64_t column_tiles, int64_t k_tiles,
                     uint4* __restrict__ wq) {
  constexpr int kTileWords = Exl3TileWords(kK2);
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int64_t block = blockIdx.x;
  const int64_t k = static_cast<int64_t>(blockIdx.y) * kDecodeWarps + threadIdx.x / 32;
  const uint32_t* tiles = trellis + (k * column_tiles + block * 8) * kTileWords;
  uint4* to = wq + (block * k_tiles + k) * 8 * 32 + lane;
  const Exl3LaneWords<kK2> words(lane);
#pragma unroll
  for (int i = 0; i < 8; ++i) {
    uint32_t a[4];
    Exl3DecodeFragment<kCodebook, kK2>(words, tiles + i * kTileWords, a);
    to[32 * i] = make_uint4(a[0], a[1], a[2], a[3]);
  }
}

template <int kCodebook, int kK2>
cudaError_t Decode(const Exl3DeviceLayer& layer, void* wq, cudaStream_t stream) {
  const dim3 grid(static_cast<unsigned>(layer.n / 128), static_cast<unsigned>(layer.k / 128));
  Exl3DecodeKernel<kCodebook, kK2><<<grid, 32 * kDecodeWarps, 0, stream>>>(
      layer.trellis, layer.n / 16, layer.k / 16, static_cast<uint4*>(wq));
  return cudaGetLastError();
}

template <int kCodebook>
cudaError_t DecodeCodebook(int k2, const Exl3DeviceLayer& layer, void* wq, cudaStream_t stream) {
  switch (k2) {
    case 2:
      return Decode<kCodebook, 2>(layer, wq, stream);
    case 4:
      return Decode<kCodebook, 4>(layer, wq, stream);
    case 6:
      return Decode<kCodebook, 6>(layer, wq, stream);
    case 8:
      return Decode<kCodebook, 8>(layer, wq, stream);
    case 10:
      return Decode<kCodebook, 10>(layer, wq, stream);
    case 12:
      return Decode<kCodebook, 12>(layer, wq, stream);
    case 14:
      return Decode<kCodebook, 14>(layer, wq, stream);
    case 16:
      return Decode<kCodebook, 16>(layer, wq, stream);
    default:
      break;
  }
  if constexpr (kCodebook == 2) {  // half widths are defined for mul1 alone
    switch (k2) {
      case 3:
        return Decode<2, 3>(layer, wq, stream);
      case 5:
        return Decode<2, 5>(layer, wq, stream);
      case 7:
        return Decode<2, 7>(layer, wq, stream);
      default:
        break;
    }
  }
  return cudaErrorInvalidValue;
}

template <bool kSumsInY>
cudaError_t Multiply(const Exl3PromptArgs& args, cudaStream_t stream) {
  constexpr size_t kBytes = Exl3PromptLayout<kSumsInY>::kBytes;
  const cudaError_t error =
      cudaFuncSetAttribute(&Exl3PromptKernel<kSumsInY>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                           static_cast<int>(kBytes));
  if (error != cudaSuccess) return error;
  Exl3PromptKernel<kSumsInY>
      <<<static_cast<unsigned>(args.row_tiles * args.blocks), kPromptThreads, kBytes, stream>>>(
          args);
  return cudaGetLastError();
}

// 65,535 blocks fit a grid's second dimension.
bool IsLayer(const Exl3DeviceLayer& layer) {
  return layer.k > 0 && layer.k % 128 == 0 && layer.k / 128 <= 65535 && layer.n > 0 &&
         layer.n % 128 == 0 && layer.n <= INT32_MAX;
}

}  // namespace

cudaError_t LaunchExl3Decode(Exl3KernelRate rate, const Exl3DeviceLayer& layer, void* wq,
                             cudaStream_t stream) {
  if (!IsLayer(layer)) return cudaErrorInvalidValue;
  switch (rate.codebook) {
    case 0:
      return DecodeCodebook<0>(rate.k2, layer, wq, stream);
    case 1:
      return DecodeCodebook<1>(rate.k2, layer, wq, stream);
    case 2:
      return DecodeCodebook<2>(rate.k2, layer, wq, stream);
    default:
      return cudaErrorInvalidValue;
  }
}

cudaError_t LaunchExl3Prompt(const Exl3DeviceLayer& layer, Exl3RangePlan plan, const void* wq,
                             const void* xh, int64_t rows, float* y, int64_t y_stride,
                             int64_t columns, cudaStream_t stream) {
  if (rows == 0) return cudaSuccess;
  if (rows < 0 || rows > INT32_MAX - kPromptRows || !IsLayer(layer) || columns < 1 ||
      columns > layer.n || y_stride < columns || plan.splits < 1 || plan.splits > kExl3MaxSplits ||
      plan.warps < 1 || plan.warps > kExl3MaxWarps || plan.splits * plan.warps > layer.k / 16) {
    return cudaErrorInvalidValue;
  }
  const int64_t row_tiles = (rows + kPromptRows - 1) / kPromptRows;
  const int64_t blocks = (columns + kExl3BlockColumns - 1) / kExl3BlockColumns;
  if (row_tiles * blocks > INT32_MAX || blocks > INT32_MAX / kPromptBand) {
    return cudaErrorInvalidValue;
  }
  Exl3PromptArgs args = {};
  args.wq = static_cast<const uint4*>(wq);
  args.xh = static_cast<const uint4*>(xh);
  args.svh = layer.svh;
  args.bias = layer.bias;
  args.y = y;
  args.y_stride = y_stride;
  args.rows = static_cast<int32_t>(rows);
  args.columns = static_cast<int32_t>(columns);
  args.k_tiles = static_cast<int32_t>(layer.k / 16);
  args.row_tiles = static_cast<int32_t>(row_tiles);
  args.blocks = static_cast<int32_t>(blocks);
  args.splits = plan.splits;
  args.warps = plan.warps;
  args.wide_stores = y_stride % 4 == 0 && reinterpret_cast<uintptr_t>(y) % 16 == 0;
  // Sums of splits wait in y where all columns of every block are there.
  return plan.splits == 1 || columns % kExl3BlockColumns == 0 ? Multiply<true>(args, stream)
                                                              : Multiply<false>(args, stream);
}

}  // namespace hallmark
