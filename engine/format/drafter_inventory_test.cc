// SPDX-License-Identifier: Apache-2.0
#include "engine/format/drafter_inventory.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <string>
#include <tuple>

#include "conformance/harness/drafter_writer.h"
#include "conformance/harness/paths.h"

namespace hallmark {
namespace {

std::string Folder() {
  const auto* test = testing::UnitTest::GetInstance()->current_test_info();
  return testing::TempDir() + "hallmark_drafter_" + test->name();
}

// Opens, sorts and reads the values of what `writer` makes.
Status Judge(const DrafterWriter& writer) {
  TRY(writer.Write(Folder()));
  const DrafterCheckpoint checkpoint = TRY(DrafterCheckpoint::Open(Folder()));
  const DrafterInventory inventory = TRY(TakeDrafterInventory(checkpoint));
  return CheckFiniteDrafter(inventory);
}

void ExpectRefused(const std::function<void(DrafterWriter&)>& plant, Code code,
                   const std::string& tensor, const SyntheticDrafter& drafter = {}) {
  DrafterWriter writer(drafter);
  const Status control = Judge(writer);
  ASSERT_TRUE(control.has_value()) << control.error().ToString();
  plant(writer);
  const Status status = Judge(writer);
  ASSERT_FALSE(status.has_value()) << tensor;
  EXPECT_EQ(status.error().code, code) << status.error().ToString();
  EXPECT_EQ(status.error().where.tensor, tensor) << status.error().ToString();
  EXPECT_FALSE(status.error().where.file.empty());
}

TEST(DrafterInventory, GivesEachRoleItsTensor) {
  const auto checkpoint = DrafterCheckpoint::Open(GoldenPath("models/scribe-11m-dflash2"));
  ASSERT_TRUE(checkpoint.has_value()) << checkpoint.error().ToString();
  const auto inventory = TakeDrafterInventory(*checkpoint);
  ASSERT_TRUE(inventory.has_value()) << inventory.error().ToString();
  EXPECT_EQ(inventory->used_tensors, 51);
  EXPECT_EQ(inventory->fc.in_features, 768);
  ASSERT_EQ(inventory->layers.size(), 3u);
  const DrafterLayerTensors& layer = inventory->layers[1];
  EXPECT_EQ(layer.o.name(), "layers.1.self_attn.o_proj");
  ASSERT_TRUE(layer.mlp_conv.has_value());
  EXPECT_EQ(layer.mlp_conv->base.name, "layers.1.mlp_conv.base_kernel");
  EXPECT_EQ(layer.mlp_conv->projection.out_features, 64);
  ASSERT_TRUE(inventory->selector.has_value());
  EXPECT_EQ(inventory->selector->predecessor.name, "candidate_selector.predecessor_codebook");
  EXPECT_EQ(Linears(*inventory).size(), 1u + 3u * 9u + 1u);
  EXPECT_TRUE(CheckFiniteDrafter(*inventory).has_value());
}

TEST(DrafterInventory, AFirstGenerationDrafterHasNeitherConvolutionNorSelector) {
  const auto checkpoint = DrafterCheckpoint::Open(GoldenPath("models/prism-dflash"));
  ASSERT_TRUE(checkpoint.has_value()) << checkpoint.error().ToString();
  const auto inventory = TakeDrafterInventory(*checkpoint);
  ASSERT_TRUE(inventory.has_value()) << inventory.error().ToString();
  EXPECT_EQ(inventory->used_tensors, 36);
  EXPECT_FALSE(inventory->selector.has_value());
  EXPECT_FALSE(inventory->layers[0].attention_conv.has_value());
}

// The public drafters' geometry, headers alone.
TEST(DrafterInventory, TheDraftersOfThe27BHaveTheirPublishedTensorsAndSize) {
  SyntheticDrafter second{.hidden = 5120,
                          .intermediate = 17408,
                          .vocab = 248320,
                          .layers = 5,
                          .heads = 32,
                          .kv_heads = 8,
                          .head_dim = 128,
                          .block = 8,
                          .window = 2048,
                          .targets = {5, 19, 33, 47, 61},
                          .target_layers = 64,
                          .rank = 256,
                          .top_k = 16,
                          .data = false};
  SyntheticDrafter first = second;
  first.second = false;
  first.block = 16;
  first.window = 0;
  first.targets = {1, 16, 31, 46, 61};
  for (const auto& [drafter, tensors, bytes] : {std::tuple{second, 81, uint64_t{3848808960}},
                                                std::tuple{first, 58, uint64_t{3460426240}}}) {
    ASSERT_TRUE(DrafterWriter(drafter).Write(Folder()).has_value());
    const auto checkpoint = DrafterCheckpoint::Open(Folder());
    ASSERT_TRUE(checkpoint.has_value()) << checkpoint.error().ToString();
    const auto inventory = TakeDrafterInventory(*checkpoint);
    ASSERT_TRUE(inventory.has_value()) << inventory.error().ToString();
    EXPECT_EQ(inventory->used_tensors, tensors);
    EXPECT_EQ(inventory->used_bytes, bytes);  // 3.849 GB and 3.22 GiB, as their cards say
    EXPECT_EQ(inventory->fc.in_features, 25600);
  }
  std::filesystem::remove_all(Folder());
}

TEST(DrafterInventory, EveryFormOfALinearIsAccepted) {
  for (const LinearForm form : {LinearForm::kPlain, LinearForm::kAffine, LinearForm::kExl3}) {
    for (const DType dtype : {DType::kBF16, DType::kF16, DType::kF32}) {
      const Status status = Judge(DrafterWriter({.form = form, .plain = dtype}));
      EXPECT_TRUE(status.has_value()) << status.error().ToString();
    }
  }
}

TEST(DrafterInventory, CodebooksMayEndInWeightAndAreThereOnce) {
  DrafterWriter writer;
  const std::string name = "candidate_selector.successor_codebook";
  TensorSpec& codebook = writer.Tensor(name);
  codebook.name += ".weight";
  EXPECT_TRUE(Judge(writer).has_value());
  TensorSpec twin = writer.Tensor(name + ".weight");
  ExpectRefused(
      [&](DrafterWriter& w) {
        twin.name = name + ".weight";
        w.Add(twin);
      },
      Code::kMismatch, name + ".weight");
}

TEST(DrafterInventory, MissingAndUnknownTensorsAreNamed) {
  for (const char* name :
       {"fc.weight", "hidden_norm.weight", "norm.weight", "layers.1.self_attn.q_norm.weight",
        "layers.0.mlp_conv.base_kernel", "candidate_selector.predecessor_codebook"}) {
    const std::string tensor = name;
    ExpectRefused([&](DrafterWriter& w) { w.Remove(tensor); }, Code::kNotFound,
                  tensor == "fc.weight" ? "fc.trellis" : tensor);
  }
  ExpectRefused(
      [](DrafterWriter& w) {
        w.Add(FloatTensor("markov_w1.weight", DType::kBF16, {4}, [](int64_t) { return 0.0f; }));
      },
      Code::kUnsupported, "markov_w1.weight");
  // A layer, a convolution or a selector that the config does not have.
  ExpectRefused(
      [](DrafterWriter& w) {
        w.Set("/num_hidden_layers", "1");
        w.Set("/layer_types", R"(["sliding_attention"])");
      },
      Code::kUnsupported, "layers.1.attention_conv.base_kernel");
}

// Other drafters bring a head, an embedding, or a table from their ids to the target's: a reader
// that passes them over drafts with the wrong ones.
TEST(DrafterInventory, AHeadAnEmbeddingOrAnIdTableOfItsOwnIsNamed) {
  const auto zeros = [](int64_t) { return 0.0f; };
  const TensorSpec own[] = {
      FloatTensor("lm_head.weight", DType::kBF16, {64, 128}, zeros),
      FloatTensor("embed_tokens.weight", DType::kBF16, {300, 128}, zeros),
      {.name = "d2t", .dtype = DType::kI64, .shape = {64}, .bytes = std::string(512, 0)},
      {.name = "t2d", .dtype = DType::kBool, .shape = {300}, .bytes = std::string(300, 0)},
      FloatTensor("candidate_selector.bias", DType::kF16, {300}, zeros)};
  for (const TensorSpec& tensor : own) {
    ExpectRefused([&](DrafterWriter& w) { w.Add(tensor); }, Code::kUnsupported, tensor.name);
  }
}

// Another spelling of a norm is both a name too few and a name too many.
TEST(DrafterInventory, ANormOfAnotherSpellingIsMissingAndUnknown) {
  ExpectRefused([](DrafterWriter& w) { w.Tensor("hidden_norm.weight").name = "enc_norm.weight"; },
                Code::kNotFound, "hidden_norm.weight");
}

TEST(DrafterInventory, AShapeOrTypeOtherThanTheConfigsIsNamed) {
  ExpectRefused(
      [](DrafterWriter& w) {
        w.Tensor("fc.weight").shape = {256, 128};
      },
      Code::kMismatch, "fc.weight");
  ExpectRefused([](DrafterWriter& w) { w.Tensor("norm.weight").dtype = DType::kI16; },
                Code::kMismatch, "norm.weight");
  ExpectRefused([](DrafterWriter& w) { w.Set("/dflash_config/selector_rank", "8"); },
                Code::kMismatch, "candidate_selector.predecessor_codebook");
  ExpectRefused([](DrafterWriter& w) { w.Set("/dflash_config/conv_kernel_size", "3"); },
                Code::kMismatch, "layers.0.attention_conv.base_kernel");
  ExpectRefused([](DrafterWriter& w) { w.Set("/dflash_config/target_layer_ids", "[0]"); },
                Code::kMismatch, "fc.weight");
}

TEST(DrafterInventory, FaultsOfAffineMatricesAreNamed) {
  const SyntheticDrafter affine{.form = LinearForm::kAffine};
  ExpectRefused([](DrafterWriter& w) { w.Remove("fc.scales"); }, Code::kNotFound, "fc.scales",
                affine);
  ExpectRefused([](DrafterWriter& w) { w.Remove("fc.biases"); }, Code::kNotFound, "fc.biases",
                affine);
  ExpectRefused(
      [](DrafterWriter& w) {
        w.Tensor("fc.scales").shape = {64, 8};
      },
      Code::kMismatch, "fc.scales", affine);
  // As many bytes, read as 8-bit words would lie.
  ExpectRefused(
      [](DrafterWriter& w) {
        w.Tensor("fc.weight").shape = {64, 64};
      },
      Code::kMismatch, "fc.weight", affine);
  ExpectRefused([](DrafterWriter& w) { w.Tensor("fc.weight").dtype = DType::kI32; },
                Code::kMismatch, "fc.weight", affine);
}

TEST(DrafterInventory, Exl3TensorsAndTheirConfigComeTogether) {
  const SyntheticDrafter exl3{.form = LinearForm::kExl3};
  ExpectRefused([](DrafterWriter& w) { w.Erase("/quantization_config"); }, Code::kMismatch,
                "fc.trellis", exl3);
  ExpectRefused([](DrafterWriter& w) { w.Remove("fc.suh"); }, Code::kNotFound, "fc.suh", exl3);
  DrafterWriter writer;
  writer.Set("/quantization_config", R"({"quant_method": "exl3", "bits": 4})");
  const Status status = Judge(writer);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, Code::kMismatch);
  EXPECT_EQ(status.error().where.pointer, "/quantization_config/quant_method");
}

TEST(DrafterInventory, AnAffineDrafterMayStateItsLayoutTwice) {
  DrafterWriter writer({.form = LinearForm::kAffine});
  writer.Set("/quantization_config", R"({"bits": 4, "group_size": 64})");
  EXPECT_TRUE(Judge(writer).has_value());
  writer.Set("/quantization_config", R"({"bits": 8, "group_size": 64})");
  const Status status = Judge(writer);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, Code::kMismatch);
  EXPECT_EQ(status.error().where.pointer, "/quantization_config");
}

