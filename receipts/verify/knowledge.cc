// SPDX-License-Identifier: Apache-2.0
#include "receipts/verify/knowledge.h"

#include <nlohmann/json.hpp>

#include "engine/base/check.h"
#include "engine/base/sha256.h"

namespace hallmark::verify {
namespace {

constexpr char kContract[] = "docs/contract/clauses.json";
constexpr char kTolerances[] = "docs/tolerances.json";
constexpr char kManifest[] = "golden/manifest.json";
constexpr char kRules[] = "receipts/verify/rules.json";
constexpr char kPins[] = "receipts/verify/pins.json";

class Reader {
 public:
  explicit Reader(const Documents& documents) : documents_(documents) {}

  Result<std::string_view> Text(const std::string& path) const {
    const auto found = documents_.find(path);
    if (found == documents_.end()) {
      return Fail(Code::kNotFound, "the document is not embedded", {.file = path});
    }
    return found->second;
  }
  Result<Json> Read(const std::string& path) const { return ParseJson(TRY(Text(path)), path); }
  Result<JsonSchema> Schema(const std::string& name) const {
    const std::string path = "receipts/schemas/" + name + ".v1.schema.json";
    return JsonSchema::Parse(TRY(Text(path)), path);
  }
  // The paths below a folder, sorted.
  std::vector<std::string> Under(const std::string& folder) const {
    std::vector<std::string> paths;
    for (const auto& [path, text] : documents_) {
      if (path.starts_with(folder)) paths.push_back(path);
    }
    return paths;
  }

