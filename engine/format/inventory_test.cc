// SPDX-License-Identifier: Apache-2.0
// Checkpoint and inventory on the golden models; the faults are in conformance/format.
#include "engine/format/inventory.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "conformance/harness/paths.h"

namespace hallmark {
namespace {

TEST(Checkpoint, ListsItsFilesAndFindsTensors) {
  const auto checkpoint = Checkpoint::Open(GoldenPath("models/scribe-11m-exl3"));
  ASSERT_TRUE(checkpoint.has_value()) << checkpoint.error().ToString();
  ASSERT_EQ(checkpoint->files().size(), 3u);
  EXPECT_EQ(checkpoint->files()[0].name, "config.json");
  EXPECT_EQ(checkpoint->files()[1].name, "model.safetensors");
  EXPECT_EQ(checkpoint->files()[2].name, "quantization_config.json");
  EXPECT_EQ(checkpoint->shards().size(), 1u);
  EXPECT_EQ(checkpoint->tensors().size(), 256u);
  EXPECT_EQ(checkpoint->WithPrefix("lm_head.").size(), 4u);
  EXPECT_EQ(checkpoint->WithPrefix("lm_headx").size(), 0u);
  EXPECT_NE(checkpoint->Find("lm_head.trellis"), nullptr);
  EXPECT_EQ(checkpoint->Find("lm_head"), nullptr);
  EXPECT_EQ(checkpoint->stop_ids().values(), std::vector<int64_t>{4070});
}

TEST(Checkpoint, ViewsSurviveAMove) {
  auto opened = Checkpoint::Open(GoldenPath("models/prism-exl3"));
  ASSERT_TRUE(opened.has_value());
  const TensorView* before = opened->Find("model.language_model.norm.weight");
  const std::byte first = before->bytes[0];
  const Checkpoint moved = std::move(*opened);
  EXPECT_EQ(moved.Find("model.language_model.norm.weight")->bytes[0], first);
}

TEST(Inventory, GivesEachRoleItsTensor) {
  const auto checkpoint = Checkpoint::Open(GoldenPath("models/prism-exl3"));
  ASSERT_TRUE(checkpoint.has_value());
  const auto inventory = TakeInventory(*checkpoint);
  ASSERT_TRUE(inventory.has_value()) << inventory.error().ToString();
  EXPECT_EQ(inventory->prefix, "model.language_model.");
  EXPECT_EQ(inventory->embedding.shape, (std::vector<int64_t>{1000, 256}));
  EXPECT_FALSE(inventory->head.has_value());
  ASSERT_EQ(inventory->layers.size(), 8u);
  const LayerTensors& delta = inventory->layers[0];
  EXPECT_EQ(delta.kind(), LayerKind::kDeltaNet);
  const auto& tensors = std::get<DeltaNetTensors>(delta.mixer);
  EXPECT_EQ(tensors.qkv.name(), "model.language_model.layers.0.linear_attn.in_proj_qkv");
  EXPECT_EQ(tensors.a.out_features, 6);
  EXPECT_TRUE(std::holds_alternative<PlainLinear>(tensors.b.weights));
  EXPECT_EQ(tensors.a_log.dtype, DType::kF32);
  EXPECT_EQ(tensors.norm.dtype, DType::kF32);
  EXPECT_EQ(tensors.conv.shape, (std::vector<int64_t>{1280, 1, 4}));
  // 600 channels, stored as 640.
  EXPECT_EQ(delta.up.out_features, 600);
  EXPECT_EQ(std::get<Exl3Group>(delta.up.weights).n, 640);
  const LayerTensors& attention = inventory->layers[3];
  EXPECT_EQ(attention.kind(), LayerKind::kAttention);
  EXPECT_EQ(std::get<AttentionTensors>(attention.mixer).q_gate.out_features, 2048);
  EXPECT_EQ(std::get<AttentionTensors>(attention.mixer).o.in_features, 1024);
  EXPECT_TRUE(std::get<Exl3Group>(attention.up.weights).input_packed);
}

TEST(Inventory, ListsEveryFaultWhenAskedTo) {
  const auto checkpoint = Checkpoint::Open(GoldenPath("models/scribe-11m-exl3"));
  ASSERT_TRUE(checkpoint.has_value());
  std::vector<TensorView> tensors(checkpoint->tensors().begin(), checkpoint->tensors().end());
  const std::string at = "model.language_model.";
  const auto find = [&tensors](const std::string& name) {
    return std::find_if(tensors.begin(), tensors.end(),
                        [&](const TensorView& tensor) { return tensor.name == name; });
  };
  find(at + "norm.weight")->shape = {255};
  find(at + "layers.0.mlp.down_proj.trellis")->dtype = DType::kU16;
  tensors.erase(find(at + "layers.0.linear_attn.A_log"));
  find("lm_head.trellis")->name = "lm_head.trelliss";  // sorted as before
  TensorFaults all;
  const auto inventory = TakeInventory({.config = checkpoint->config(),
                                        .quantization = checkpoint->quantization(),
                                        .tensors = tensors,
                                        .folder = checkpoint->folder()},
                                       &all);
  ASSERT_TRUE(inventory.has_value());
  ASSERT_EQ(all.faults.size(), 3u);
  EXPECT_EQ(all.faults[0].where.tensor, at + "layers.0.mlp.down_proj.trellis");
  EXPECT_EQ(all.faults[1].where.tensor, at + "norm.weight");
  EXPECT_EQ(all.faults[2].where.tensor, "lm_head.trelliss");
  EXPECT_EQ(all.missing, std::vector<std::string>{at + "layers.0.linear_attn.A_log"});
  EXPECT_TRUE(all.unknown.empty());
  EXPECT_GT(inventory->used_tensors, 200);
}

}  // namespace
}  // namespace hallmark
