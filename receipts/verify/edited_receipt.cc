// SPDX-License-Identifier: Apache-2.0
#include "receipts/verify/edited_receipt.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "engine/base/check.h"
#include "engine/base/sha256.h"

namespace hallmark::verify {

std::vector<PublishedReceipt> PublishedReceipts(const std::string& device) {
  std::vector<PublishedReceipt> receipts;
  const std::string folder = std::string(HALLMARK_PUBLISHED_DIR) + "/" + device;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (!name.ends_with(".intoto.jsonl")) continue;
    std::ifstream file(entry.path(), std::ios::binary);
    receipts.push_back({name, std::string(std::istreambuf_iterator<char>(file), {})});
  }
  CHECK(!receipts.empty());
  std::sort(receipts.begin(), receipts.end(),
            [](const PublishedReceipt& a, const PublishedReceipt& b) { return a.name < b.name; });
  return receipts;
}

PublishedReceipt PublishedReceiptOf(const std::string& model) {
  for (const PublishedReceipt& published : PublishedReceipts()) {
    const Json core = Json::parse(published.bytes)["predicate"]["core"];
    const bool has_model = published.bytes.find("\"" + model + ",run=") != std::string::npos;
    if (has_model && core["level"] == "L2" && core["settings"]["kv"] == "bf16") return published;
  }
  CHECK(false);
  return {};
}

EditedReceipt::EditedReceipt(const PublishedReceipt& published)
    : EditedReceipt(Json::parse(published.bytes)) {}

EditedReceipt::EditedReceipt(const Json& statement)
    : statement_(std::make_shared<Json>(statement)) {}

Json& EditedReceipt::core() { return (*statement_)["predicate"]["core"]; }
Json& EditedReceipt::context() { return (*statement_)["predicate"]["context"]; }
Json& EditedReceipt::rows() { return core()["rows"]; }

Json& EditedReceipt::row(const std::string& name) {
  for (Json& row : rows()) {
    if (row["clause"].get<std::string>() + "/" + row["case"].get<std::string>() == name) return row;
  }
  CHECK(false);
  return rows()[0];
}

void EditedReceipt::EraseRow(const std::string& name) {
  const Json* found = &row(name);
  rows().erase(static_cast<size_t>(found - &rows()[0]));
}

void EditedReceipt::SealCore() {
  (*statement_)["predicate"]["core_sha256"] = Sha256Hex(CanonicalJson(core()));
}

void EditedReceipt::SealAll() {
  for (const char* list : {"checkpoint", "drafter"}) {
    if (core().contains(list)) {
      core()[list]["sha256"] = Sha256Hex(CanonicalJson(core()[list]["files"]));
    }
  }
  SealCore();
  (*statement_)["predicate"]["context_sha256"] = Sha256Hex(CanonicalJson(context()));
}

void EditedReceipt::SealWithVerdict(const std::string& outcome,
                                    const std::vector<std::string>& missing) {
  context()["verdict"] = {{"outcome", outcome}, {"missing", missing}};
  SealAll();
}

std::string EditedReceipt::Name() const {
  const Json& predicate = (*statement_)["predicate"];
  const auto& arithmetic = predicate["core"]["arithmetic"].get_ref<const std::string&>();
  return predicate["core"]["level"].get<std::string>() + "." +
         arithmetic.substr(0, arithmetic.find('/')) + "." +
         Sha256Hex(CanonicalJson(predicate["core"])).substr(0, 12) + ".intoto.jsonl";
}

std::string EditedReceipt::Bytes() const { return statement_->dump() + "\n"; }

ReceiptVerdict EditedReceipt::Verify(const VerifyOptions& options) const {
  return VerifyBytes(Name(), Bytes(), options);
}

std::vector<std::string> ReasonsOf(const ReceiptVerdict& verdict) {
  std::vector<std::string> reasons;
  for (const Reason& reason : verdict.reasons)
    reasons.push_back(reason.code + " " + reason.pointer);
  return reasons;
}

ReceiptVerdict VerifyBytes(const std::string& name, const std::string& bytes,
                           const VerifyOptions& options) {
  auto verdict = VerifyReceipt(BuiltInKnowledge(), name, bytes, options);
  CHECK(verdict.has_value());
  return *std::move(verdict);
}

}  // namespace hallmark::verify
