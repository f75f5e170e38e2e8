// SPDX-License-Identifier: Apache-2.0
#include "engine/model/memory_plan.h"

#include <algorithm>
#include <initializer_list>
#include <span>
#include <utility>
#include <variant>

#include "engine/backend/slab_map.h"
#include "engine/base/check.h"
#include "engine/base/checked.h"
#include "engine/model/forward.h"
#include "engine/model/geometry.h"
#include "engine/model/scratch_layout.h"
#include "engine/model/sequence.h"
#include "kernels/exl3/range_plan.h"

namespace hallmark {
namespace {

uint64_t Bytes(int64_t elements, size_t size) { return static_cast<uint64_t>(elements) * size; }

uint64_t Sum(const std::vector<PlanPart>& parts) {
  uint64_t sum = 0;
  for (const PlanPart& part : parts) sum += part.bytes;
  return sum;
}

// Normed keys and queries, decay and step of every row.
uint64_t DeltaNetWorkspaceBytes(const DeltaNetGeometry& geometry) {
  return Bytes(
      kPlannedRows * (2 * geometry.key_heads * geometry.key_dim + 2 * geometry.value_heads),
      sizeof(float));
}

static_assert(kPlannedRows == ForwardPass::kMaxRows && kPlannedRows > kTogetherRows);

// Partial results of a chunk of keys each and their running total, for every row of a pass: of one
// chunk at the least, of as many more at once as there is room for.
uint64_t AttentionWorkspace(const ModelConfig& config) {
  const uint64_t chunk = Bytes(kPlannedRows * config.heads * (config.head_dim + 2), sizeof(float));
  const int64_t chunks =
      RoundUp(config.max_positions, kAttentionChunkPositions) / kAttentionChunkPositions;
  const uint64_t all = static_cast<uint64_t>(chunks + 1) * chunk;
  return std::max(std::min(kAttentionWorkspaceBytes, all), 2 * chunk);
}

// What linears that are run in one call ask of the workspaces.
struct Needs {
  uint64_t split = 0;
  uint64_t rotated = 0;
  uint64_t decoded = 0;

  // A layer's linears, which prompts run one at a time.
  void Add(std::initializer_list<const LinearSource*> together) {
    Add(together, kTogetherRows);
    for (const LinearSource* source : together) {
      const auto* group = std::get_if<Exl3Group>(&source->weights);
      if (group == nullptr) continue;
      rotated = std::max(rotated, RotatedBytes(group->k, kPlannedRows));
      decoded = std::max(decoded, DecodedBytes(group->k, group->n));
    }
  }

  void Add(std::initializer_list<const LinearSource*> together, int64_t rows) {
    uint64_t splits = 0;
    uint64_t inputs = 0;
    for (const LinearSource* source : together) {
      const auto* group = std::get_if<Exl3Group>(&source->weights);
      if (group == nullptr) continue;
      splits += SplitWorkspaceBytes(group->k, group->n, rows);
      inputs += RotatedBytes(group->k, rows);
    }
    split = std::max(split, splits);
    rotated = std::max(rotated, inputs);
  }

