// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <utility>

#include "kernels/draft/top_columns.h"

namespace hallmark {
namespace {

constexpr int kThreads = 256;
constexpr int kChunk = static_cast<int>(kTopChunk);
constexpr int kPerThread = kChunk / kThreads;
constexpr unsigned kWholeWarp = 0xFFFFFFFFu;

// An entry orders as its value does, then as its column does, reversed. 0 is below every entry.
using Entry = unsigned long long;
__device__ Entry EntryOf(float value, uint32_t column) {
  uint32_t bits = std::bit_cast<uint32_t>(value);
  if (value == 0.0f) bits = 0;  // -0 equals 0
  const uint32_t rank = (bits >> 31) != 0 ? ~bits : bits | 0x80000000u;
  return static_cast<Entry>(rank) << 32 | ~column;
}
__device__ uint32_t ColumnOf(Entry entry) { return ~static_cast<uint32_t>(entry); }

// Where a pass reads its entries: logits, or what a pass before it kept.
struct LogitSource {
  const float* logits;
  __device__ Entry Get(int64_t row, int64_t entries, int64_t i) const {
    return EntryOf(logits[row * entries + i], static_cast<uint32_t>(i));
  }
};
struct KeptSource {
  const Entry* kept;
  __device__ Entry Get(int64_t row, int64_t entries, int64_t i) const {
    return kept[row * entries + i];
  }
};

// Where it leaves them: a list a chunk, or the result.
struct ListSink {
  Entry* lists;
  __device__ void Put(int64_t row, int64_t count, int i, Entry entry) const {
    lists[(row * gridDim.y + blockIdx.y) * count + i] = entry;
  }
};
struct ResultSink {
  const float* logits;
  int64_t cols;
  int32_t* columns;
  float* values;
  __device__ void Put(int64_t row, int64_t count, int i, Entry entry) const {
    const uint32_t column = ColumnOf(entry);
    columns[row * count + i] = static_cast<int32_t>(column);
    values[row * count + i] = logits[row * cols + column];
  }
};

// Descending, by a bitonic network.
__device__ void SortChunk(Entry* entries) {
  for (int size = 2; size <= kChunk; size *= 2) {
    for (int stride = size / 2; stride > 0; stride /= 2) {
      __syncthreads();
      for (int pair = threadIdx.x; pair < kChunk / 2; pair += kThreads) {
        const int low = pair / stride * 2 * stride + pair % stride;
        const int high = low + stride;
        const bool descending = (low & size) == 0;
        const Entry a = entries[low];
        const Entry b = entries[high];
        if ((a < b) == descending) {
          entries[low] = b;
          entries[high] = a;
        }
      }
    }
  }
  __syncthreads();
}

// Grid (rows, chunks).
template <typename Source, typename Sink>
__global__ void __launch_bounds__(kThreads)
    TopSortKernel(Source source, int64_t entries, int64_t count, Sink sink) {
  __shared__ Entry chunk[kChunk];
  const int64_t row = blockIdx.x;
  const int64_t first = int64_t{1} * blockIdx.y * kChunk;
  for (int i = threadIdx.x; i < kChunk; i += kThreads) {
    chunk[i] = first + i < entries ? source.Get(row, entries, first + i) : 0;
  }
  SortChunk(chunk);
  for (int i = threadIdx.x; i < count; i += kThreads) sink.Put(row, count, i, chunk[i]);
}

// The same for a count of 1: a maximum needs no order.
template <typename Source, typename Sink>
__global__ void __launch_bounds__(kThreads)
    TopOneKernel(Source source, int64_t entries, int64_t count, Sink sink) {
  __shared__ Entry highest[kThreads / 32];
  const int64_t row = blockIdx.x;
  const int64_t first = int64_t{1} * blockIdx.y * kChunk;
  Entry best = 0;
#pragma unroll
  for (int j = 0; j < kPerThread; ++j) {
    const int64_t i = first + threadIdx.x + j * kThreads;
    if (i < entries) best = max(best, source.Get(row, entries, i));
  }
  for (int step = 16; step > 0; step /= 2) {
    best = max(best, __shfl_xor_sync(kWholeWarp, best, step));
  }
  if (threadIdx.x % 32 == 0) highest[threadIdx.x / 32] = best;
  __syncthreads();
  if (threadIdx.x != 0) return;
  for (const Entry other : highest) best = max(best, other);
  sink.Put(row, count, 0, best);
}

template <typename Source, typename Sink>
cudaError_t Pass(const Source& source, int64_t rows, int64_t entries, int64_t count,
                 const Sink& sink, cudaStream_t stream) {
  constexpr int64_t kMaxChunks = 65535;
  const int64_t chunks = (entries + kTopChunk - 1) / kTopChunk;
  if (chunks > kMaxChunks) return cudaErrorInvalidValue;
  const dim3 grid(static_cast<unsigned>(rows), static_cast<unsigned>(chunks));
  const auto kernel = count == 1 ? &TopOneKernel<Source, Sink> : &TopSortKernel<Source, Sink>;
  kernel<<<grid, kThreads, 0, stream>>>(source, entries, count, sink);
  return cudaGetLastError();
}

}  // namespace

cudaError_t LaunchTopColumns(const float* logits, int64_t rows, int64_t cols, int64_t count,
                             uint64_t* scratch, int32_t* columns, float* values,
                             cudaStream_t stream) {
  constexpr int64_t kMaxCols = 65535 * kTopChunk;  // what a grid can have
  if (rows < 0 || rows > INT32_MAX || count < 1 || count > kTopMaxCount || cols < count ||
      cols > kMaxCols) {
    return cudaErrorInvalidValue;
  }
  if (rows == 0) return cudaSuccess;
  const LogitSource source{logits};
  const ResultSink result{logits, cols, columns, values};
  if (cols <= kTopChunk) return Pass(source, rows, cols, count, result, stream);

  Entry* from = reinterpret_cast<Entry*>(scratch);
  int64_t entries = TopKept(cols, count);
  cudaError_t error = Pass(source, rows, cols, count, ListSink{from}, stream);
  // Passes shrink a row 32-fold or more, and take turns in two parts of the scratch.
  Entry* to = from + rows * entries;
  while (error == cudaSuccess && entries > kTopChunk) {
    error = Pass(KeptSource{from}, rows, entries, count, ListSink{to}, stream);
    entries = TopKept(entries, count);
    std::swap(from, to);
  }
  if (error != cudaSuccess) return error;
  return Pass(KeptSource{from}, rows, entries, count, result, stream);
}

}  // namespace hallmark
