// SPDX-License-Identifier: Apache-2.0
// Panels: a weight matrix cut into blocks of 128 inputs by 16 or 32 outputs, in the order the
// product reads them: [strip of 128 outputs][block of 128 inputs][panel of the strip]. Each panel
// is decoded once for all rows of a call. What EXL3 and plain linears share.
#ifndef HALLMARK_ENGINE_BACKEND_CPU_PANELS_H_
#define HALLMARK_ENGINE_BACKEND_CPU_PANELS_H_

#include <cstddef>
#include <cstdint>
#include <memory>

#include "engine/backend/cpu/parallel.h"
#include "engine/backend/cpu/simd/linear_loops.h"
#include "engine/backend/cpu/tier.h"
#include "engine/base/result.h"

namespace hallmark {

inline constexpr int64_t kPanelBlock = 128;
// Rows that share one decode; bounds the scratch, reaches no result.
inline constexpr int64_t kRowGroup = 64;

const LinearLoops& LinearLoopsOf(CpuTier tier);

class Panels {
 public:
  // Uninitialised panels for `inputs` by `outputs`, rounded up to whole blocks and panels.
  static Result<Panels> Make(CpuTier tier, int64_t inputs, int64_t outputs, size_t panel_bytes,
                             DecodePanelLoop decode, AddPanelLoop add);

  int64_t blocks() const { return blocks_; }
  int64_t strips() const { return (panels_ + strip_panels() - 1) / strip_panels(); }
  int64_t panels() const { return panels_; }
  size_t bytes() const { return bytes_; }
  const LinearLoops& loops() const { return *loops_; }

  // The packed bytes of panel `panel` (outputs panel * panel_columns ...) of block `block`.
  uint8_t* at(int64_t block, int64_t panel);

  // sum [rows, 128] <- x W for the columns of one strip, in panel column order; columns past the
  // last panel are left alone. x [block][rows, 128]; panel: scratch of 128 * panel_columns floats.
  void Sum(const float* x, int64_t rows, int64_t strip, float* panel, float* sum) const;

  // Reserves the scratch of one call and gives its parts: inputs [blocks][rows, 128] for the
  // caller; a panel and sums [rows, 128] for each member. rows <= kRowGroup.
  Status Reserve(int64_t rows, ThreadPool& pool) const;
  static float* Inputs(ThreadPool& pool);
  static float* SumScratch(ThreadPool& pool, int member);
  static float* PanelScratch(ThreadPool& pool, int member);

 private:
  struct Free {
    void operator()(uint8_t* data) const;
  };

  int64_t strip_panels() const { return kPanelBlock / loops_->panel_columns; }

  const LinearLoops* loops_ = nullptr;
  DecodePanelLoop decode_ = nullptr;
  AddPanelLoop add_ = nullptr;
  int64_t blocks_ = 0;
  int64_t panels_ = 0;
  size_t panel_bytes_ = 0;
  size_t bytes_ = 0;
  std::unique_ptr<uint8_t[], Free> data_;
};

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_BACKEND_CPU_PANELS_H_
