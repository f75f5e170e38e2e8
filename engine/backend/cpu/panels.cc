// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cpu/panels.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "engine/base/check.h"

namespace hallmark {
namespace {

constexpr std::align_val_t kAlignment{64};
// A decoder may read this far past its panel.
constexpr size_t kReadAhead = 64;
constexpr size_t kMaxPanelFloats = 128 * 32;

}  // namespace

const LinearLoops& LinearLoopsOf(CpuTier tier) {
#if defined(__x86_64__)
  if (tier == CpuTier::kAvx512Fp16) return Avx512Fp16LinearLoops();
  if (tier == CpuTier::kAvx512) return Avx512LinearLoops();
  if (tier == CpuTier::kAvx2) return Avx2LinearLoops();
#endif
  CHECK(tier == CpuTier::kScalar);
  return ScalarLinearLoops();
}

void Panels::Free::operator()(uint8_t* data) const { ::operator delete(data, kAlignment); }

Result<Panels> Panels::Make(CpuTier tier, int64_t inputs, int64_t outputs, size_t panel_bytes,
                            DecodePanelLoop decode, AddPanelLoop add) {
  Panels panels;
  panels.loops_ = &LinearLoopsOf(tier);
  panels.decode_ = decode;
  panels.add_ = add;
  panels.blocks_ = (inputs + kPanelBlock - 1) / kPanelBlock;
  panels.panels_ = (outputs + panels.loops_->panel_columns - 1) / panels.loops_->panel_columns;
  panels.panel_bytes_ = panel_bytes;
  const size_t used = static_cast<size_t>(panels.blocks_ * panels.panels_) * panel_bytes;
  panels.bytes_ = used + kReadAhead;
  void* data = ::operator new(panels.bytes_, kAlignment, std::nothrow);
  if (data == nullptr) {
    return Fail(Code::kResource, "no memory for " + std::to_string(panels.bytes_) + " bytes");
  }
  panels.data_.reset(static_cast<uint8_t*>(data));
  std::memset(panels.data_.get() + used, 0, kReadAhead);
  return panels;
}

uint8_t* Panels::at(int64_t block, int64_t panel) {
  const int64_t strip = panel / strip_panels();
  const int64_t in_strip = std::min(strip_panels(), panels_ - strip * strip_panels());
  const int64_t index =
      strip * strip_panels() * blocks_ + block * in_strip + panel % strip_panels();
  return data_.get() + static_cast<size_t>(index) * panel_bytes_;
}

void Panels::Sum(const float* x, int64_t rows, int64_t strip, float* panel, float* sum) const {
  const int64_t first = strip * strip_panels();
  const int64_t count = std::min(strip_panels(), panels_ - first);
  const uint8_t* packed = data_.get() + static_cast<size_t>(first * blocks_) * panel_bytes_;
  std::fill_n(sum, rows * kPanelBlock, 0.0f);
  for (int64_t block = 0; block < blocks_; ++block) {
    for (int64_t i = 0; i < count; ++i) {
      decode_(packed, panel);
      add_(panel, x, rows, sum + i * loops_->panel_columns);
      packed += panel_bytes_;
    }
    x += rows * kPanelBlock;
  }
}

Status Panels::Reserve(int64_t rows, ThreadPool& pool) const {
  const size_t row_floats = static_cast<size_t>(rows * kPanelBlock);
  return pool.Reserve(static_cast<size_t>(blocks_) * row_floats * sizeof(float),
                      (kMaxPanelFloats + row_floats) * sizeof(float));
}

float* Panels::Inputs(ThreadPool& pool) { return reinterpret_cast<float*>(pool.shared_scratch()); }

float* Panels::PanelScratch(ThreadPool& pool, int member) {
  return reinterpret_cast<float*>(pool.own_scratch(member));
}

float* Panels::SumScratch(ThreadPool& pool, int member) {
  return PanelScratch(pool, member) + kMaxPanelFloats;
}

}  // namespace hallmark
