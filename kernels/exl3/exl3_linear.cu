// SPDX-License-Identifier: Apache-2.0
#include "kernels/exl3/exl3_linear.cuh"

#include <algorithm>

#include "kernels/exl3/exl3_rates.h"

namespace hallmark {
namespace {

int64_t BlocksOf(const Exl3Part& part) {
  return (part.columns + kExl3BlockColumns - 1) / kExl3BlockColumns;
}

bool IsValid(const Exl3Part& part, int64_t k) {
  const Exl3DeviceLayer& layer = part.layer;
  return layer.k == k && k > 0 && k % 128 == 0 && layer.n % 128 == 0 && part.plan.splits >= 1 &&
         part.plan.splits <= kExl3MaxSplits && part.plan.warps >= 1 &&
         part.plan.warps <= kExl3MaxWarps && part.plan.splits * part.plan.warps <= k / 16 &&
         part.first_column >= 0 && part.first_column % kExl3BlockColumns == 0 && part.columns > 0 &&
         part.first_column + part.columns <= layer.n;
}

bool IsTileHeight(int tile_rows) {
  return std::find(std::begin(kExl3TileRows), std::end(kExl3TileRows), tile_rows) !=
         std::end(kExl3TileRows);
}

template <int kCodebook>
cudaError_t LaunchCodebook(int k2, int tile_rows, const Exl3KernelParts& parts, dim3 grid,
                           cudaStream_t stream) {
  switch (k2) {
    case 2:
      return LaunchExl3Rate<kCodebook, 2>(tile_rows, parts, grid, stream);
    case 4:
      return LaunchExl3Rate<kCodebook, 4>(tile_rows, parts, grid, stream);
    case 6:
      return LaunchExl3Rate<kCodebook, 6>(tile_rows, parts, grid, stream);
    case 8:
      return LaunchExl3Rate<kCodebook, 8>(tile_rows, parts, grid, stream);
    case 10:
      return LaunchExl3Rate<kCodebook, 10>(tile_rows, parts, grid, stream);
    case 12:
      return LaunchExl3Rate<kCodebook, 12>(tile_rows, parts, grid, stream);
    case 14:
      return LaunchExl3Rate<kCodebook, 14>(tile_rows, parts, grid, stream);
    case 16:
      return LaunchExl3Rate<kCodebook, 16>(tile_rows, parts, grid, stream);
    default:
      break;
  }
  if constexpr (kCodebook == 2) {  // half widths are defined for mul1 alone
    switch (k2) {
      case 3:
        return LaunchExl3Rate<2, 3>(tile_rows, parts, grid, stream);
      case 5:
        return LaunchExl3Rate<2, 5>(tile_rows, parts, grid, stream);
      case 7:
        return LaunchExl3Rate<2, 7>(tile_rows, parts, grid, stream);
      default:
        break;
    }
  }
  return cudaErrorInvalidValue;
}

template <int kGroups>
size_t SharedBytes(int k2) {
  switch (k2) {
    case 2:
      return Exl3Shape<2, kGroups>::kSharedBytes;
    case 3:
      return Exl3Shape<3, kGroups>::kSharedBytes;
    case 4:
      return Exl3Shape<4, kGroups>::kSharedBytes;
    case 5:
      return Exl3Shape<5, kGroups>::kSharedBytes;
    case 6:
      return Exl3Shape<6, kGroups>::kSharedBytes;
    case 7:
      return Exl3Shape<7, kGroups>::kSharedBytes;
    case 8:
      return Exl3Shape<8, kGroups>::kSharedBytes;
    case 10:
      return Exl3Shape<10, kGroups>::kSharedBytes;
    case 12:
      return Exl3Shape<12, kGroups>::kSharedBytes;
    case 14:
      return Exl3Shape<14, kGroups>::kSharedBytes;
    case 16:
      return Exl3Shape<16, kGroups>::kSharedBytes;
    default:
      return 0;
  }
}

}  // namespace

size_t Exl3SharedBytes(Exl3KernelRate rate, int tile_rows) {
  constexpr size_t kStatic = 16;  // the election's flag
  switch (tile_rows) {
    case 8:
      return SharedBytes<1>(rate.k2) + kStatic;
    case 16:
      return SharedBytes<2>(rate.k2) + kStatic;
    case 32:
      return SharedBytes<4>(rate.k2) + kStatic;
    case 64:
      return SharedBytes<8>(rate.k2) + kStatic;
    case 128:
      return SharedBytes<16>(rate.k2) + kStatic;
    default:
      return 0;
  }
}

size_t Exl3PartialsBytes(std::span<const Exl3Part> parts, int64_t rows, int tile_rows) {
  const int64_t tile = tile_rows != 0 ? tile_rows : Exl3TileRowsFor(rows);
  const int64_t padded = (rows + tile - 1) / tile * tile;
  int64_t floats = 0;
  for (const Exl3Part& part : parts) {
    if (part.plan.splits > 1) {
      floats += padded * BlocksOf(part) * kExl3BlockColumns * part.plan.splits;
    }
  }
  return static_cast<size_t>(floats) * sizeof(float);
}

size_t Exl3CounterCount(std::span<const Exl3Part> parts, int64_t rows, int tile_rows) {
  const int64_t tile = tile_rows != 0 ? tile_rows : Exl3TileRowsFor(rows);
  int64_t count = 0;
  for (const Exl3Part& part : parts) {
    if (part.plan.splits > 1) count += (rows + tile - 1) / tile * BlocksOf(part);
  }
  return static_cast<size_t>(count);
}

cudaError_t LaunchExl3Linear(Exl3KernelRate rate, std::span<const Exl3Part> parts, int64_t rows,
                             const Exl3Workspace& workspace, cudaStream_t stream, int tile_rows) {
  if (rows == 0 || parts.empty()) return cudaSuccess;
  if (tile_rows == 0) tile_rows = Exl3TileRowsFor(rows);
  if (rows < 0 || parts.size() > kExl3MaxParts || !IsTileHeight(tile_rows)) {
    return cudaErrorInvalidValue;
  }
  const int64_t k = parts[0].layer.k;
  const int64_t tiles = (rows + tile_rows - 1) / tile_rows;
  Exl3KernelParts args = {};
  int64_t blocks = 0, counters = 0, partials = 0;
  for (const Exl3Part& part : parts) {
    if (!IsValid(part, k)) return cudaErrorInvalidValue;
    const int64_t part_blocks = BlocksOf(part);
    Exl3KernelPart& out = args.part[args.count++];
    out.trellis = part.layer.trellis;
    out.xh = static_cast<const uint2*>(part.xh);
    out.svh = part.layer.svh;
    out.bias = part.layer.bias;
    out.y = part.y;
    out.y_stride = part.y_stride;
    out.first_column = part.first_column;
    out.columns = static_cast<int32_t>(part.columns);
    out.column_tiles = static_cast<int32_t>(part.layer.n / 16);
    out.blocks = static_cast<int32_t>(part_blocks);
    out.first_block = static_cast<int32_t>(blocks);
    out.first_counter = static_cast<int32_t>(counters);
    out.splits = part.plan.splits;
    out.warps = part.plan.warps;
    out.first_partial = partials;
    blocks += part_blocks * part.plan.splits;
    if (part.plan.splits > 1) {
      counters += tiles * part_blocks;
      partials += tiles * tile_rows * part_blocks * kExl3BlockColumns * part.plan.splits;
    }
  }
  if (counters > 0 && (workspace.partials == nullptr || workspace.counters == nullptr)) {
    return cudaErrorInvalidValue;
  }
  args.k_tiles = static_cast<int32_t>(k / 16);
  args.rows = static_cast<int32_t>(rows);
  args.partials = workspace.partials;
  args.counters = workspace.counters;
  const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(tiles));
  switch (rate.codebook) {
    case 0:
      return LaunchCodebook<0>(rate.k2, tile_rows, args, grid, stream);
    case 1:
      return LaunchCodebook<1>(rate.k2, tile_rows, args, grid, stream);
    case 2:
      return LaunchCodebook<2>(rate.k2, tile_rows, args, grid, stream);
    default:
      return cudaErrorInvalidValue;
  }
}

}  // namespace hallmark
