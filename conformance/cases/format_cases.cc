// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/format_cases.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <nlohmann/json.hpp>
#include <vector>

#include "conformance/cases/bits_row.h"
#include "engine/base/json.h"
#include "engine/format/checkpoint.h"
#include "engine/format/exl3_group.h"
#include "engine/format/inventory.h"
#include "engine/format/quantization_config.h"
#include "engine/run/session.h"

namespace hallmark {
namespace {

Result<Row> RunCheckpoint(const CaseSubject& subject) {
  const Checkpoint& checkpoint = subject.session->checkpoint();
  const CheckpointInventory& inventory = subject.session->inventory();
  std::array<uint64_t, 2> in_files{checkpoint.tensors().size(), 0};
  for (const TensorView& tensor : checkpoint.tensors()) in_files[1] += tensor.bytes.size();
  std::array<uint64_t, 2> accounted{static_cast<uint64_t>(inventory.used_tensors),
                                    inventory.used_bytes};
  for (const UnusedPart& part : inventory.unused) {
    accounted[0] += static_cast<uint64_t>(part.tensors);
    accounted[1] += part.bytes;
  }
  BitsRow row;
  row.Compare<uint64_t>(in_files, accounted,
                        "tensors and bytes in the files against those bound "
                        "or listed as unused");
  row.Count("tensors", in_files[0]);
  row.Count("used_tensors", static_cast<uint64_t>(inventory.used_tensors));
  row.Count("bytes", in_files[1]);
  row.Count("linears", Linears(inventory).size());
  return row.Finish();
}

// The tensors of one published header, with zero bytes behind them; a marker gets its multiplier.
class GroupHeader {
 public:
  // kMalformed when the header is not as the vector file describes it.
  Status Read(const Json& tensors, const Locator& where) {
    for (const auto& [suffix, tensor] : tensors.items()) {
      const bool known = tensor.is_object() && tensor.contains("dtype") &&
                         tensor["dtype"].is_string() && tensor.contains("shape") &&
                         tensor["shape"].is_array();
      const auto dtype = known ? ParseDType(tensor["dtype"].get<std::string>()) : std::nullopt;
      if (!dtype) return Fail(Code::kMalformed, "expected a dtype and a shape", where);
      TensorView view{.name = "group." + suffix, .dtype = *dtype, .file = where.file};
      size_t bytes = static_cast<size_t>(DTypeSize(*dtype));
      for (const Json& extent : tensor["shape"]) {
        if (!extent.is_number_unsigned() || extent.get<uint64_t>() > 65536) {
          return Fail(Code::kMalformed, "expected small extents", where);
        }
        view.shape.push_back(extent.get<int64_t>());
        bytes *= extent.get<size_t>();
      }
      std::vector<std::byte>& data = storage_.emplace_back(bytes);
      const uint32_t multiplier = suffix == "mcg" ? kMcgMultiplier : kMul1Multiplier;
      if ((suffix == "mcg" || suffix == "mul1") && bytes >= sizeof(multiplier)) {
        std::memcpy(data.data(), &multiplier, sizeof(multiplier));
      }
      view.bytes = data;
      views_.push_back(std::move(view));
    }
    std::sort(views_.begin(), views_.end(),
              [](const TensorView& a, const TensorView& b) { return a.name < b.name; });
    return {};
  }

  std::span<const TensorView> views() const { return views_; }

 private:
  std::deque<std::vector<std::byte>> storage_;  // addresses must not move
  std::vector<TensorView> views_;
};

Result<Row> RunGroups(const std::string& golden, std::string_view expect) {
  const std::string path = golden + "/format/exl3_vectors.json";
  const Json json = TRY(ReadJsonFile(path));
  if (!json.is_object() || !json.contains("group_cases") || !json["group_cases"].is_array()) {
    return Fail(Code::kMalformed, "expected a list of headers",
                {.file = path, .pointer = "/group_cases"});
  }
  BitsRow row;
  for (size_t i = 0; i < json["group_cases"].size(); ++i) {
    const Json& item = json["group_cases"][i];
    const Locator where{.file = path, .pointer = "/group_cases/" + std::to_string(i)};
    if (!item.is_object() || !item.contains("tensors") || !item["tensors"].is_object() ||
        !item.contains("expect") || !item["expect"].is_string()) {
      return Fail(Code::kMalformed, "expected tensors and a verdict", where);
    }
    const std::string verdict = item["expect"].get<std::string>();
    if (verdict != expect) continue;
    GroupHeader header;
    TRY(header.Read(item["tensors"], where));
    const auto group = ParseExl3Group("group", header.views());
    row.CompareText(verdict, group.has_value() ? "accept" : "reject", where.pointer);
    row.Count("headers", 1);
    if (!group.has_value() && group.error().where.tensor.empty()) {
      row.Refuse(where.pointer + ": the refusal names no tensor");
    }
  }
  return row.Finish();
}

}  // namespace

Status AddFormatCases(const CaseSubject& subject, CaseRegistry& registry) {
  TRY(registry.Add("format-accept", "checkpoint", [subject] { return RunCheckpoint(subject); }));
  TRY(registry.Add("format-accept", "published-groups",
                   [golden = subject.golden] { return RunGroups(golden, "accept"); }));
  return registry.Add("format-reject", "published-groups",
                      [golden = subject.golden] { return RunGroups(golden, "reject"); });
}

}  // namespace hallmark
