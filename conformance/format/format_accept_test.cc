// SPDX-License-Identifier: Apache-2.0
// Clause format-accept: what a checkpoint may be, and what is read from it.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <set>

#include "conformance/format/fault.h"
#include "conformance/harness/paths.h"
#include "engine/format/checkpoint.h"
#include "engine/format/exl3_group.h"
#include "engine/format/inventory.h"
#include "engine/format/quantization_config.h"
#include "engine/format/safetensors.h"

namespace hallmark {
namespace {

const std::string kDown = "model.language_model.layers.0.mlp.down_proj";

// A folder opened through all three phases, or a failed test.
struct Opened {
  std::optional<Checkpoint> checkpoint;
  std::optional<CheckpointInventory> inventory;
};
Opened Open(const std::string& folder) {
  Opened out;
  auto checkpoint = Checkpoint::Open(folder);
  EXPECT_TRUE(checkpoint.has_value()) << checkpoint.error().ToString();
  if (!checkpoint) return out;
  auto inventory = TakeInventory(*checkpoint);
  EXPECT_TRUE(inventory.has_value()) << inventory.error().ToString();
  if (!inventory) return out;
  EXPECT_TRUE(CheckFiniteScales(*inventory).has_value());
  EXPECT_TRUE(CheckFiniteMatrices(*inventory).has_value());
  out.inventory = std::move(*inventory);
  out.checkpoint = std::move(*checkpoint);
  return out;
}
Opened Open(const CheckpointWriter& writer, const SafetensorsStyle& style = {}) {
  const std::string folder = TestFolder();
  EXPECT_TRUE(writer.Write(folder, style).has_value());
  return Open(folder);
}

const Exl3Group& DownProjection(const CheckpointInventory& inventory) {
  return std::get<Exl3Group>(inventory.layers.at(0).down.weights);
}

// Every tensor and byte is bound or listed as unused.
void ExpectAllAccountedFor(const Opened& opened) {
  int64_t tensors = opened.inventory->used_tensors;
  uint64_t bytes = opened.inventory->used_bytes;
  for (const UnusedPart& part : opened.inventory->unused) {
    tensors += part.tensors;
    bytes += part.bytes;
  }
  uint64_t stored = 0;
  for (const TensorView& tensor : opened.checkpoint->tensors()) stored += tensor.bytes.size();
  EXPECT_GT(tensors, 0);
  EXPECT_EQ(tensors, static_cast<int64_t>(opened.checkpoint->tensors().size()));
  EXPECT_EQ(bytes, stored);
}

TEST(FormatAccept, GoldenModelsWithEveryTensorAccountedFor) {
  struct Golden {
    const char* folder;
    size_t layers;
    double theta;
    bool own_head;
    size_t linears;
  };
  // Six DeltaNet layers of 5 + 3 linears and two attention layers of 4 + 3, and the head.
  const Golden models[] = {{"models/scribe-11m-exl3", 8, 10000.0, true, 6 * 8 + 2 * 7 + 1},
                           {"models/prism-exl3", 8, 10000000.0, false, 6 * 8 + 2 * 7}};
  for (const Golden& golden : models) {
    SCOPED_TRACE(golden.folder);
    const Opened opened = Open(GoldenPath(golden.folder));
    ASSERT_TRUE(opened.inventory.has_value());
    ExpectAllAccountedFor(opened);
    EXPECT_EQ(opened.inventory->layers.size(), golden.layers);
    EXPECT_EQ(opened.checkpoint->config().rope_theta, golden.theta);
    EXPECT_EQ(opened.inventory->head.has_value(), golden.own_head);
    EXPECT_EQ(Linears(*opened.inventory).size(), golden.linears);
    EXPECT_TRUE(opened.inventory->notes.empty());
  }
}

TEST(FormatAccept, GoldenPrismCoversEveryCodebookAndWidth) {
  const Opened opened = Open(GoldenPath("models/prism-exl3"));
  ASSERT_TRUE(opened.inventory.has_value());
  std::set<std::pair<int, int>> pairs;
  for (const LinearSource* linear : Linears(*opened.inventory)) {
    if (const auto* group = std::get_if<Exl3Group>(&linear->weights)) {
      pairs.emplace(static_cast<int>(group->codebook), group->k2);
    }
  }
  EXPECT_EQ(pairs.size(), 27u);
}

TEST(FormatAccept, EverySpellingOfPrefixHeadAndNesting) {
  int cases = 0;
  for (const char* prefix : {"model.", "model.language_model.", "language_model.model."}) {
    for (const char* head : {"lm_head", "language_model.lm_head"}) {
      for (const bool nested : {true, false}) {
        const Opened opened =
            Open(CheckpointWriter({.nested = nested, .prefix = prefix, .head = head}));
        ASSERT_TRUE(opened.inventory.has_value());
        ExpectAllAccountedFor(opened);
        EXPECT_EQ(opened.inventory->prefix, prefix);
        EXPECT_EQ(opened.inventory->head->name(), head);
        ++cases;
      }
    }
  }
  EXPECT_EQ(cases, 12);
}

TEST(FormatAccept, EveryCodebookAndWidth) {
  int cases = 0;
  for (const Codebook codebook : {Codebook::k3inst, Codebook::kMcg, Codebook::kMul1}) {
    for (const int k2 : {2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16}) {
      if (k2 % 2 != 0 && codebook != Codebook::kMul1) continue;
      for (const bool packed : {false, true}) {
        CheckpointWriter writer(
            {.layers = 1, .k2 = k2, .codebook = codebook, .packed_signs = packed});
        writer.AddStorage();
        const Opened opened = Open(writer);
        ASSERT_TRUE(opened.inventory.has_value());
        const Exl3Group& group = DownProjection(*opened.inventory);
        EXPECT_EQ(group.codebook, codebook);
        EXPECT_EQ(group.bits(), k2 / 2.0);
        EXPECT_EQ(group.input_packed, packed);
        EXPECT_EQ(group.output_packed, packed);
        ++cases;
      }
    }
  }
  EXPECT_EQ(cases, 54);
}

TEST(FormatAccept, WidthsAndCodebooksThatDifferByTensor) {
  CheckpointWriter writer;
  writer.Tensor(kDown + ".trellis").shape = {16, 8, 40};
  writer.Tensor(kDown + ".trellis").bytes.clear();
  const std::string up = "model.language_model.layers.0.mlp.up_proj";
  writer.Rename(up + ".mul1", up + ".mcg");
  std::memcpy(writer.Tensor(up + ".mcg").bytes.data(), &kMcgMultiplier, 4);
  writer.Remove("lm_head.mul1");
  const Opened opened = Open(writer);
  ASSERT_TRUE(opened.inventory.has_value());
  EXPECT_EQ(DownProjection(*opened.inventory).bits(), 2.5);
  EXPECT_EQ(std::get<Exl3Group>(opened.inventory->layers[0].up.weights).codebook, Codebook::kMcg);
  EXPECT_EQ(std::get<Exl3Group>(opened.inventory->head->weights).codebook, Codebook::k3inst);
}

TEST(FormatAccept, MarkerOfOneItemAndBiases) {
  CheckpointWriter writer;
  writer.Tensor(kDown + ".mul1").shape = {1};
  writer.Add({.name = kDown + ".bias", .dtype = DType::kF32, .shape = {128}});
  const Opened opened = Open(writer);
  ASSERT_TRUE(opened.inventory.has_value());
  EXPECT_TRUE(DownProjection(*opened.inventory).bias.has_value());
}

TEST(FormatAccept, SizesThatAreNoMultipleOf128StoredPadded) {
  const Opened opened =
      Open(CheckpointWriter({.hidden = 200, .intermediate = 72, .vocab = 1001, .layers = 1}));
  ASSERT_TRUE(opened.inventory.has_value());
  const LinearSource& down = opened.inventory->layers[0].down;
  EXPECT_EQ(down.in_features, 72);
  EXPECT_EQ(down.out_features, 200);
  EXPECT_EQ(DownProjection(*opened.inventory).k, 128);
  EXPECT_EQ(DownProjection(*opened.inventory).n, 256);
  EXPECT_EQ(std::get<Exl3Group>(opened.inventory->head->weights).n, 1024);
}

TEST(FormatAccept, PlainWeightsOfEveryTypeInOneCheckpoint) {
  for (const DType dtype : {DType::kBF16, DType::kF16, DType::kF32}) {
    for (const DType delta : {DType::kBF16, DType::kF16, DType::kF32}) {
      const Opened opened = Open(
          CheckpointWriter({.quantized = false, .plain = dtype, .vectors = delta, .delta = delta}));
      ASSERT_TRUE(opened.inventory.has_value());
      ExpectAllAccountedFor(opened);
      const auto& down = std::get<PlainLinear>(opened.inventory->layers[0].down.weights);
      EXPECT_EQ(down.weight.dtype, dtype);
      EXPECT_EQ(down.k, 200);
      EXPECT_EQ(std::get<DeltaNetTensors>(opened.inventory->layers[0].mixer).a_log.dtype, delta);
    }
  }
}

TEST(FormatAccept, TheHeadThatIsPresentWins) {
  struct Head {
    const char* what;
    SyntheticModel model;
    std::function<void(CheckpointWriter&)> edit;
    const char* kind;
    size_t notes;
  };
  const auto flags = [](const char* root, const char* text) {
    return [=](CheckpointWriter& w) {
      w.Erase("/tie_word_embeddings");
      w.Erase("/text_config/tie_word_embeddings");
      if (*root != 0) w.Set("/tie_word_embeddings", root);
      if (*text != 0) w.Set("/text_config/tie_word_embeddings", text);
    };
  };
  const SyntheticModel tied = {.tied = true};
  const SyntheticModel plain = {.quantized_head = false};
  const Head heads[] = {
      {"untied, quantized", {}, flags("false", "false"), "exl3", 0},
      {"untied, plain", plain, flags("false", "false"), "plain", 0},
      {"says tied, quantized", {}, flags("true", "true"), "exl3", 1},
      {"says tied, plain", plain, flags("true", "true"), "plain", 1},
      {"flags disagree, quantized", {}, flags("false", "true"), "exl3", 1},
      {"no flag, quantized", {}, flags("", ""), "exl3", 0},
      {"tied at both", tied, flags("true", "true"), "tied", 0},
      {"tied at the root alone", tied, flags("true", ""), "tied", 0},
      {"tied in text_config alone", tied, flags("", "true"), "tied", 0},
  };
  for (const Head& head : heads) {
    SCOPED_TRACE(head.what);
    CheckpointWriter writer(head.model);
    head.edit(writer);
    const Opened opened = Open(writer);
    ASSERT_TRUE(opened.inventory.has_value());
    const auto& source = opened.inventory->head;
    const std::string kind = !source                                              ? "tied"
                             : std::holds_alternative<Exl3Group>(source->weights) ? "exl3"
                                                                                  : "plain";
    EXPECT_EQ(kind, head.kind);
    EXPECT_EQ(opened.inventory->notes.size(), head.notes);
  }
}

TEST(FormatAccept, PredictionHeadAndVisionAreListedAsUnused) {
  CheckpointWriter writer({.mtp = true, .visual = true});
  const Opened opened = Open(writer);
  ASSERT_TRUE(opened.inventory.has_value());
  ExpectAllAccountedFor(opened);
  EXPECT_EQ(opened.inventory->layers.size(), 4u);
  ASSERT_EQ(opened.inventory->unused.size(), 2u);
  EXPECT_EQ(opened.inventory->unused[0].prefix, "model.visual.");
  EXPECT_EQ(opened.inventory->unused[0].bytes, 9u * 32 * 2);
  EXPECT_EQ(opened.inventory->unused[1].prefix, "mtp.");
  EXPECT_EQ(opened.inventory->unused[1].tensors, 4 * 4 + 2 + 2);
}

TEST(FormatAccept, LayersByListOrByInterval) {
  const auto kinds = [](const Opened& opened) {
    std::string text;
    for (const LayerTensors& layer : opened.inventory->layers) {
      text += layer.kind() == LayerKind::kAttention ? 'A' : 'D';
    }
    return text;
  };
  EXPECT_EQ(kinds(Open(CheckpointWriter({.layers = 6, .interval = 3}))), "DDADDA");
  EXPECT_EQ(kinds(Open(CheckpointWriter({.layers = 6, .interval = 3, .layer_types = false}))),
            "DDADDA");
  // The list is the authority: the interval beside it is not consulted.
  CheckpointWriter writer({.layers = 4});
  writer.Set("/text_config/full_attention_interval", "2");
  EXPECT_EQ(kinds(Open(writer)), "DDDA");
}

TEST(FormatAccept, RopeSettingsAtEitherPlace) {
  struct Rope {
    const char* what;
    std::function<void(CheckpointWriter&)> edit;
    double theta;
    int rotary;
  };
  const std::string text = "/text_config/";
  const std::string inner = "/text_config/rope_parameters";
  const Rope cases[] = {
      {"in rope_parameters", [](CheckpointWriter&) {}, 1e7, 32},
      {"at text level",
       [=](CheckpointWriter& w) {
         w.Erase(inner);
         w.Set(text + "rope_theta", "5000000.0");
         w.Set(text + "partial_rotary_factor", "0.5");
         w.Set(text + "mrope_section", "[12,10,10]");
         w.Set(text + "rope_type", "\"default\"");
       },
       5e6, 64},
      {"at both with one value",
       [=](CheckpointWriter& w) {
         w.Set(text + "rope_theta", "1e7");
         w.Set(text + "partial_rotary_factor", "0.25");
       },
       1e7, 32},
      {"nowhere: the reference's defaults", [=](CheckpointWriter& w) { w.Erase(inner); }, 1e4, 32},
      {"null", [=](CheckpointWriter& w) { w.Set(inner, "null"); }, 1e4, 32},
      {"the whole head",
       [=](CheckpointWriter& w) {
         w.Set(inner + "/partial_rotary_factor", "1.0");
         w.Erase(inner + "/mrope_section");
       },
       1e7, 128},
  };
  for (const Rope& rope : cases) {
    SCOPED_TRACE(rope.what);
    CheckpointWriter writer({.layers = 1});
    rope.edit(writer);
    const Opened opened = Open(writer);
    ASSERT_TRUE(opened.checkpoint.has_value());
    EXPECT_EQ(opened.checkpoint->config().rope_theta, rope.theta);
    EXPECT_EQ(opened.checkpoint->config().rotary_dim, rope.rotary);
  }
}

TEST(FormatAccept, StopIdsOfEveryPlaceAreMerged) {
  CheckpointWriter writer({.layers = 1});
  writer.Set("/eos_token_id", "[7, 9]");
  writer.Set("/text_config/eos_token_id", "3");
  writer.SetDocument("generation_config.json", R"({"eos_token_id": [3, 299], "top_k": 20})");
  const Opened opened = Open(writer);
  ASSERT_TRUE(opened.checkpoint.has_value());
  const StopIds& stops = opened.checkpoint->stop_ids();
  EXPECT_EQ(stops.values(), (std::vector<int64_t>{3, 7, 9, 299}));
  EXPECT_TRUE(stops.Contains(299));
  EXPECT_FALSE(stops.Contains(20));
  ASSERT_EQ(stops.ids[0].stated_at.size(), 2u);
  EXPECT_EQ(stops.ids[0].stated_at[0].pointer, "/text_config/eos_token_id");
  EXPECT_EQ(stops.ids[0].stated_at[1].pointer, "/eos_token_id/0");
  EXPECT_EQ(opened.checkpoint->config().eos, (std::vector<int64_t>{3, 7, 9}));
}

TEST(FormatAccept, AnyConverterVersionAndUnknownKeys) {
  for (const char* version : {"\"0.0.1\"", "\"1.6.0.test\"", "\"99.0\"", "null"}) {
    CheckpointWriter writer({.layers = 1});
    writer.Set("/quantization_config/version", version);
    writer.Set("/quantization_config/checkpoint_format", "\"exl3\"");
    writer.Set("/quantization_config/group_size", "-1");
    writer.Set("/quantization_config/head_bits", "16");
    writer.Set("/quantization_config/mtp_bits", "4");
    EXPECT_TRUE(Open(writer).inventory.has_value()) << version;
  }
}

TEST(FormatAccept, ShardsUnderAnIndex) {
  for (const int shards : {1, 2, 5}) {
    CheckpointWriter writer;
    writer.Shard(shards);
    const Opened opened = Open(writer);
    ASSERT_TRUE(opened.inventory.has_value());
    ExpectAllAccountedFor(opened);
    ASSERT_EQ(opened.checkpoint->shards().size(), static_cast<size_t>(shards));
    for (const CheckpointFile& shard : opened.checkpoint->shards()) {
      EXPECT_EQ(shard.bytes, std::filesystem::file_size(shard.path)) << shard.name;
    }
  }
}

TEST(FormatAccept, OtherSafetensorsFilesBesideTheModel) {
  CheckpointWriter writer({.layers = 1});
  const std::string folder = TestFolder();
  ASSERT_TRUE(writer.Write(folder).has_value());
  ASSERT_TRUE(WriteText(folder + "/golden.safetensors", "not read").has_value());
  EXPECT_TRUE(Open(folder).inventory.has_value());
}

TEST(FormatAccept, AFolderOfAnyName) {
  CheckpointWriter writer({.layers = 1});
  writer.Shard(2);
  std::string deep;
  for (int i = 0; i < 6; ++i) deep += "/" + std::string(200, static_cast<char>('a' + i));
  for (const std::string& name :
       {std::string("/\u043C\u043E\u0434\u0435\u043B\u044C"), std::string("/two words "),
        std::string("/back\\slash"), std::string("/%41 \"quoted\" 'names' $HOME;*"), deep}) {
    const std::string folder = TestFolder() + name;
    std::filesystem::create_directories(folder);
    ASSERT_TRUE(writer.Write(folder).has_value()) << name;
    const Opened opened = Open(folder);
    ASSERT_TRUE(opened.inventory.has_value()) << name;
    for (const CheckpointFile& shard : opened.checkpoint->shards()) {
      EXPECT_TRUE(shard.path.starts_with(folder)) << shard.path;
    }
    // And one that is not there is named as it was asked for.
    const auto absent = Checkpoint::Open(folder + "/nowhere");
    ASSERT_FALSE(absent.has_value());
    EXPECT_EQ(absent.error().code, Code::kNotFound);
    EXPECT_EQ(absent.error().where.file, folder + "/nowhere");
  }
}

TEST(FormatAccept, EveryOffsetOfTheDataSection) {
  for (size_t spaces = 0; spaces < 8; ++spaces) {
    const Opened opened = Open(CheckpointWriter({.layers = 1}), {.spaces = spaces});
    EXPECT_TRUE(opened.inventory.has_value()) << spaces;
  }
  const Opened aligned =
      Open(CheckpointWriter({.layers = 1}), {.align_data = true, .metadata = {{"format", "pt"}}});
  ASSERT_TRUE(aligned.inventory.has_value());
  EXPECT_EQ(aligned.inventory->embedding.file_offset % 8, 0u);
}

TEST(FormatAccept, HeadersOfEverySizeAroundAReadersFirstReads) {
  const std::string header = SafetensorsHeader({{.name = "a", .shape = {3}}});
  const auto read = [&](size_t length) {
    std::string padded = header;
    padded.resize(length, ' ');
    const std::string file = SafetensorsText(padded, "xyz");
    const auto table = ParseSafetensors(std::as_bytes(std::span(file)), "x");
    return table.has_value() && table->tensors.size() == 1;
  };
  int sizes = 0;
  for (const size_t middle : {size_t{4096}, size_t{65536}, size_t{100000}}) {
    for (size_t length = middle - 16; length <= middle + 16; ++length, ++sizes) {
      EXPECT_TRUE(read(length)) << length;
    }
  }
  EXPECT_EQ(sizes, 99);
  EXPECT_TRUE(read(100'000'000));
}

TEST(FormatAccept, AFileOfMetadataAlone) {
  const std::string path = TestFolder() + ".safetensors";
  ASSERT_TRUE(WriteSafetensors(path, {}, {.metadata = {{"format", "pt"}}}).has_value());
  const auto file = SafetensorsFile::Open(path);
  ASSERT_TRUE(file.has_value());
  EXPECT_TRUE(file->tensors().empty());
  EXPECT_EQ(file->metadata().at("format"), "pt");
}

TEST(FormatAccept, FiniteScalesOfEveryKind) {
  CheckpointWriter writer({.layers = 1});
  const uint16_t values[] = {0x0000, 0x8000, 0x0001, 0x83FF, 0x0400, 0x7BFF, 0xFBFF};
  std::memcpy(writer.Tensor(kDown + ".suh").bytes.data(), values, sizeof(values));
  std::memcpy(writer.Tensor("lm_head.svh").bytes.data(), values, sizeof(values));
  EXPECT_TRUE(Open(writer).inventory.has_value());
}

TEST(FormatAccept, RefusedValuesAreCountedAndTheFirstIsNamed) {
  CheckpointWriter writer({.layers = 1});
  TensorSpec& svh = writer.Tensor(kDown + ".svh");
  for (const size_t index : {5, 17, 99}) {
    const uint16_t nan = 0x7E00;
    std::memcpy(svh.bytes.data() + 2 * index, &nan, 2);
  }
  const std::string folder = TestFolder();
  ASSERT_TRUE(writer.Write(folder).has_value());
  const auto checkpoint = Checkpoint::Open(folder);
  const TensorView* view = checkpoint->Find(kDown + ".svh");
  const auto status = CheckFinite(*view);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().where.byte, view->file_offset + 10);
  EXPECT_NE(status.error().message.find("3 of 128"), std::string::npos);
}

}  // namespace
}  // namespace hallmark
