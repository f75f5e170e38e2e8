// SPDX-License-Identifier: Apache-2.0
// Clause: draft-golden
// Random tiny drafters of every geometry the config allows, golden drafters' or not, against an
// independent fp64 forward pass.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <cstring>
#include <string>

#include "conformance/draft/draft_golden.h"
#include "conformance/draft/draft_reference.h"
#include "conformance/draft/loaded_drafter.h"
#include "conformance/harness/checkpoint_writer.h"
#include "conformance/harness/drafter_writer.h"
#include "conformance/harness/tolerances.h"
#include "engine/base/float_types.h"
#include "engine/base/random.h"

namespace hallmark {
namespace {

std::string Folder(const char* name) { return testing::TempDir() + "hallmark_draft_prop_" + name; }

// A plain target whose embedding and head the drafter borrows; the rest of it is never run.
const std::string& Target() {
  static const std::string folder = [] {
    SyntheticModel model;
    model.quantized = false;
    const CheckpointWriter writer(model);
    EXPECT_TRUE(writer.Write(Folder("target")).has_value());
    return Folder("target");
  }();
  return folder;
}

void ScaleBf16(TensorSpec& tensor, float factor) {
  for (size_t i = 0; i < tensor.bytes.size(); i += 2) {
    uint16_t value;
    std::memcpy(&value, tensor.bytes.data() + i, 2);
    value = FloatToBf16(Bf16ToFloat(value) * factor);
    std::memcpy(tensor.bytes.data() + i, &value, 2);
  }
}

DrafterWriter RandomDrafter() {
  SyntheticDrafter drafter;
  drafter.second = *rc::gen::arbitrary<bool>();
  drafter.layers = *rc::gen::inRange(1, 4);
  drafter.kv_heads = *rc::gen::inRange(1, 3);
  drafter.heads = drafter.kv_heads * *rc::gen::inRange(1, 4);
  drafter.head_dim = *rc::gen::element(16, 32, 64);
  drafter.block = *rc::gen::inRange(2, 9);
  drafter.window = *rc::gen::element(0, 1, 3, 8, 70);
  drafter.targets = *rc::gen::elementOf(std::vector<std::vector<int64_t>>{{0}, {2, 0}, {1, 2, 0}});
  drafter.kernel = *rc::gen::inRange(1, 5);
  drafter.top_k = *rc::gen::element(1, 2, 16, 300);
  drafter.plain = *rc::gen::element(DType::kBF16, DType::kF16, DType::kF32);
  drafter.seed = *rc::gen::arbitrary<uint32_t>();
  DrafterWriter writer(drafter);
  // A residual beyond what fp16 holds: published drafters have one.
  if (drafter.plain == DType::kBF16 && *rc::gen::arbitrary<bool>()) {
    ScaleBf16(writer.Tensor("layers.0.mlp.down_proj.weight"), 0x1p24f);
  }
  if (*rc::gen::arbitrary<bool>()) writer.Set("/is_causal", "true");
  if (*rc::gen::arbitrary<bool>()) writer.Erase("/is_causal");
  if (drafter.layers == 2 && drafter.window > 0 && *rc::gen::arbitrary<bool>()) {
    writer.Set("/layer_types", R"(["full_attention", "sliding_attention"])");
  }
  if (*rc::gen::arbitrary<bool>()) {
    writer.Set("/dflash_config/input_embedding_scale", "1.5");
    writer.Set("/dflash_config/output_multiplier", "0.25");
    writer.Set("/final_logit_softcapping", "12");
  }
  return writer;
}

RC_GTEST_PROP(TinyDrafter, RowsAndProposalsAgreeWithTheFp64Reference, ()) {
  const DrafterWriter writer = RandomDrafter();
  RC_ASSERT(writer.Write(Folder("drafter")).has_value());
  const auto loaded = LoadDrafter(Target(), Folder("drafter"), {}, {.threads = 1});
  if (!loaded) RC_FAIL(loaded.error().ToString());
  const Drafter& drafter = *loaded->drafter;
  const DrafterConfig& config = drafter.config();

  DraftWeights weights;
  for (const TensorView& tensor : loaded->checkpoint->tensors()) {
    weights[tensor.name] = ValuesOf(tensor);
  }
  weights["embedding"] = ValuesOf(loaded->target.inventory->embedding);
  weights["head"] = ValuesOf(std::get<PlainLinear>(loaded->target.inventory->head->weights).weight);

  DraftGoldenRun run;
  run.name = "tiny";
  run.length = *rc::gen::element<int64_t>(0, 1, 7, 66, 140);
  SplitMix64 random(*rc::gen::arbitrary<uint32_t>());
  for (int64_t i = 0; i < run.length * config.tap_width(); ++i) {
    run.taps.push_back(random.NextNormal());
  }
  run.anchor = *rc::gen::inRange<int32_t>(0, 300);
  const DraftReference reference = ReferenceDraft(config, weights, run.taps, run.anchor);

  auto pass = DraftPass::Create(drafter);
  auto context = DraftContext::Create(drafter);
  RC_ASSERT(pass && context);
  RC_ASSERT(AppendTaps(*pass, drafter, *context, run.taps, 50).has_value());
  const DraftRequest request{.context = &*context, .anchor = run.anchor};
  const auto proposals = pass->Propose(std::span(&request, 1), true);
  if (!proposals) RC_FAIL(proposals.error().ToString());
  const DraftProposal& proposal = proposals->front();
  RC_ASSERT(proposal.rows.size() == reference.rows.size());
  const double allowed = Tolerance("draft-tiny-rows-relative");
  const size_t hidden = static_cast<size_t>(config.hidden);
  for (size_t row = 0; row * hidden < reference.rows.size(); ++row) {
    double largest = 0.0;
    double difference = 0.0;
    for (size_t i = row * hidden; i < (row + 1) * hidden; ++i) {
      largest = std::max(largest, std::fabs(reference.rows[i]));
      difference = std::max(difference, std::fabs(reference.rows[i] - proposal.rows[i]));
    }
    RC_ASSERT(difference <= allowed * largest);
  }
  if (reference.closest > Tolerance("draft-tiny-margin")) {
    RC_TAG("proposals compared");
    RC_ASSERT(proposal.ids == reference.ids);
  }
}

}  // namespace
}  // namespace hallmark
