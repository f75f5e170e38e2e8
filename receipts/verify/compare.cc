// SPDX-License-Identifier: Apache-2.0
#include "receipts/verify/compare.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/base/sha256.h"
#include "receipts/verify/document.h"
#include "receipts/verify/dsse.h"

namespace hallmark::verify {
namespace {

constexpr std::array<const char*, 3> kWords = {"equal", "differs", "not comparable"};

std::string NameOf(const Json& row) {
  return row["clause"].get<std::string>() + "/" + row["case"].get<std::string>();
}

std::map<std::string, const Json*> RowsOf(const Json& core) {
  std::map<std::string, const Json*> rows;
  for (const Json& row : core["rows"]) rows[NameOf(row)] = &row;
  return rows;
}

tl::unexpected<Error> Refuse(const Findings& findings, const std::string& name) {
  const Reason& first = findings.reasons().front();
  return Fail(Code::kMalformed,
              "not a sound receipt: " + first.code + ", expected " + first.expected + ", found " +
                  first.found,
              {.file = name, .pointer = first.pointer});
}

std::string Short(const Json& digest) {
  const auto& text = digest.get_ref<const std::string&>();
  return text.empty() ? "no digest" : text.substr(0, 12);
}

std::string RowText(const char* side, const Json& row) {
  return fmt::format("    {}  {}, expected {}, actual {}, counts {}\n", side,
                     row["outcome"].get_ref<const std::string&>(), Short(row["expected"]),
                     Short(row["actual"]), ShownText(row["counts"].dump()));
}

}  // namespace

Result<Json> ReadCore(const Knowledge& knowledge, const std::string& name, std::string_view bytes) {
  Findings findings;
  std::string payload;
  if (name.ends_with(".dsse.json")) {
    auto envelope = ReadEnvelope(bytes, findings);
    if (!envelope) return Refuse(findings, name);
    payload = std::move(envelope->payload);
    bytes = payload;
  }
  const std::optional<Json> statement = ReadReceipt(knowledge, bytes, findings);
  if (!statement) return Refuse(findings, name);
  const Json& predicate = (*statement)["predicate"];
  findings.Equal("core-digest", "/predicate/core_sha256",
                 Sha256Hex(CanonicalJson(predicate["core"])),
                 predicate["core_sha256"].get_ref<const std::string&>());
  // Two rows of one name could not be told apart.
  std::set<std::string> rows;
  const Json& list = predicate["core"]["rows"];
  for (size_t i = 0; i < list.size(); ++i) {
    if (rows.insert(NameOf(list[i])).second) continue;
    findings.Add("row-duplicate", Below("/predicate/core/rows", i), "each case once",
                 ShownText(NameOf(list[i])));
  }
  if (!findings.empty()) return Refuse(findings, name);
  return predicate["core"];
}

Comparison CompareReceipts(const Json& core_a, const Json& core_b) {
  Comparison comparison;
  comparison.core_sha256 = {Sha256Hex(CanonicalJson(core_a)), Sha256Hex(CanonicalJson(core_b))};
  std::set<std::string> members;
  for (const Json* core : {&core_a, &core_b}) {
    for (const auto& [name, value] : core->items()) members.insert(name);
  }
  members.erase("rows");
  for (const std::string& name : members) {
    const bool same =
        core_a.contains(name) && core_b.contains(name) && core_a[name] == core_b[name];
    if (!same) comparison.unlike.push_back(name);
  }
  if (!comparison.unlike.empty()) return comparison;
  const auto rows_a = RowsOf(core_a);
  const auto rows_b = RowsOf(core_b);
  for (const auto& [name, row] : rows_a) {
    const auto other = rows_b.find(name);
    if (other == rows_b.end()) {
      comparison.only_a.push_back(name);
    } else if (*row != *other->second) {
      comparison.rows.push_back(
          {name, std::make_shared<const Json>(*row), std::make_shared<const Json>(*other->second)});
    }
  }
  for (const auto& [name, row] : rows_b) {
    if (!rows_a.contains(name)) comparison.only_b.push_back(name);
  }
  comparison.result = comparison.core_sha256[0] == comparison.core_sha256[1]
                          ? Comparison::Result::kEqual
                          : Comparison::Result::kDiffers;
  return comparison;
}

Json ComparisonJson(const Comparison& comparison) {
  Json rows = Json::array();
  for (const RowDifference& row : comparison.rows) {
    rows.push_back({{"name", row.name}, {"a", *row.a}, {"b", *row.b}});
  }
  return {{"schema", "urn:hallmark:schema:diff:v1"},
          {"result", kWords[static_cast<size_t>(comparison.result)]},
          {"core_sha256", comparison.core_sha256},
          {"unlike", comparison.unlike},
          {"only_a", comparison.only_a},
          {"only_b", comparison.only_b},
          {"rows", rows}};
}

std::string ComparisonText(const Comparison& comparison) {
  const auto& [a, b] = comparison.core_sha256;
  if (comparison.result == Comparison::Result::kEqual) {
    return fmt::format("equal: core digest {}\n", a);
  }
  std::string text =
      fmt::format("{}\n  A  {}\n  B  {}\n", kWords[static_cast<size_t>(comparison.result)], a, b);
  for (const std::string& name : comparison.unlike) {
    text += fmt::format("  another {}\n", ShownText(name));
  }
  for (const std::string& name : comparison.only_a) {
    text += fmt::format("  only in A: {}\n", ShownText(name));
  }
  for (const std::string& name : comparison.only_b) {
    text += fmt::format("  only in B: {}\n", ShownText(name));
  }
  for (const RowDifference& row : comparison.rows) {
    text +=
        fmt::format("  {}\n", ShownText(row.name)) + RowText("A", *row.a) + RowText("B", *row.b);
  }
  return text;
}

int ExitCodeOf(const Comparison& comparison) {
  switch (comparison.result) {
    case Comparison::Result::kEqual:
      return 0;
    case Comparison::Result::kDiffers:
      return 1;
    case Comparison::Result::kNotComparable:
      return 3;
  }
  return 3;
}

}  // namespace hallmark::verify
