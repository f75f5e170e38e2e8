// SPDX-License-Identifier: Apache-2.0
// Exl3LinearsBench: times the EXL3 linear on the shapes of the 27B, random weights and inputs, as a
// CUDA graph replayed over rotating copies of the weights so that no copy stays in L2. Times
// include the input's rotation and the output stage.
#ifndef HALLMARK_TOOLS_BENCH_EXL3_LINEARS_H_
#define HALLMARK_TOOLS_BENCH_EXL3_LINEARS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "kernels/exl3/exl3_linear.h"

namespace hallmark {

// Linears of one input, which share a launch.
struct LinearGroup {
  std::string name;
  int64_t k = 0;
  std::vector<int64_t> n;
  int times = 0;  // in one pass through the 27B
};
// Six groups of the body, 400 linears in all, then the head.
const std::vector<LinearGroup>& LinearsOf27B();

struct LinearTime {
  int64_t rows = 0;
  double microseconds = 0;  // a group, median over replays
};

class Exl3LinearsBench {
 public:
  // kDevice without a GPU.
  static Result<Exl3LinearsBench> Create();
  ~Exl3LinearsBench();
  Exl3LinearsBench(Exl3LinearsBench&& other) noexcept;

  // One group at one rate; `plan` replaces the range plans (a trial, other bits).
  Result<std::vector<LinearTime>> Time(const LinearGroup& group, Exl3KernelRate rate,
                                       const std::vector<int64_t>& rows,
                                       const Exl3RangePlan* plan = nullptr);

 private:
  struct Buffers;
  explicit Exl3LinearsBench(Buffers* buffers) : buffers_(buffers) {}
  Buffers* buffers_;
};

}  // namespace hallmark

#endif  // HALLMARK_TOOLS_BENCH_EXL3_LINEARS_H_