TEST(DrafterInventory, AValueThatIsNotFiniteIsNamed) {
  const uint16_t nan = 0x7FC0;
  const auto poison = [&](const std::string& name) {
    return [=](DrafterWriter& w) { std::memcpy(w.Tensor(name).bytes.data() + 6, &nan, 2); };
  };
  for (const char* name :
       {"hidden_norm.weight", "norm.weight", "layers.0.input_layernorm.weight",
        "layers.1.self_attn.k_norm.weight", "layers.1.attention_conv.base_kernel",
        "layers.0.mlp_conv.base_kernel", "candidate_selector.predecessor_codebook",
        "candidate_selector.successor_codebook", "fc.weight", "layers.1.mlp.down_proj.weight",
        "layers.0.mlp_conv.kernel_projection.weight"}) {
    ExpectRefused(poison(name), Code::kOutOfRange, name);
  }
  const SyntheticDrafter affine{.form = LinearForm::kAffine};
  ExpectRefused(poison("fc.scales"), Code::kOutOfRange, "fc.scales", affine);
  ExpectRefused(poison("fc.biases"), Code::kOutOfRange, "fc.biases", affine);
  const SyntheticDrafter exl3{.form = LinearForm::kExl3};
  ExpectRefused(
      [](DrafterWriter& w) {
        const uint16_t infinity = 0x7C00;
        std::memcpy(w.Tensor("fc.svh").bytes.data(), &infinity, 2);
      },
      Code::kOutOfRange, "fc.svh", exl3);
}

