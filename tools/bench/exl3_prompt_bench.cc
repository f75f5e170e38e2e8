// SPDX-License-Identifier: Apache-2.0
// Speed of the EXL3 linear for long prompts: rotation, decoding and product of 512, 2,048 and 8,192
// rows on the two large shapes of the 27B, as whole calls and step by step. Calls rotate over
// copies of the weights so that none stays in L2. TFLOP/s count the product's 2 M N K alone.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "engine/base/float_types.h"
#include "engine/base/random.h"
#include "kernels/exl3/exl3_prompt.h"

namespace hallmark {
namespace {

constexpr size_t kWeightBytes = size_t{480} << 20;  // 8 times an L2 of 60 MB
constexpr int64_t kMostRows = 8192;
constexpr int64_t kMostSide = 17408;
constexpr int64_t kRows[] = {512, 2048, 8192};
constexpr int kReplays = 7;

void Check(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return;
  ADD_FAILURE() << what << ": " << cudaGetErrorString(error);
  std::abort();
}

struct Free {
  void operator()(void* memory) const { cudaFree(memory); }
};
template <typename T>
using Memory = std::unique_ptr<T[], Free>;

template <typename T>
Memory<T> Allocate(int64_t count) {
  void* raw = nullptr;
  Check(cudaMalloc(&raw, static_cast<size_t>(count) * sizeof(T)), "cudaMalloc");
  return Memory<T>(static_cast<T*>(raw));
}

// Repeats 16 Mi random elements through `count`.
template <typename T, typename Draw>
Memory<T> Random(int64_t count, Draw draw) {
  Memory<T> memory = Allocate<T>(count);
  std::vector<T> piece(static_cast<size_t>(std::min<int64_t>(count, int64_t{16} << 20)));
  for (T& value : piece) value = draw();
  for (int64_t at = 0; at < count; at += static_cast<int64_t>(piece.size())) {
    const size_t now = std::min(piece.size(), static_cast<size_t>(count - at));
    Check(cudaMemcpy(memory.get() + at, piece.data(), now * sizeof(T), cudaMemcpyHostToDevice),
          "cudaMemcpy");
  }
  return memory;
}

class Exl3Prompt : public testing::Test {
 protected:
  Exl3Prompt() {
    Check(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "cudaStreamCreate");
    Check(cudaEventCreate(&begin_), "cudaEventCreate");
    Check(cudaEventCreate(&end_), "cudaEventCreate");
    Check(cudaMemset(overflow_.get(), 0, sizeof(int32_t)), "cudaMemset");
    Check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
  }
  ~Exl3Prompt() override {
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
    cudaStreamDestroy(stream_);
  }

  // Microseconds of one of `calls`, the median of the replays after two that warm up.
  double Time(int calls, const std::function<cudaError_t(int)>& call) {
    std::vector<float> samples;
    for (int replay = 0; replay < kReplays + 2; ++replay) {
      cudaEventRecord(begin_, stream_);
      for (int i = 0; i < calls; ++i) Check(call(i), "launch");
      cudaEventRecord(end_, stream_);
      Check(cudaStreamSynchronize(stream_), "replay");
      float milliseconds = 0;
      cudaEventElapsedTime(&milliseconds, begin_, end_);
      if (replay >= 2) samples.push_back(milliseconds);
    }
    std::nth_element(samples.begin(), samples.begin() + kReplays / 2, samples.end());
    return 1e3 * samples[kReplays / 2] / calls;
  }

  // TFLOP/s of whole calls; prints them and their steps.
  double Measure(int64_t k, int64_t n, Exl3KernelRate rate, int64_t rows) {
    const int64_t words = k * n / 64 * rate.k2;
    const int copies = static_cast<int>(
        std::clamp<int64_t>(static_cast<int64_t>(kWeightBytes) / (4 * words), 1, 8));
    const auto layer = [&](int copy) {
      return Exl3DeviceLayer{weights_.get() + copy * words, scales_.get(), nullptr, k, n};
    };
    const auto rotate = [&](int) {
      return LaunchExl3Rotate(x_.get(), rows, k, scales_.get(), k, xh_.get(), 1, overflow_.get(),
                              stream_);
    };
    const auto decode = [&](int copy) {
      return LaunchExl3Decode(rate, layer(copy), wq_.get(), stream_);
    };
    const auto multiply = [&](int copy) {
      return LaunchExl3Prompt(layer(copy), Exl3RangePlanOf(k, n), wq_.get(), xh_.get(), rows,
                              y_.get(), n, n, stream_);
    };
    const double whole = Time(copies, [&](int copy) {
      cudaError_t error = rotate(copy);
      if (error == cudaSuccess) error = decode(copy);
      return error == cudaSuccess ? multiply(copy) : error;
    });
    const double product = Time(copies, multiply);
    const double flop = 2.0 * static_cast<double>(rows) * static_cast<double>(k * n);
    std::printf("%5ld x %5ld x %5ld: %7.0f us, %4.0f TFLOP/s;", static_cast<long>(rows),
                static_cast<long>(k), static_cast<long>(n), whole, flop / whole / 1e6);
    std::printf(" rotation %5.0f, decoding %4.0f, product %7.0f us (%4.0f TFLOP/s)\n",
                Time(copies, rotate), Time(copies, decode), product, flop / product / 1e6);
    return flop / whole / 1e6;
  }

 private:
  SplitMix64 random_{1};
  Memory<uint32_t> weights_ = Random<uint32_t>(static_cast<int64_t>(kWeightBytes / 4), [&] {
    return static_cast<uint32_t>(random_.Next());
  });
  Memory<float> x_ = Random<float>(kMostRows * kMostSide, [&] { return random_.NextSigned(); });
  Memory<uint16_t> scales_ = Random<uint16_t>(kMostSide, [] { return FloatToHalf(1.0f); });
  Memory<uint16_t> xh_ =
      Allocate<uint16_t>(static_cast<int64_t>(Exl3RotatedBytes(kMostRows, kMostSide) / 2));
  Memory<uint16_t> wq_ = Allocate<uint16_t>(int64_t{5120} * kMostSide);
  Memory<float> y_ = Allocate<float>(kMostRows * kMostSide);
  Memory<int32_t> overflow_ = Allocate<int32_t>(1);
  cudaStream_t stream_ = nullptr;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
};

TEST_F(Exl3Prompt, IsATensorCoreProduct) {
  for (const Exl3KernelRate rate : {Exl3KernelRate{2, 8}, Exl3KernelRate{1, 6}}) {
    std::printf("codebook %d, %d half bits a weight\n", rate.codebook, rate.k2);
    for (const auto& [k, n] : {std::pair<int64_t, int64_t>{5120, 17408}, {17408, 5120}}) {
      for (const int64_t rows : kRows) {
        const double speed = Measure(k, n, rate, rows);
        if (rows >= 2048) {
          EXPECT_GE(speed, 180) << rows << " rows";
        }
      }
    }
  }
}

}  // namespace
}  // namespace hallmark
