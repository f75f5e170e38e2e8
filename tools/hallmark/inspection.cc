// SPDX-License-Identifier: Apache-2.0
#include "tools/hallmark/inspection.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <tuple>

#include "engine/base/json.h"
#include "tools/hallmark/report.h"

namespace hallmark {
namespace {

constexpr uint64_t kMarkerBytes = 4;

uint64_t WeightsOf(const LinearSource& source) {
  return static_cast<uint64_t>(source.in_features) * static_cast<uint64_t>(source.out_features);
}

uint64_t BytesOf(const LinearSource& source) {
  if (const auto* plain = std::get_if<PlainLinear>(&source.weights)) {
    return plain->weight.bytes.size() + (plain->bias ? plain->bias->bytes.size() : 0);
  }
  const auto& group = std::get<Exl3Group>(source.weights);
  return group.trellis.bytes.size() + group.input_scale.bytes.size() +
         group.output_scale.bytes.size() + (group.bias ? group.bias->bytes.size() : 0) +
         (group.codebook == Codebook::k3inst ? 0 : kMarkerBytes);
}

double BitsOf(const LinearSource& source) {
  if (const auto* plain = std::get_if<PlainLinear>(&source.weights)) {
    return 8.0 * DTypeSize(plain->weight.dtype);
  }
  return std::get<Exl3Group>(source.weights).bits();
}

// Adds linears and plain tensors in binding order.
class Walk {
 public:
  explicit Walk(Inspection& into) : into_(into) {}

  void Linear(const std::string& role, const std::string& category, const LinearSource& source) {
    const LinearFacts facts{&source, role, category, BytesOf(source)};
    Category(category, WeightsOf(source), facts.bytes);
    into_.linears.push_back(facts);
  }
  void Plain(const std::string& category, const TensorView& tensor) {
    Category(category, static_cast<uint64_t>(tensor.elements()), tensor.bytes.size());
    into_.plain.push_back(&tensor);
  }

 private:
  void Category(const std::string& name, uint64_t weights, uint64_t bytes) {
    for (CategoryFacts& category : into_.categories) {
      if (category.name != name) continue;
      category.weights += weights;
      category.bytes += bytes;
      return;
    }
    into_.categories.push_back({name, weights, bytes});
  }