TEST(DrafterInventory, ATruncatedFileOrNoFileIsRefused) {
  DrafterWriter writer;
  ASSERT_TRUE(writer.Write(Folder()).has_value());
  const std::string path = Folder() + "/model.safetensors";
  const auto size = std::filesystem::file_size(path);
  for (const auto cut : {size - 1, size / 2, uintmax_t{4}, uintmax_t{0}}) {
    std::filesystem::resize_file(path, cut);
    const auto checkpoint = DrafterCheckpoint::Open(Folder());
    ASSERT_FALSE(checkpoint.has_value()) << cut;
    EXPECT_EQ(checkpoint.error().code, Code::kMalformed) << checkpoint.error().ToString();
    EXPECT_EQ(checkpoint.error().where.file, path);
  }
  std::filesystem::remove(path);
  const auto none = DrafterCheckpoint::Open(Folder());
  ASSERT_FALSE(none.has_value());
  EXPECT_EQ(none.error().code, Code::kNotFound);
  const auto nowhere = DrafterCheckpoint::Open(Folder() + "/absent");
  ASSERT_FALSE(nowhere.has_value());
  EXPECT_EQ(nowhere.error().code, Code::kNotFound);
}

TEST(DrafterInventory, ListsEveryFaultWhenAskedTo) {
  DrafterWriter writer;
  writer.Remove("norm.weight");
  writer.Tensor("hidden_norm.weight").dtype = DType::kI16;
  writer.Tensor("fc.weight").dtype = DType::kI16;
  writer.Add({.name = "x.weight", .dtype = DType::kF16, .shape = {2}});
  ASSERT_TRUE(writer.Write(Folder()).has_value());
  const auto checkpoint = DrafterCheckpoint::Open(Folder());
  ASSERT_TRUE(checkpoint.has_value());
  TensorFaults all;
  const auto inventory = TakeDrafterInventory({.config = checkpoint->config(),
                                               .quantization = checkpoint->quantization(),
                                               .tensors = checkpoint->tensors(),
                                               .folder = checkpoint->folder()},
                                              &all);
  ASSERT_TRUE(inventory.has_value());
  ASSERT_EQ(all.faults.size(), 2u);
  EXPECT_EQ(all.faults[0].where.tensor, "fc.weight");
  EXPECT_EQ(all.faults[1].where.tensor, "hidden_norm.weight");
  EXPECT_EQ(all.missing, std::vector<std::string>{"norm.weight"});
  ASSERT_EQ(all.unknown.size(), 1u);
  EXPECT_EQ(all.unknown[0]->name, "x.weight");
}

}  // namespace
}  // namespace hallmark
