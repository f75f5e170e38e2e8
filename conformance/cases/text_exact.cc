// SPDX-License-Identifier: Apache-2.0
#include "conformance/cases/text_exact.h"

#include <nlohmann/json.hpp>
#include <vector>

#include "conformance/cases/bits_row.h"
#include "engine/base/json.h"
#include "engine/text/streaming_decoder.h"
#include "engine/text/tokenizer.h"

namespace hallmark {
namespace {

constexpr char kClause[] = "text-exact";

struct Published {
  std::string text;
  std::vector<int32_t> ids;
};

Result<std::vector<Published>> ReadPublished(const std::string& path) {
  const Json json = TRY(ReadJsonFile(path));
  if (!json.is_object() || !json.contains("cases") || !json["cases"].is_array()) {
    return Fail(Code::kMalformed, "expected a list of strings",
                {.file = path, .pointer = "/cases"});
  }
  std::vector<Published> published;
  for (size_t i = 0; i < json["cases"].size(); ++i) {
    const Json& item = json["cases"][i];
    const Locator where{.file = path, .pointer = "/cases/" + std::to_string(i)};
    if (!item.is_object() || !item.contains("text") || !item["text"].is_string() ||
        !item.contains("ids") || !item["ids"].is_array()) {
      return Fail(Code::kMalformed, "expected a text and its ids", where);
    }
    Published one{item["text"].get<std::string>(), {}};
    for (const Json& id : item["ids"]) {
      if (!id.is_number_integer()) return Fail(Code::kMalformed, "expected ids", where);
      one.ids.push_back(id.get<int32_t>());
    }
    published.push_back(std::move(one));
  }
  return published;
}

struct TextSubject {
  Tokenizer tokenizer;
  std::vector<Published> published;
};

Result<TextSubject> OpenSubject(const std::string& golden) {
  return TextSubject{TRY(Tokenizer::Open(golden + "/models/scribe-11m-exl3/tokenizer.json")),
                     TRY(ReadPublished(golden + "/text/tokenizer_vectors.json"))};
}

Result<Row> RunIds(const std::string& golden) {
  const TextSubject subject = TRY(OpenSubject(golden));
  BitsRow row;
  for (size_t i = 0; i < subject.published.size(); ++i) {
    const Published& one = subject.published[i];
    const std::vector<int32_t> ids = TRY(subject.tokenizer.Encode(one.text));
    row.Count("strings", 1);
    if (one.ids.empty() && ids.empty()) continue;
    row.Compare<int32_t>(one.ids, ids, "string " + std::to_string(i));
  }
  return row.Finish();
}

Result<Row> RunStream(const std::string& golden) {
  const TextSubject subject = TRY(OpenSubject(golden));
  BitsRow row;
  for (size_t i = 0; i < subject.published.size(); ++i) {
    const Published& one = subject.published[i];
    const std::string whole = TRY(subject.tokenizer.Decode(one.ids, SpecialTokens::kShow));
    StreamingDecoder decoder(&subject.tokenizer, SpecialTokens::kShow);
    std::string streamed;
    for (const int32_t id : one.ids) streamed += TRY(decoder.Push(id));
    streamed += decoder.Flush();
    row.Count("strings", 1);
    if (whole.empty() && streamed.empty()) continue;
    row.CompareText(whole, streamed, "string " + std::to_string(i));
    if (whole == one.text) row.Count("strings_given_back", 1);
  }
  return row.Finish();
}

}  // namespace

Status AddTextExactCases(const CaseSubject& subject, CaseRegistry& registry) {
  TRY(registry.Add(kClause, "ids", [golden = subject.golden] { return RunIds(golden); }));
  return registry.Add(kClause, "stream", [golden = subject.golden] { return RunStream(golden); });
}

}  // namespace hallmark