  Inspection& into_;
};

Json LinearJson(const LinearFacts& facts) {
  const LinearSource& source = *facts.source;
  Json json = {{"name", source.name()},      {"role", facts.role},   {"in", source.in_features},
               {"out", source.out_features}, {"bytes", facts.bytes}, {"bits", BitsOf(source)}};
  if (const auto* plain = std::get_if<PlainLinear>(&source.weights)) {
    json["kind"] = "plain";
    json["dtype"] = DTypeName(plain->weight.dtype);
    json["stored_in"] = plain->k;
    json["stored_out"] = plain->n;
    json["bias"] = plain->bias.has_value();
    return json;
  }
  const auto& group = std::get<Exl3Group>(source.weights);
  json["kind"] = "exl3";
  json["codebook"] = CodebookName(group.codebook);
  json["signs"] = group.input_packed || group.output_packed ? "packed" : "scales";
  json["stored_in"] = group.k;
  json["stored_out"] = group.n;
  json["bias"] = group.bias.has_value();
  return json;
}

Json ConfigJson(const Checkpoint& checkpoint) {
  const ModelConfig& config = checkpoint.config();
  int64_t attention = 0;
  for (const LayerKind kind : config.layers) attention += kind == LayerKind::kAttention ? 1 : 0;
  const auto layers = static_cast<int64_t>(config.layers.size());
  return {{"hidden", config.hidden},
          {"intermediate", config.intermediate},
          {"vocab", config.vocab},
          {"layers", layers},
          {"attention_layers", attention},
          {"delta_net_layers", layers - attention},
          {"heads", config.heads},
          {"kv_heads", config.kv_heads},
          {"head_dim", config.head_dim},
          {"rotary_dim", config.rotary_dim},
          {"rope_theta", config.rope_theta},
          {"linear_key_heads", config.linear_key_heads},
          {"linear_value_heads", config.linear_value_heads},
          {"max_positions", config.max_positions},
          {"stop_ids", checkpoint.stop_ids().values()}};
}

Json QuantizationJson(const std::optional<QuantizationConfig>& stated) {
  if (!stated) return Json();
  return {{"version", stated->version},
          {"bits", stated->bits ? Json(*stated->bits) : Json()},
          {"head_bits", stated->head_bits ? Json(*stated->head_bits) : Json()},
          {"codebook", stated->codebook ? Json(CodebookName(*stated->codebook)) : Json()}};
}

CategoryFacts TotalOf(const Inspection& inspection) {
  CategoryFacts total{.name = "all used"};
  for (const CategoryFacts& category : inspection.categories) {
    total.weights += category.weights;
    total.bytes += category.bytes;
  }
  return total;
}

std::string Bytes(uint64_t bytes) {
  const double value = static_cast<double>(bytes);
  if (bytes >= uint64_t{1} << 30) return fmt::format("{:.2f} GiB", value / (1 << 30));
  if (bytes >= uint64_t{1} << 20) return fmt::format("{:.2f} MiB", value / (1 << 20));
  return fmt::format("{:.1f} KiB", value / 1024);
}

// "layers.3.attention.q_gate" -> "attention.q_gate".
std::string RoleInLayer(const std::string& role) {
  if (!role.starts_with("layers.")) return role;
  return role.substr(role.find('.', 7) + 1);
}

std::string Kind(const LinearSource& source) {
  if (const auto* plain = std::get_if<PlainLinear>(&source.weights)) {
    return "plain " + std::string(DTypeName(plain->weight.dtype));
  }
  const auto& group = std::get<Exl3Group>(source.weights);
  return fmt::format("{} {:g} bits{}", CodebookName(group.codebook), group.bits(),
                     group.input_packed || group.output_packed ? ", packed signs" : "");
}

}  // namespace

Inspection Inspect(const CheckpointInventory& inventory) {
  Inspection inspection;
  Walk walk(inspection);
  walk.Plain("embedding", inventory.embedding);
  for (size_t i = 0; i < inventory.layers.size(); ++i) {
    const LayerTensors& layer = inventory.layers[i];
    const std::string at = "layers." + std::to_string(i) + ".";
    walk.Plain("norms and small tensors", layer.input_norm);
    if (const auto* mixer = std::get_if<AttentionTensors>(&layer.mixer)) {
      walk.Linear(at + "attention.q_gate", "attention", mixer->q_gate);
      walk.Linear(at + "attention.k", "attention", mixer->k);
      walk.Linear(at + "attention.v", "attention", mixer->v);
      walk.Linear(at + "attention.o", "attention", mixer->o);
      for (const TensorView* tensor : {&mixer->q_norm, &mixer->k_norm}) {
        walk.Plain("norms and small tensors", *tensor);
      }
    } else {
      const auto& delta = std::get<DeltaNetTensors>(layer.mixer);
      walk.Linear(at + "delta_net.qkv", "delta_net", delta.qkv);
      walk.Linear(at + "delta_net.z", "delta_net", delta.z);
      walk.Linear(at + "delta_net.a", "delta_net", delta.a);
      walk.Linear(at + "delta_net.b", "delta_net", delta.b);
      walk.Linear(at + "delta_net.out", "delta_net", delta.out);
      for (const TensorView* tensor : {&delta.conv, &delta.a_log, &delta.dt_bias, &delta.norm}) {
        walk.Plain("norms and small tensors", *tensor);
      }
    }
    walk.Plain("norms and small tensors", layer.post_norm);
    walk.Linear(at + "mlp.gate", "mlp", layer.gate);
    walk.Linear(at + "mlp.up", "mlp", layer.up);
    walk.Linear(at + "mlp.down", "mlp", layer.down);
  }
  walk.Plain("norms and small tensors", inventory.final_norm);
  if (inventory.head) walk.Linear("head", "head", *inventory.head);
  return inspection;
}

Json InspectionJson(const Inspection& inspection, const Checkpoint& checkpoint,
                    const CheckpointInventory& inventory) {
  Json files = Json::array();
  for (const CheckpointFile& file : checkpoint.files()) {
    files.push_back({{"name", file.name}, {"bytes", file.bytes}});
  }
  Json linears = Json::array();
  for (const LinearFacts& facts : inspection.linears) linears.push_back(LinearJson(facts));
  Json plain = Json::array();
  for (const TensorView* tensor : inspection.plain) {
    plain.push_back({{"name", tensor->name},
                     {"dtype", DTypeName(tensor->dtype)},
                     {"shape", tensor->shape},
                     {"bytes", tensor->bytes.size()}});
  }
  Json unused = Json::array();
  for (const UnusedPart& part : inventory.unused) {
    unused.push_back({{"prefix", part.prefix}, {"tensors", part.tensors}, {"bytes", part.bytes}});
  }
  Json categories = Json::array();
  for (const CategoryFacts& category : inspection.categories) {
    categories.push_back({{"name", category.name},
                          {"weights", category.weights},
                          {"bytes", category.bytes},
                          {"bits_per_weight", category.bits_per_weight()}});
  }
  uint64_t bytes = 0;
  for (const TensorView& tensor : checkpoint.tensors()) bytes += tensor.bytes.size();
  const CategoryFacts total = TotalOf(inspection);
  return {{"schema", "urn:hallmark:schema:inspect:v1"},
          {"directory", Utf8(checkpoint.folder())},
          {"config", ConfigJson(checkpoint)},
          {"quantization", QuantizationJson(checkpoint.quantization())},
          {"files", files},
          {"linears", linears},
          {"plain", plain},
          {"unused", unused},
          {"categories", categories},
          {"notes", inventory.notes},
          {"totals",
           {{"tensors", checkpoint.tensors().size()},
            {"bytes", bytes},
            {"used_tensors", inventory.used_tensors},
            {"used_bytes", inventory.used_bytes},
            {"weights", total.weights},
            {"bits_per_weight", total.bits_per_weight()}}}};
}

std::string InspectionText(const Inspection& inspection, const Checkpoint& checkpoint,
                           const CheckpointInventory& inventory) {
  const ModelConfig& config = checkpoint.config();
  int64_t attention = 0;
  for (const LayerKind kind : config.layers) attention += kind == LayerKind::kAttention ? 1 : 0;
  std::string text = fmt::format(
      "{}: qwen3_5, {} layers ({} attention, {} DeltaNet), hidden {}, MLP {}, vocabulary {}\n"
      "{} query / {} KV heads of {} (rotary {}, theta {:g}), {} key / {} value linear heads, up to "
      "{} positions\n",
      checkpoint.folder(), config.layers.size(), attention,
      static_cast<int64_t>(config.layers.size()) - attention, config.hidden, config.intermediate,
      config.vocab, config.heads, config.kv_heads, config.head_dim, config.rotary_dim,
      config.rope_theta, config.linear_key_heads, config.linear_value_heads, config.max_positions);
  if (const auto& stated = checkpoint.quantization()) {
    text += fmt::format("stated: EXL3 by version {}{}{}\n",
                        stated->version.empty() ? "unknown" : stated->version,
                        stated->bits ? fmt::format(", {:g} bits on average", *stated->bits) : "",
                        stated->head_bits ? fmt::format(", head {} bits", *stated->head_bits) : "");
  }

  text += "\nlinears\n";
  // Equal ones of all layers share a line, in the order of their first occurrence.
  std::vector<std::tuple<std::string, int64_t, int64_t, std::string>> order;
  std::map<std::tuple<std::string, int64_t, int64_t, std::string>, std::pair<int, uint64_t>> same;
  for (const LinearFacts& facts : inspection.linears) {
    const std::tuple key(RoleInLayer(facts.role), facts.source->in_features,
                         facts.source->out_features, Kind(*facts.source));
    const auto [entry, fresh] = same.try_emplace(key);
    if (fresh) order.push_back(key);
    ++entry->second.first;
    entry->second.second += facts.bytes;
  }
  for (const auto& key : order) {
    const auto& [role, in, out, kind] = key;
    text += fmt::format("  {:<20} {:>6} -> {:<7} {:<26} x{:<4} {:>11}\n", role, in, out, kind,
                        same[key].first, Bytes(same[key].second));
  }
  if (!inventory.head) text += "  head                 tied to the embedding\n";

  text += "\nby category                        weights        bytes   bits a weight\n";
  std::vector<CategoryFacts> lines = inspection.categories;
  lines.push_back(TotalOf(inspection));
  for (const CategoryFacts& category : lines) {
    text += fmt::format("  {:<26} {:>15} {:>12} {:>12.3f}\n", category.name, category.weights,
                        Bytes(category.bytes), category.bits_per_weight());
  }
  for (const UnusedPart& part : inventory.unused) {
    text += fmt::format("unused: {} tensors {}*, {}, never loaded\n", part.tensors, part.prefix,
                        Bytes(part.bytes));
  }
  for (const std::string& note : inventory.notes) text += "note: " + note + "\n";
  text += "\nfiles\n";
  for (const CheckpointFile& file : checkpoint.files()) {
    text += fmt::format("  {:<40} {:>12}\n", file.name, Bytes(file.bytes));
  }
  return text;
}

}  // namespace hallmark
