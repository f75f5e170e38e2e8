// SPDX-License-Identifier: Apache-2.0
#include "receipts/verify/receipt.h"

#include <nlohmann/json.hpp>
#include <set>

namespace hallmark::verify {
namespace {

const GoldenModel* FindGolden(const LevelList& list,
                              const std::map<std::string, std::string>& files) {
  for (const GoldenModel& model : list.golden_models) {
    bool same = true;
    for (const auto& [name, digest] : model.files) {
      const auto found = files.find(name);
      same = same && found != files.end() && found->second == digest;
    }
    if (same) return &model;
  }
  return nullptr;
}

void AddFiles(const Json& list, const std::string& prefix, Receipt& receipt) {
  for (const Json& file : list["files"]) {
    receipt.files[prefix + file["name"].get<std::string>()] = file["sha256"].get<std::string>();
  }
}

}  // namespace

Receipt ReadClaims(const Knowledge& knowledge, const Json& statement) {
  const Json& predicate = statement["predicate"];
  Receipt receipt{
      .statement = &statement, .core = &predicate["core"], .context = &predicate["context"]};
  const Json& core = *receipt.core;
  receipt.level = core["level"].get<std::string>();
  receipt.rank = knowledge.RankOf(receipt.level);
  receipt.arithmetic = core["arithmetic"].get<std::string>();
  receipt.backend = receipt.arithmetic.substr(0, receipt.arithmetic.find('/'));
  const Json& engine = (*receipt.context)["engine"];
  if (engine.contains("device")) {
    receipt.fingerprint = engine["device"]["fingerprint"].get<std::string>();
  }
  receipt.kv = core["settings"]["kv"].get<std::string>();
  AddFiles(core["checkpoint"], "", receipt);
  if (core.contains("drafter")) {
    AddFiles(core["drafter"], "drafter/", receipt);
    receipt.drafter = core["drafter"]["sha256"].get<std::string>();
  }
  const Json& rows = core["rows"];
  receipt.rows.reserve(rows.size());
  for (size_t i = 0; i < rows.size(); ++i) {
    ReceiptRow row{.json = &rows[i], .pointer = Below("/predicate/core/rows", i)};
    row.clause = rows[i]["clause"].get<std::string>();
    row.case_name = rows[i]["case"].get<std::string>();
    row.name = row.clause + "/" + row.case_name;
    // The schema admits no other word; one it learnt of alone must not pass.
    row.outcome = ParseOutcome(rows[i]["outcome"].get_ref<const std::string&>())
                      .value_or(Outcome::kHarnessError);
    receipt.rows.push_back(std::move(row));
  }
  for (const ReceiptRow& row : receipt.rows) receipt.by_name.emplace(row.name, &row);
  const auto need = [&](const std::vector<std::string>& cases) {
    for (const std::string& name : cases) {
      if (!receipt.by_name.contains(name)) receipt.missing.push_back(name);
    }
  };
  for (int rank = 0; rank <= receipt.rank; ++rank) {
    const LevelList& list = knowledge.levels[static_cast<size_t>(rank)];
    need(list.CasesOf(receipt.backend));
    if (const GoldenModel* model = FindGolden(list, receipt.files)) {
      need(model->cases);
      receipt.golden.push_back(model);
    }
  }
  return receipt;
}

}  // namespace hallmark::verify
