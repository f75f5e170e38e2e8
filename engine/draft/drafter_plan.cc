// SPDX-License-Identifier: Apache-2.0
#include "engine/draft/drafter_plan.h"

#include <algorithm>
#include <variant>

#include "engine/backend/slab_map.h"
#include "engine/draft/draft_pass.h"
#include "engine/draft/drafter.h"

namespace hallmark {
namespace {

constexpr const char* kWeights = "drafter.weights";
constexpr const char* kScratch = "drafter.scratch";

uint64_t Floats(int64_t rows, int64_t cols) {
  return static_cast<uint64_t>(rows) * static_cast<uint64_t>(cols) * sizeof(float);
}

class Planner {
 public:
  Planner(const DrafterInventory& inventory, const DrafterConfig& config,
          const DrafterOptions& options)
      : inventory_(inventory), config_(config), options_(options) {}

  DrafterMemory Plan(int64_t vocabulary, const std::optional<LinearSource>& target_head) {
    AddWeights();
    AddScratch(vocabulary);
    for (const LinearSource* linear : Linears(inventory_)) Need(*linear, DraftPass::kMaxRows);
    if (target_head) Need(*target_head, DraftPass::kHeadRows);
    AddContext();
    memory_.taps = static_cast<int64_t>(config_.targets.size());
    memory_.block_size = config_.block_size;
    memory_.fixed_blocks = fixed_.blocks();
    memory_.stream_blocks = stream_.blocks();
    memory_.fixed = fixed_.Take();
    memory_.per_stream = stream_.Take();
    return std::move(memory_);
  }

 private:
  void Need(const LinearSource& source, int64_t rows) {
    const auto* group = std::get_if<Exl3Group>(&source.weights);
    if (group == nullptr) return;
    memory_.split_bytes =
        std::max(memory_.split_bytes, SplitWorkspaceBytes(group->k, group->n, rows));
    memory_.rotated_bytes = std::max(memory_.rotated_bytes, RotatedBytes(group->k, rows));
  }

  void Linear(const LinearSource& source) {
    const auto* plain = std::get_if<PlainLinear>(&source.weights);
    if (plain == nullptr || !QuantizesOnLoad(*plain, options_)) {
      return fixed_.Linear(kWeights, kWeights, source);
    }
    const auto elements = static_cast<uint64_t>(plain->k) * static_cast<uint64_t>(plain->n);
    fixed_.Allocate(kWeights, elements / 2);
    // Scales and biases are widened.
    for (int i = 0; i < 2; ++i) fixed_.Allocate(kWeights, elements / kAffineGroup * sizeof(float));
  }

  void AddWeights() {
    for (const LinearSource* linear : Linears(inventory_)) Linear(*linear);
    const auto vector = [&](const TensorView& tensor) { fixed_.Vector(kWeights, tensor); };
    vector(inventory_.hidden_norm);
    vector(inventory_.norm);
    for (const DrafterLayerTensors& layer : inventory_.layers) {
      for (const TensorView* norm :
           {&layer.input_norm, &layer.post_norm, &layer.q_norm, &layer.k_norm}) {
        vector(*norm);
      }
      if (layer.attention_conv) vector(layer.attention_conv->base);
      if (layer.mlp_conv) vector(layer.mlp_conv->base);
    }
    fixed_.Allocate(kWeights, Floats(1, config_.head_dim / 2));
    if (!inventory_.selector) return;
    for (const TensorView* table :
         {&inventory_.selector->predecessor, &inventory_.selector->successor}) {
      memory_.table_bytes += AllocationBytes(table->bytes.size());
      memory_.table_blocks.push_back(table->bytes.size());
    }
    fixed_.Add("drafter.codebooks", memory_.table_bytes);
  }

  // The buffers of DraftPass::Create.
  void AddScratch(int64_t vocabulary) {
    constexpr int64_t kRows = DraftPass::kMaxRows;
    const auto allocate = [&](int64_t rows, int64_t cols) {
      fixed_.Allocate(kScratch, Floats(rows, cols));
    };
    for (int i = 0; i < 4; ++i) allocate(kRows, config_.hidden);
    for (int i = 0; i < 2; ++i) allocate(kRows, config_.query_width());
    for (int i = 0; i < 2; ++i) allocate(kRows, config_.kv_width());
    for (int i = 0; i < 2; ++i) allocate(kRows, config_.intermediate);
    allocate(DraftPass::kHeadRows, vocabulary);
    if (config_.conv) {
      allocate(kRows, config_.hidden);
      allocate(kRows, 2 * config_.conv->kernel * (config_.hidden / config_.conv->group));
    }
    if (config_.selector) {
      allocate(kRows, config_.selector->rank);
      allocate(kRows * (config_.selector->top_k + 1), config_.selector->rank);
    }
  }

  // The taps that wait, and keys and values in pages.
  void AddContext() {
    constexpr int64_t kPageRows = DraftContext::kPageRows;
    stream_.Allocate("stream.drafter", Floats(DraftContext::kPendingRows, config_.tap_width()));
    const uint64_t page =
        Floats(static_cast<int64_t>(config_.layers.size()) * 2 * kPageRows, config_.kv_width());
    const auto window = config_.widest_window();
    // Attention's scores: of one block's rows at a time, over every key that is seen.
    const int64_t vectors = config_.block_size * config_.heads;
    if (!window) {
      memory_.page_bytes =
          kKvPageTokens / kPageRows * AllocationBytes(page) + Floats(vectors, kKvPageTokens);
      return;
    }
    fixed_.Allocate(kScratch, SlabMap::GrownBytes(Floats(vectors, *window + config_.block_size)));
    // Rows that are seen and rows that were just fused, with a begun page at either end.
    const int64_t rows = *window - 1 + DraftContext::kPendingRows;
    const int64_t pages = (rows + kPageRows - 1) / kPageRows + 1;
    for (int64_t i = 0; i < pages; ++i) stream_.Allocate("stream.drafter", page);
  }

  const DrafterInventory& inventory_;
  const DrafterConfig& config_;
  const DrafterOptions& options_;
  DrafterMemory memory_;
  PartSum fixed_, stream_;
};

}  // namespace

Result<DrafterMemory> PlanDrafter(const DrafterInventory& inventory, const DrafterConfig& config,
                                  const DrafterOptions& options,
                                  const std::optional<LinearSource>& target_head) {
  const DraftVocabulary vocabulary = TRY(DraftVocabulary::Make(options.vocabulary, config.vocab));
  return Planner(inventory, config, options).Plan(vocabulary.size(), target_head);
}

}  // namespace hallmark
