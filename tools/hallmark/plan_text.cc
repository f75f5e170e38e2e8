// SPDX-License-Identifier: Apache-2.0
#include "tools/hallmark/plan_text.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "engine/base/json.h"
#include "tools/hallmark/report.h"

namespace hallmark {
namespace {

// What each part is, for people.
std::string_view PartName(const std::string& id) {
  static const std::map<std::string_view, std::string_view> kNames = {
      {"weights.body", "EXL3 trellises of the layers"},
      {"weights.head", "the head"},
      {"weights.scales", "EXL3 scales and biases"},
      {"weights.plain", "plain matrices of the layers"},
      {"weights.vectors", "norms, convolutions, small vectors"},
      {"embedding", "embedding"},
      {"scratch.shared", "scratch of attention, DeltaNet and MLP"},
      {"scratch.rows", "residual, normed and mixed rows, taps"},
      {"scratch.logits", "rows of logits"},
      {"workspace.rotated", "rotated inputs in fp16"},
      {"workspace.split", "partial sums of split linears, counters"},
      {"workspace.decoded", "weights of one layer in fp16, for prompts"},
      {"workspace.attention", "partial results of attention"},
      {"workspace.delta_net", "normed inputs of the delta rule"},
      {"drafter.weights", "drafter: weights"},
      {"drafter.codebooks", "drafter: codebooks"},
      {"drafter.scratch", "drafter: scratch"},
      {"slabs", "between blocks, too small for any"},
      {"kept_states", "kept states (--kept)"},
      {"runtime", "CUDA context and kernels (assumed)"},
      {"stream.state", "DeltaNet states, convolution windows"},
      {"stream.window", "records of a verify window"},
      {"stream.pages", "list of key and value pages"},
      {"stream.drafter", "drafter: keys, values, waiting taps"}};
  const auto name = kNames.find(id);
  return name == kNames.end() ? std::string_view(id) : name->second;
}

const char* KvName(KvType type) { return type == KvType::kBf16 ? "bf16" : "fp8"; }

std::string Line(std::string_view name, const std::string& value, const std::string& note = "") {
  return fmt::format("  {:<42} {:>12}{}{}\n", name, value, note.empty() ? "" : "  ", note);
}

std::string PartLines(const std::vector<PlanPart>& parts) {
  std::string text;
  for (const PlanPart& part : parts) {
    const std::string note =
        part.mapped == 0 ? "" : ByteText(part.mapped) + " of host memory, read in place";
    text += Line(PartName(part.id), ByteText(part.bytes), note);
  }
  return text;
}

Json PartsJson(const std::vector<PlanPart>& parts) {
  Json array = Json::array();
  for (const PlanPart& part : parts) {
    array.push_back({{"id", part.id}, {"bytes", part.bytes}, {"mapped", part.mapped}});
  }
  return array;
}

}  // namespace

Json PlanJson(const PlanReport& report) {
  const MemoryPlan& plan = report.plan;
  Json streams = Json::array();
  for (const PlannedStreams& fit : report.streams) {
    streams.push_back({{"context", fit.context}, {"streams", fit.streams}});
  }
  const PlannedStreams& chosen = report.chosen;
  return {{"schema", "urn:hallmark:schema:plan:v1"},
          {"directory", Utf8(report.directory)},
          {"drafter", report.drafter.empty() ? Json() : Json(Utf8(report.drafter))},
          {"budget", report.budget},
          {"settings",
           {{"kv", KvName(report.options.kv)},
            {"embedding", report.options.tables == TablePlacement::kMapped ? "mapped" : "device"},
            {"integrated", report.options.integrated},
            {"kept", report.options.kept_bytes}}},
          {"fixed", PartsJson(plan.fixed)},
          {"per_stream", PartsJson(plan.per_stream)},
          {"kv",
           {{"page_positions", kKvPageTokens},
            {"page_bytes", plan.page_bytes},
            {"bf16_position_bytes", plan.bf16_token_bytes},
            {"fp8_position_bytes", plan.fp8_token_bytes}}},
          {"totals",
           {{"fixed", plan.fixed_bytes()},
            {"model", plan.model_bytes()},
            {"per_stream", plan.stream_bytes()}}},
          {"savings",
           {{"embedding_mapping", plan.embedding_mapping_saves},
            {"codebook_mapping", plan.codebook_mapping_saves},
            {"scratch_overlap", plan.overlap_saves}}},
          {"fits", {{"one_stream_context", report.one_stream_context}, {"streams", streams}}},
          {"chosen",
           {{"streams", chosen.streams},
            {"context", chosen.context},
            {"bytes", plan.TotalBytes(chosen.streams, chosen.context)}}}};
}

std::string PlanText(const PlanReport& report) {
  const MemoryPlan& plan = report.plan;
  const bool mapped = report.options.tables == TablePlacement::kMapped;
  std::string text = report.directory;
  if (!report.drafter.empty()) text += " with " + report.drafter;
  text += fmt::format(": keys and values in {}, embedding {}, {} of device memory\n",
                      KvName(report.options.kv), mapped ? "mapped" : "on the device",
                      ByteText(report.budget));
  text += "\nonce\n" + PartLines(plan.fixed);
  text += Line("weights, scratch and drafter", ByteText(plan.model_bytes()));
  text += Line("all of it", ByteText(plan.fixed_bytes()));
  text += "\neach stream\n" + PartLines(plan.per_stream);
  text += Line("all of it", ByteText(plan.stream_bytes()));
  text += "\nkeys and values\n";
  text += Line("a position in bf16", ByteText(plan.bf16_token_bytes));
  text += Line("a position in fp8", ByteText(plan.fp8_token_bytes));
  text += Line(fmt::format("a page of {} positions", kKvPageTokens), ByteText(plan.page_bytes));

  text += "\nsaved\n";
  if (report.options.integrated) {
    text += Line("mapping the embedding", "nothing", "the device's memory is the host's");
  } else {
    const char* note = mapped ? "" : "with --embedding mapped";
    text += Line("mapping the embedding", ByteText(plan.embedding_mapping_saves), note);
    if (plan.codebook_mapping_saves > 0) {
      text += Line("and the drafter's codebooks", ByteText(plan.codebook_mapping_saves), note);
    }
  }
  text += Line("phases of a layer sharing scratch", ByteText(plan.overlap_saves));

  text += "\nwhat fits\n";
  text += Line("positions, one stream", std::to_string(report.one_stream_context),
               report.one_stream_context == plan.max_positions ? "all the model has" : "");
  for (const PlannedStreams& fit : report.streams) {
    text += Line(fmt::format("streams of {} positions", fit.context), std::to_string(fit.streams));
  }
  const PlannedStreams& chosen = report.chosen;
  text += fmt::format("\n{} stream{} of {} positions: {} of {}\n", chosen.streams,
                      chosen.streams == 1 ? "" : "s", chosen.context,
                      ByteText(plan.TotalBytes(chosen.streams, chosen.context)),
                      ByteText(report.budget));
  return text;
}

}  // namespace hallmark