 private:
  const Documents& documents_;
};

LevelList LevelListOf(const Json& json) {
  LevelList list{.name = json.at("level").get<std::string>(),
                 .sha256 = Sha256Hex(CanonicalJson(json)),
                 .cases = json.at("cases").get<std::vector<std::string>>()};
  if (json.contains("backends")) {
    list.backends = json["backends"].get<std::map<std::string, std::vector<std::string>>>();
  }
  if (json.contains("golden_models")) {
    for (const Json& item : json["golden_models"]) {
      list.golden_models.push_back(
          {.name = item.at("name").get<std::string>(),
           .files = item.at("files").get<std::map<std::string, std::string>>(),
           .cases = item.at("cases").get<std::vector<std::string>>()});
    }
  }
  return list;
}

Status ReadLevels(const Reader& reader, Knowledge& knowledge) {
  for (const std::string& path : reader.Under("receipts/must_pass/")) {
    knowledge.levels.push_back(LevelListOf(TRY(reader.Read(path))));
  }
  for (size_t rank = 0; rank < knowledge.levels.size(); ++rank) {
    const LevelList& list = knowledge.levels[rank];
    const auto learn = [&](const std::vector<std::string>& cases) -> Status {
      for (const std::string& name : cases) {
        if (!knowledge.case_levels.emplace(name, static_cast<int>(rank)).second) {
          return Fail(Code::kMalformed, "the case " + name + " is listed twice",
                      {.file = "receipts/must_pass/" + list.name + ".json"});
        }
      }
      return {};
    };
    TRY(learn(list.cases));
    for (const auto& [backend, cases] : list.backends) TRY(learn(cases));
    for (const GoldenModel& model : list.golden_models) TRY(learn(model.cases));
  }
  return {};
}

RowRule RowRuleOf(const Json& json) {
  RowRule rule{.clause = json.at("clause").get<std::string>(),
               .cases = json.at("cases").get<std::string>(),
               .bits = json.at("compared") == "bits",
               .at_least = json.at("counts").get<std::map<std::string, uint64_t>>()};
  if (json.contains("bounds")) {
    for (const Json& item : json["bounds"]) {
      rule.bounds.push_back({.measured = item.value("measured", ""),
                             .allowed = item.at("allowed").get<std::string>(),
                             .tolerance = item.at("tolerance").get<std::string>()});
    }
  }
  if (json.contains("vectors")) rule.vectors = json["vectors"].get<std::vector<std::string>>();
  if (json.contains("parameters")) {
    rule.parameters = json["parameters"].get<std::map<std::string, std::string>>();
  }
  if (json.contains("fewer")) {
    rule.fewer = json["fewer"].get<std::map<std::string, std::string>>();
  }
  if (json.contains("at_most")) {
    rule.at_most = json["at_most"].get<std::map<std::string, std::string>>();
  }
  if (json.contains("sums")) {
    for (const Json& item : json["sums"]) {
      rule.sums.push_back({.total = item.at("total").get<std::string>(),
                           .parts = item.at("parts").get<std::vector<std::string>>(),
                           .more = item.value("more", uint64_t{0}),
                           .exact = item.value("exact", true)});
    }
  }
  if (json.contains("quotients")) {
    for (const Json& item : json["quotients"]) {
      rule.quotients.push_back({.of = item.at("of").get<std::string>(),
                                .by = item.at("by").get<std::string>(),
                                .parameter = item.value("parameter", ""),
                                .alike = item.value("alike", "")});
    }
  }
  rule.same_digest = json.value("same_digest", "");
  rule.alike = json.value("alike", "");
  rule.per_row = json.value("per_row", false);
  return rule;
}

Status ReadRules(const Reader& reader, Knowledge& knowledge) {
  const Json json = TRY(reader.Read(kRules));
  for (const Json& item : json.at("rows")) {
    knowledge.rules.push_back(RowRuleOf(item));
    if (!knowledge.clauses.contains(knowledge.rules.back().clause)) {
      return Fail(Code::kMalformed, "unknown clause " + knowledge.rules.back().clause,
                  {.file = kRules});
    }
  }
  for (const Json& item : json.at("prompts")) {
    knowledge.prompts.push_back({.name = item.at("name").get<std::string>(),
                                 .level = item.at("level").get<std::string>(),
                                 .words = item.at("words").get<std::string>(),
                                 .seed = item.at("seed").get<std::string>(),
                                 .tokens = item.at("tokens").get<uint64_t>()});
  }
  knowledge.samplings = json.at("samplings").get<std::vector<std::string>>();
  return {};
}

std::map<std::string, const Json*> RowsByName(const Json& rows) {
  std::map<std::string, const Json*> by_name;
  for (const Json& row : rows) {
    by_name[row.at("clause").get<std::string>() + "/" + row.at("case").get<std::string>()] = &row;
  }
  return by_name;
}

Status ReadPins(const Reader& reader, Knowledge& knowledge) {
  knowledge.published = std::make_shared<const Json>(TRY(reader.Read(kPins)));
  const Json& json = *knowledge.published;
  for (const Json& item : json.at("shared")) {
    knowledge.shared_rows[item.at("arithmetic").get<std::string>()] = RowsByName(item.at("rows"));
  }
  for (const Json& item : json.at("receipts")) {
    knowledge.pins.push_back({.arithmetic = item.at("arithmetic").get<std::string>(),
                              .model = item.at("model").get<std::string>(),
                              .level = item.at("level").get<std::string>(),
                              .checkpoint = item.at("checkpoint").get<std::string>(),
                              .drafter = item.at("drafter").get<std::string>(),
                              .settings = &item.at("settings"),
                              .prompts = &item.at("prompts"),
                              .core_sha256 = item.at("core_sha256").get<std::string>(),
                              .rows = RowsByName(item.at("rows"))});
  }
  return {};
}

Result<Knowledge> ReadAll(const Documents& documents) {
  const Reader reader(documents);
  const Json contract = TRY(reader.Read(kContract));
  Knowledge knowledge{.contract_sha256 = Sha256Hex(CanonicalJson(contract)),
                      .contract_version = contract.at("version").get<int64_t>(),
                      .tolerances_sha256 = Sha256Hex(TRY(reader.Text(kTolerances))),
                      .receipt_schema = TRY(reader.Schema("receipt")),
                      .policy_schema = TRY(reader.Schema("policy")),
                      .waivers_schema = TRY(reader.Schema("waivers"))};
  for (const Json& clause : contract.at("clauses")) {
    knowledge.clauses.insert(clause.at("id").get<std::string>());
  }
  const Json tolerances = TRY(reader.Read(kTolerances));
  for (const Json& entry : tolerances.at("tolerances")) {
    knowledge.tolerances[entry.at("id").get<std::string>()] = entry.at("value").get<double>();
  }
  const Json manifest = TRY(reader.Read(kManifest));
  for (const Json& file : manifest.at("files")) {
    knowledge.golden_files[file.at("path").get<std::string>()] = {
        file.at("bytes").get<uint64_t>(), file.at("sha256").get<std::string>()};
  }
  for (const std::string& path : reader.Under("receipts/arithmetic/")) {
    const Json definition = TRY(reader.Read(path));
    const auto backend = definition.at("backend").get<std::string>();
    knowledge.arithmetics[backend] = {CanonicalJson(definition),
                                      definition.contains("fingerprint")};
  }
  TRY(ReadLevels(reader, knowledge));
  TRY(ReadRules(reader, knowledge));
  TRY(ReadPins(reader, knowledge));
  for (const std::string& path : reader.Under("receipts/policies/")) {
    // One that lies there before its level has a list is none yet: nothing could reach it.
    const Json json = TRY(reader.Read(path));
    if (knowledge.RankOf(json.at("level").get<std::string>()) < 0) continue;
    Policy policy = TRY(ParsePolicy(knowledge, TRY(reader.Text(path)), path));
    knowledge.policies.emplace(policy.name, policy);
  }
  return knowledge;
}

}  // namespace

std::vector<std::string> LevelList::CasesOf(const std::string& backend) const {
  std::vector<std::string> names = cases;
  const auto more = backends.find(backend);
  if (more != backends.end()) names.insert(names.end(), more->second.begin(), more->second.end());
  return names;
}

std::optional<std::string> Knowledge::ArithmeticId(const std::string& backend,
                                                   const std::string& fingerprint) const {
  const auto found = arithmetics.find(backend);
  if (found == arithmetics.end()) return std::nullopt;
  return backend + "/" + std::to_string(contract_version) + "/" +
         Sha256Hex(found->second.definition + fingerprint).substr(0, 12);
}

int Knowledge::RankOf(std::string_view level) const {
  for (size_t i = 0; i < levels.size(); ++i) {
    if (levels[i].name == level) return static_cast<int>(i);
  }
  return -1;
}

int Knowledge::LevelOfCase(const std::string& name) const {
  const auto found = case_levels.find(name);
  return found == case_levels.end() ? -1 : found->second;
}

const Policy* Knowledge::PolicyOf(const std::string& name) const {
  const auto found = policies.find(name);
  return found == policies.end() ? nullptr : &found->second;
}

const RowRule* Knowledge::RuleOf(std::string_view clause, std::string_view case_name) const {
  for (const RowRule& rule : rules) {
    if (rule.clause == clause && GlobMatches(rule.cases, case_name)) return &rule;
  }
  return nullptr;
}

Result<Knowledge> ReadKnowledge(const Documents& documents) {
  // The JSON library's exceptions end here: a member of the wrong type is a malformed document.
  try {
    return ReadAll(documents);
  } catch (const Json::exception& error) {
    return Fail(Code::kMalformed, std::string("an embedded document: ") + error.what());
  }
}

const Knowledge& BuiltInKnowledge() {
  static const Knowledge knowledge = [] {
    auto read = ReadKnowledge(EmbeddedDocuments());
    CHECK(read.has_value());
    return *std::move(read);
  }();
  return knowledge;
}

Status CheckShape(const JsonSchema& schema, const Json& json, const std::string& file) {
  Findings findings;
  schema.Check(json, findings);
  if (findings.empty()) return {};
  const Reason& first = findings.reasons().front();
  return Fail(Code::kMalformed,
              first.code + ": expected " + first.expected + ", found " + first.found,
              {.file = file, .pointer = first.pointer});
}

}  // namespace hallmark::verify
