// SPDX-License-Identifier: Apache-2.0
#include "conformance/harness/tolerances.h"

#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <set>

#include "engine/base/json.h"

namespace hallmark {
namespace {

constexpr std::array<std::string_view, 6> kKinds = {"rms",  "kl",       "margin",
                                                    "ulps", "absolute", "relative"};

// Reads one entry's members, each exactly once, and remembers where it is for errors.
class EntryReader {
 public:
  EntryReader(const Json& entry, std::string pointer, const std::string& file)
      : entry_(entry), pointer_(std::move(pointer)), file_(file) {}

  Result<std::string> Text(const std::string& name) {
    const auto found = entry_.find(name);
    if (found == entry_.end() || !found->is_string() || found->get<std::string>().empty()) {
      return Malformed(name, "a non-empty string is expected");
    }
    return found->get<std::string>();
  }

  Result<double> Positive(const std::string& name) {
    const auto found = entry_.find(name);
    if (found == entry_.end() || !found->is_number() || !(found->get<double>() > 0) ||
        !std::isfinite(found->get<double>())) {
      return Malformed(name, "a positive number is expected");
    }
    return found->get<double>();
  }

  tl::unexpected<Error> Malformed(const std::string& name, const std::string& message) {
    return Fail(Code::kMalformed, message, {.file = file_, .pointer = pointer_ + "/" + name});
  }

 private:
  const Json& entry_;
  std::string pointer_;
  const std::string& file_;
};

Result<ToleranceEntry> ReadEntry(const Json& json, const std::string& pointer,
                                 const std::string& file) {
  EntryReader reader(json, pointer, file);
  if (!json.is_object() || json.size() != 7) {
    return reader.Malformed("", "an object of exactly seven members is expected");
  }
  ToleranceEntry entry;
  entry.id = TRY(reader.Text("id"));
  entry.clause = TRY(reader.Text("clause"));
  entry.kind = TRY(reader.Text("kind"));
  entry.unit = TRY(reader.Text("unit"));
  entry.reason = TRY(reader.Text("reason"));
  entry.value = TRY(reader.Positive("value"));
  const auto measured = json.find("measured");
  if (measured == json.end()) return reader.Malformed("measured", "a number or null is expected");
  if (!measured->is_null()) entry.measured = TRY(reader.Positive("measured"));
  bool known = false;
  for (const std::string_view kind : kKinds) known = known || entry.kind == kind;
  if (!known) return reader.Malformed("kind", "unknown kind " + entry.kind);
  return entry;
}

[[noreturn]] void Abort(const std::string& message) {
  std::fprintf(stderr, "tolerance register: %s\n", message.c_str());
  std::abort();
}

}  // namespace

Result<std::vector<ToleranceEntry>> ParseTolerances(std::string_view text,
                                                    const std::string& file) {
  const Json json = TRY(ParseJson(text, file));
  if (!json.is_object() || json.size() != 2 || !json.contains("schema") ||
      json["schema"] != "urn:hallmark:schema:tolerances:v1" || !json.contains("tolerances") ||
      !json["tolerances"].is_array()) {
    return Fail(Code::kMalformed, "expected schema tolerances:v1 and an array of tolerances",
                {.file = file});
  }
  std::vector<ToleranceEntry> entries;
  std::set<std::string> ids;
  for (const Json& item : json["tolerances"]) {
    const std::string pointer = "/tolerances/" + std::to_string(entries.size());
    ToleranceEntry entry = TRY(ReadEntry(item, pointer, file));
    if (!ids.insert(entry.id).second) {
      return Fail(Code::kMalformed, "id " + entry.id + " occurs twice",
                  {.file = file, .pointer = pointer + "/id"});
    }
    entries.push_back(std::move(entry));
  }
  return entries;
}

double Tolerance(std::string_view id) {
  static const std::vector<ToleranceEntry> entries = [] {
    auto parsed = ParseTolerances(TolerancesText(), "docs/tolerances.json");
    if (!parsed.has_value()) Abort(parsed.error().ToString());
    return *std::move(parsed);
  }();
  for (const ToleranceEntry& entry : entries) {
    if (entry.id == id) return entry.value;
  }
  Abort("docs/tolerances.json has no entry " + std::string(id));
}

}  // namespace hallmark
