// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/sampler_exact.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <nlohmann/json.hpp>

#include "conformance/cases/bits_row.h"
#include "engine/base/json.h"

namespace hallmark {
namespace {

constexpr char kClause[] = "sampler-exact";

// fp32 values from hex of their little-endian bytes; empty when the text is not that.
std::vector<float> FloatsFromHex(const std::string& hex) {
  if (hex.empty() || hex.size() % 8 != 0) return {};
  std::vector<float> values;
  for (size_t i = 0; i < hex.size(); i += 8) {
    uint32_t bytes_as_read = 0;
    const auto [end, error] =
        std::from_chars(hex.data() + i, hex.data() + i + 8, bytes_as_read, 16);
    if (error != std::errc() || end != hex.data() + i + 8) return {};
    values.push_back(std::bit_cast<float>(__builtin_bswap32(bytes_as_read)));
  }
  return values;
}

Result<SamplerDraw> ReadDraw(const Json& json, const std::string& path,
                             const std::string& pointer) {
  const auto fail = [&](const char* what) {
    return Fail(Code::kMalformed, what, {.file = path, .pointer = pointer});
  };
  for (const char* name : {"seed", "position", "top_k", "token"}) {
    if (!json.contains(name) || !json[name].is_number_integer()) return fail("expected integers");
  }
  for (const char* name : {"temperature", "top_p", "min_p"}) {
    if (!json.contains(name) || !json[name].is_number()) return fail("expected numbers");
  }
  if (!json.contains("logits_f32_hex") || !json["logits_f32_hex"].is_string()) {
    return fail("expected logits as hex");
  }
  SamplerDraw draw;
  draw.params = {.temperature = json["temperature"].get<double>(),
                 .top_k = json["top_k"].get<int64_t>(),
                 .top_p = json["top_p"].get<double>(),
                 .min_p = json["min_p"].get<double>(),
                 .seed = json["seed"].get<uint64_t>()};
  draw.position = json["position"].get<uint64_t>();
  draw.token = json["token"].get<int32_t>();
  draw.logits = FloatsFromHex(json["logits_f32_hex"].get_ref<const std::string&>());
  if (draw.logits.empty()) return fail("expected logits as hex of little-endian fp32");
  return draw;
}

Result<Row> RunDraws(const std::string& path, bool ties_only) {
  const std::vector<SamplerDraw> draws = TRY(ReadSamplerDraws(path));
  BitsRow row;
  for (size_t i = 0; i < draws.size(); ++i) {
    const SamplerDraw& draw = draws[i];
    if (ties_only && !draw.HasTies()) continue;
    const int32_t token = TRY(SampleToken(draw.logits, draw.params, draw.position));
    row.Compare(std::span<const int32_t>(&draw.token, 1), std::span<const int32_t>(&token, 1),
                "draw " + std::to_string(i));
    row.Count("draws", 1);
  }
  return row.Finish();
}

}  // namespace

bool SamplerDraw::HasTies() const {
  std::vector<float> sorted = logits;
  std::sort(sorted.begin(), sorted.end());
  return std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
}

Result<std::vector<SamplerDraw>> ReadSamplerDraws(const std::string& path) {
  const Json json = TRY(ReadJsonFile(path));
  if (!json.is_object() || !json.contains("cases") || !json["cases"].is_array() ||
      json["cases"].empty()) {
    return Fail(Code::kMalformed, "expected a list of draws", {.file = path, .pointer = "/cases"});
  }
  std::vector<SamplerDraw> draws;
  for (size_t i = 0; i < json["cases"].size(); ++i) {
    draws.push_back(TRY(ReadDraw(json["cases"][i], path, "/cases/" + std::to_string(i))));
  }
  return draws;
}

Status AddSamplerExactCases(const CaseSubject& subject, CaseRegistry& registry) {
  const std::string path = subject.golden + "/run/sampler_draws.json";
  TRY(registry.Add(kClause, "draws", [path] { return RunDraws(path, false); }));
  TRY(registry.Add(kClause, "ties", [path] { return RunDraws(path, true); }));
  return {};
}

}  // namespace hallmark