  void Add(const LayerTensors& layer) {
    if (const auto* mixer = std::get_if<AttentionTensors>(&layer.mixer)) {
      Add({&mixer->q_gate, &mixer->k, &mixer->v});
      Add({&mixer->o});
    } else {
      const auto& delta = std::get<DeltaNetTensors>(layer.mixer);
      Add({&delta.qkv, &delta.z, &delta.a, &delta.b});
      Add({&delta.out});
    }
    Add({&layer.gate, &layer.up});
    Add({&layer.down});
  }
};

void AddWeights(const CheckpointInventory& inventory, const ModelConfig& config, PartSum& sum) {
  for (const LinearSource* linear : Linears(inventory)) {
    const bool head = inventory.head && linear == &*inventory.head;
    const bool plain = std::holds_alternative<PlainLinear>(linear->weights);
    sum.Linear(head    ? "weights.head"
               : plain ? "weights.plain"
                       : "weights.body",
               "weights.scales", *linear);
  }
  // The head that is the embedding is a copy of it.
  if (!inventory.head) sum.Allocate("weights.head", inventory.embedding.bytes.size());
  const auto vector = [&](const TensorView& tensor) { sum.Vector("weights.vectors", tensor); };
  for (const LayerTensors& layer : inventory.layers) {
    vector(layer.input_norm);
    vector(layer.post_norm);
    if (const auto* mixer = std::get_if<AttentionTensors>(&layer.mixer)) {
      vector(mixer->q_norm);
      vector(mixer->k_norm);
    } else {
      const auto& delta = std::get<DeltaNetTensors>(layer.mixer);
      for (const TensorView* tensor : {&delta.conv, &delta.a_log, &delta.dt_bias, &delta.norm}) {
        vector(*tensor);
      }
    }
  }
  vector(inventory.final_norm);
  sum.Allocate("weights.vectors", Bytes(config.rotary_dim / 2, sizeof(float)));
}

uint64_t ScratchBytes(const ScratchLayout& layout, PartSum* sum) {
  uint64_t total = 0;
  const auto add = [&](std::string_view id, size_t bytes) {
    total += AllocationBytes(bytes);
    if (sum != nullptr) sum->Allocate(id, bytes);
  };
  add("scratch.shared", layout.shared_bytes);
  add("scratch.rows", Bytes(kPlannedRows, sizeof(int64_t)));  // positions
  for (size_t i = 0; i < kScratchParts; ++i) {
    if (layout.slots[i].phase) continue;
    const bool logits = i == static_cast<size_t>(ScratchPart::kLogits);
    add(logits ? "scratch.logits" : "scratch.rows", layout.slots[i].bytes);
  }
  return total;
}

// Everything that Sequence and VerifyWindow hold a stream.
void AddStreamParts(const ModelConfig& config, int64_t window_rows, PartSum& sum) {
  const DeltaNetGeometry delta = DeltaNetGeometryOf(config);
  for (const LayerKind kind : config.layers) {
    if (kind != LayerKind::kDeltaNet) continue;
    sum.Allocate("stream.state", Bytes(delta.state_elements(), sizeof(float)));
    sum.Allocate("stream.state", Bytes((delta.conv_kernel - 1) * delta.channels(), sizeof(float)));
    sum.Allocate("stream.window", Bytes(window_rows * delta.channels(), sizeof(float)));
    for (int small = 0; small < 2; ++small) {  // a and b
      sum.Allocate("stream.window", Bytes(window_rows * delta.value_heads, sizeof(float)));
    }
  }
  sum.Allocate("stream.pages", Sequence::PageTableBytes(config));
}

// The arena that these allocations would fill in this order.
SlabMap SlabsOf(std::initializer_list<std::span<const uint64_t>> lists) {
  SlabMap slabs;
  uint64_t address = 0;
  for (const auto& blocks : lists) {
    for (const uint64_t bytes : blocks) {
      if (slabs.Take(bytes)) continue;
      const uint64_t slab = SlabMap::SlabFor(bytes, slabs.BlocksPerSlab(bytes));
      slabs.AddSlab(std::exchange(address, address + slab), slab);
      CHECK(slabs.Take(bytes).has_value());
    }
  }
  return slabs;
}

}  // namespace

uint64_t AllocationBytes(uint64_t bytes) { return SlabMap::BlockBytes(bytes); }

uint64_t SplitWorkspaceBytes(int64_t k, int64_t n, int64_t rows) {
  const Exl3RangePlan plan = Exl3RangePlanOf(k, n);
  if (plan.splits == 1) return 0;
  const int64_t blocks = (n + 127) / 128;
  return Bytes(plan.splits * rows * blocks * 128, sizeof(float)) + Bytes(blocks, sizeof(int32_t));
}

uint64_t RotatedBytes(int64_t k, int64_t rows) {
  return Bytes(RoundUp(rows, 8) * k, sizeof(uint16_t));
}

uint64_t DecodedBytes(int64_t k, int64_t n) { return Bytes(k * n, sizeof(uint16_t)); }

void PartSum::Add(std::string_view id, uint64_t bytes, uint64_t mapped) {
  const auto same = [&](const PlanPart& part) { return part.id == id; };
  auto part = std::find_if(parts_.begin(), parts_.end(), same);
  if (part == parts_.end()) part = parts_.insert(part, {.id = std::string(id)});
  part->bytes += bytes;
  part->mapped += mapped;
}

void PartSum::Linear(std::string_view matrix, std::string_view scales, const LinearSource& source) {
  if (const auto* group = std::get_if<Exl3Group>(&source.weights)) {
    Allocate(matrix, group->trellis.bytes.size());
    Allocate(scales, Bytes(group->k, sizeof(uint16_t)));  // packed signs are expanded
    Allocate(scales, Bytes(group->n, sizeof(uint16_t)));
    if (group->bias) Vector(scales, *group->bias);
  } else if (const auto* affine = std::get_if<AffineLinear>(&source.weights)) {
    Allocate(matrix, affine->weight.bytes.size());
    Vector(scales, affine->scales);
    Vector(scales, affine->biases);
  } else {
    const auto& plain = std::get<PlainLinear>(source.weights);
    Allocate(matrix, plain.weight.bytes.size());
    if (plain.bias) Vector(scales, *plain.bias);
  }
}

void PartSum::Vector(std::string_view id, const TensorView& tensor) {
  Allocate(id, Bytes(tensor.elements(), sizeof(float)));
}

MemoryPlan MakeMemoryPlan(const CheckpointInventory& inventory, const ModelConfig& config,
                          const DrafterMemory* drafter, const MemoryPlanOptions& options) {
  static constexpr DrafterMemory kNone;
  const DrafterMemory& draft = drafter == nullptr ? kNone : *drafter;
  MemoryPlan plan;
  const bool mapped = options.tables == TablePlacement::kMapped && !options.integrated;
  const uint64_t embedding = AllocationBytes(inventory.embedding.bytes.size());
  if (!options.integrated) {
    plan.embedding_mapping_saves = embedding;
    plan.codebook_mapping_saves = draft.table_bytes;
  }

  PartSum fixed;
  AddWeights(inventory, config, fixed);
  const size_t weights = fixed.blocks().size();
  fixed.Add("embedding", mapped ? 0 : embedding, mapped ? embedding : 0);
  ScratchBytes(LayOutScratch(config, kPlannedRows, draft.taps, options.overlap), &fixed);
  plan.overlap_saves =
      ScratchBytes(LayOutScratch(config, kPlannedRows, draft.taps, false), nullptr) -
      ScratchBytes(LayOutScratch(config, kPlannedRows, draft.taps, true), nullptr);
  Needs needs{.split = draft.split_bytes, .rotated = draft.rotated_bytes};
  for (const LayerTensors& layer : inventory.layers) needs.Add(layer);
  if (inventory.head) needs.Add({&*inventory.head}, kHeadRows);
  const auto grown = [&](std::string_view id, uint64_t bytes) {
    fixed.Allocate(id, SlabMap::GrownBytes(bytes));
  };
  grown("workspace.rotated", needs.rotated);
  grown("workspace.split", needs.split);
  grown("workspace.decoded", needs.decoded);
  grown("workspace.attention", AttentionWorkspace(config));
  grown("workspace.delta_net", DeltaNetWorkspaceBytes(DeltaNetGeometryOf(config)));
  for (const PlanPart& part : draft.fixed) {
    const bool table = mapped && part.id == "drafter.codebooks";
    fixed.Add(part.id, table ? 0 : part.bytes, table ? part.bytes : 0);
  }
  PartSum stream;
  AddStreamParts(config, std::max(kPlannedWindowRows, draft.block_size), stream);
  for (const PlanPart& part : draft.per_stream) stream.Add(part.id, part.bytes);
  plan.per_stream = stream.Take();

  // In the order in which a session that is opened and its first stream allocate.
  std::vector<uint64_t> tables;
  if (!mapped) {
    tables = draft.table_blocks;
    tables.insert(tables.begin(), inventory.embedding.bytes.size());
  }
  const std::span<const uint64_t> own = fixed.blocks();
  const SlabMap slabs = SlabsOf({tables, own.first(weights), draft.fixed_blocks,
                                 own.subspan(weights), stream.blocks(), draft.stream_blocks});
  plan.tail_bytes = slabs.largest_free_bytes();
  fixed.Add("slabs", slabs.free_bytes() - plan.tail_bytes);
  fixed.Add("kept_states", options.kept_bytes);
  fixed.Add("runtime", kRuntimeBytes);
  plan.fixed = fixed.Take();

  const auto attention = static_cast<uint64_t>(
      std::count(config.layers.begin(), config.layers.end(), LayerKind::kAttention));
  const auto page = [&](KvType type) {
    return attention * KvPageBytes(type, config.kv_heads, config.head_dim);
  };
  plan.bf16_token_bytes = page(KvType::kBf16) / kKvPageTokens;
  plan.fp8_token_bytes = page(KvType::kFp8E4m3) / kKvPageTokens;
  plan.page_bytes = AllocationBytes(page(options.kv)) + draft.page_bytes;
  plan.max_positions = config.max_positions;
  return plan;
}

uint64_t MemoryPlan::fixed_bytes() const { return Sum(fixed); }

uint64_t MemoryPlan::model_bytes() const {
  uint64_t sum = 0;
  for (const PlanPart& part : fixed) {
    if (part.id != "kept_states" && part.id != "runtime") sum += part.bytes;
  }
  return sum;
}

uint64_t MemoryPlan::stream_bytes() const { return Sum(per_stream); }

uint64_t MemoryPlan::TotalBytes(int64_t streams, int64_t context) const {
  const auto pages = static_cast<uint64_t>(RoundUp(context, kKvPageTokens) / kKvPageTokens);
  return fixed_bytes() + static_cast<uint64_t>(streams) * (stream_bytes() + pages * page_bytes);
}

uint64_t MemoryPlan::TakenBytes(int64_t streams, int64_t context) const {
  const uint64_t total = TotalBytes(streams, context);
  return std::max(total, TotalBytes(1, 0) + tail_bytes);
}

int64_t MemoryPlan::LargestContext(uint64_t budget, int64_t streams) const {
  CHECK(streams > 0);
  const uint64_t without = TotalBytes(streams, 0);
  if (without > budget) return 0;
  if (page_bytes == 0) return max_positions;
  const uint64_t pages = (budget - without) / static_cast<uint64_t>(streams) / page_bytes;
  const auto most = static_cast<uint64_t>(max_positions);
  return static_cast<int64_t>(std::min(most, pages * kKvPageTokens));
}

int64_t MemoryPlan::MostStreams(uint64_t budget, int64_t context, int64_t bound) const {
  int64_t streams = 0;
  while (streams < bound && TotalBytes(streams + 1, context) <= budget) ++streams;
  return streams;
}

}  // namespace hallmark
