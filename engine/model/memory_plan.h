// SPDX-License-Identifier: Apache-2.0
// MemoryPlan: every byte of device memory that a checkpoint takes, part by part, and what fits into
// a budget. From headers and configs alone: no weight is read and no device is asked. Counts what
// Model, ForwardPass, Sequence, VerifyWindow and KvPool allocate on the CUDA backend; a drafter's
// part comes from engine/draft/drafter_plan.h. Not a reservation: the driver may hold more.
#ifndef HALLMARK_ENGINE_MODEL_MEMORY_PLAN_H_
#define HALLMARK_ENGINE_MODEL_MEMORY_PLAN_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/backend/geometry.h"
#include "engine/backend/table_placement.h"
#include "engine/format/inventory.h"
#include "engine/format/model_config.h"

namespace hallmark {

// An assumption, not a measurement: what the CUDA context and the loaded kernels take.
inline constexpr uint64_t kRuntimeBytes = uint64_t{512} << 20;
// Rows of a pass, and of a verify window that a copy fills (a drafter's block may be longer).
inline constexpr int64_t kPlannedRows = 1024;
// Rows up to which linears of one input share a call and split their sums; more rows take one
// linear at a time, whose weights are decoded to scratch once (kernels/exl3/exl3_prompt.h).
inline constexpr int64_t kTogetherRows = 128;
inline constexpr int64_t kPlannedWindowRows = 16;
// Most bytes of attention's partial results; a longer context is merged segment by segment. And the
// positions of one of them.
inline constexpr uint64_t kAttentionWorkspaceBytes = uint64_t{64} << 20;
inline constexpr int64_t kAttentionChunkPositions = 512;

// What one allocation costs: steps of 256 bytes, cut from a slab. What slabs leave over is a part
// of its own, "slabs" (conformance/gpu/plan_test.cc holds the whole against a device).
uint64_t AllocationBytes(uint64_t bytes);

// Partial sums and counters that one EXL3 linear of stored sizes (k, n) needs for `rows` rows.
uint64_t SplitWorkspaceBytes(int64_t k, int64_t n, int64_t rows);
// Inputs in fp16, rotated, rows padded to 8.
uint64_t RotatedBytes(int64_t k, int64_t rows);
// W_q in fp16.
uint64_t DecodedBytes(int64_t k, int64_t n);

// A part's id is stable: "weights.body", "scratch.shared", ...
struct PlanPart {
  std::string id;
  uint64_t bytes = 0;   // of device memory
  uint64_t mapped = 0;  // of page-locked host memory that the device reads in place
};

struct MemoryPlanOptions {
  KvType kv = KvType::kBf16;
  TablePlacement tables = TablePlacement::kDevice;
  // The device's memory is the host's: what is mapped takes it all the same.
  bool integrated = false;
  bool overlap = true;  // of scratch (scratch_layout.h)
  uint64_t kept_bytes = uint64_t{1} << 30;
};

// What a drafter adds.
struct DrafterMemory {
  std::vector<PlanPart> fixed;
  std::vector<PlanPart> per_stream;
  // The same, allocation by allocation; those of the codebooks apart.
  std::vector<uint64_t> fixed_blocks, table_blocks, stream_blocks;
  uint64_t page_bytes = 0;   // a stream's context for each 256 positions, where it sees them all
  uint64_t table_bytes = 0;  // of its codebooks: among `fixed` as device memory
  uint64_t split_bytes = 0;  // largest need of one linear
  uint64_t rotated_bytes = 0;
  int64_t taps = 0;
  int64_t block_size = 0;
};

struct MemoryPlan {
  std::vector<PlanPart> fixed;       // paid once
  std::vector<PlanPart> per_stream;  // by each stream that runs
  uint64_t page_bytes = 0;           // per stream for each 256 positions
  uint64_t bf16_token_bytes = 0;     // keys and values of one position, in either type
  uint64_t fp8_token_bytes = 0;
  int64_t max_positions = 0;
  // The end of the last slab, which nothing has been cut from yet and pages are cut from first.
  uint64_t tail_bytes = 0;
  // What mapping each saves, or would save if it is not mapped: 0 on an integrated device. And what
  // sharing scratch saves or would save.
  uint64_t embedding_mapping_saves = 0;
  uint64_t codebook_mapping_saves = 0;
  uint64_t overlap_saves = 0;

  uint64_t fixed_bytes() const;
  // Weights, tables, scratch, workspaces, drafter and what slabs leave over: without kept states
  // and the runtime.
  uint64_t model_bytes() const;
  uint64_t stream_bytes() const;  // without keys and values
  // What `streams` streams of `context` positions each need.
  uint64_t TotalBytes(int64_t streams, int64_t context) const;
  // What they take where there is room: the last slab's end is taken too.
  uint64_t TakenBytes(int64_t streams, int64_t context) const;
  // The most positions that each of `streams` streams can hold in `budget` bytes, in whole pages
  // and at most max_positions; 0 when not even a page fits.
  int64_t LargestContext(uint64_t budget, int64_t streams) const;
  // The most streams of `context` positions each, at most `bound`.
  int64_t MostStreams(uint64_t budget, int64_t context, int64_t bound) const;
};

// Adds up parts of one id, in the order in which ids first occur. What whoever makes a plan uses.
class PartSum {
 public:
  void Add(std::string_view id, uint64_t bytes, uint64_t mapped = 0);
  // One allocation.
  void Allocate(std::string_view id, uint64_t bytes) {
    Add(id, AllocationBytes(bytes));
    if (bytes > 0) blocks_.push_back(bytes);
  }
  // A linear: its matrix under `matrix`, scales, biases under `scales`.
  void Linear(std::string_view matrix, std::string_view scales, const LinearSource& source);
  // A tensor widened to fp32.
  void Vector(std::string_view id, const TensorView& tensor);
  std::vector<PlanPart> Take() { return std::move(parts_); }
  // The allocations, in order.
  const std::vector<uint64_t>& blocks() const { return blocks_; }

 private:
  std::vector<PlanPart> parts_;
  std::vector<uint64_t> blocks_;
};

MemoryPlan MakeMemoryPlan(const CheckpointInventory& inventory, const ModelConfig& config,
                          const DrafterMemory* drafter, const MemoryPlanOptions& options);

}  // namespace hallmark

#endif  // HALLMARK_ENGINE_MODEL_MEMORY_PLAN_H_
