// SPDX-License-Identifier: Apache-2.0
// One text of a receipt is accepted; every other is refused, each kind with its own code.
#include "receipts/verify/document.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "receipts/verify/edited_receipt.h"

namespace hallmark::verify {
namespace {

std::string FirstReason(const std::string& bytes) {
  Findings findings;
  const auto statement = ReadReceipt(BuiltInKnowledge(), bytes, findings);
  if (statement.has_value()) return findings.empty() ? "accepted" : "accepted with findings";
  if (findings.empty()) return "refused without a finding";
  const Reason& first = findings.reasons().front();
  return first.code + " " + first.pointer;
}

std::string Published() { return PublishedReceiptOf("scribe-11m-exl3").bytes; }

std::string Replaced(const std::string& from, const std::string& to) {
  std::string bytes = Published();
  const size_t at = bytes.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return bytes.replace(at, from.size(), to);
}

TEST(ReadReceipt, TakesWhatIsPublished) { EXPECT_EQ(FirstReason(Published()), "accepted"); }

TEST(ReadReceipt, RefusesBytesThatAreNoLine) {
  const std::string bytes = Published();
  EXPECT_EQ(FirstReason(""), "empty ");
  EXPECT_EQ(FirstReason(bytes.substr(0, bytes.size() - 1)), "no-final-newline ");
  EXPECT_EQ(FirstReason(bytes + "\n"), "trailing-bytes ");
  EXPECT_EQ(FirstReason(bytes + bytes), "trailing-bytes ");
  EXPECT_EQ(FirstReason(std::string(kMaxReceiptBytes + 1, ' ')), "too-large ");
  EXPECT_EQ(FirstReason(bytes.substr(0, 400) + "\n"), "not-json ");
  EXPECT_EQ(FirstReason("\xEF\xBB\xBF" + bytes), "not-json ");
}

TEST(ReadReceipt, RefusesTextThatIsNotUtf8) {
  for (const char* bad :
       {"\xFF", "\xC0\xAF", "\xED\xA0\x80", "\xF4\x90\x80\x80", "\x80", "\xE2\x82"}) {
    EXPECT_EQ(FirstReason(std::string("\"") + bad + "\"\n"), "not-utf8 ") << bad;
  }
  EXPECT_EQ(FirstReason("\"\xE2\x82\xAC\xF0\x9F\x98\x80\"\n"), "wrong-type ");
}

TEST(ReadReceipt, RefusesAbsurdNesting) {
  EXPECT_EQ(FirstReason(std::string(17, '[') + std::string(17, ']') + "\n"), "too-deep ");
  EXPECT_EQ(FirstReason(std::string(1000000, '[') + "\n"), "too-deep ");
  // Brackets in a string nest nothing.
  EXPECT_EQ(FirstReason("\"" + std::string(99, '[') + "\\\"" + std::string(99, '{') + "\"\n"),
            "wrong-type ");
}

TEST(ReadReceipt, RefusesASecondMemberOfOneName) {
  EXPECT_EQ(FirstReason(Replaced("{\"_type\":", "{\"_type\":\"x\",\"_type\":")),
            "duplicate-key /_type");
  EXPECT_EQ(FirstReason(Replaced("\"kv\":", "\"kv\":\"bf16\",\"kv\":")),
            "duplicate-key /predicate/core/settings/kv");
}

TEST(ReadReceipt, RefusesEveryOtherTextOfTheSameValue) {
  EXPECT_EQ(FirstReason(Replaced("\"context\":", "\"context\": ")), "not-canonical ");
  EXPECT_EQ(FirstReason(Replaced("bf16", "bf\\u0031\\u0036")), "not-canonical ");
  EXPECT_EQ(FirstReason(Replaced("https://", "https:\\/\\/")), "not-canonical ");
  EXPECT_EQ(FirstReason(Replaced("\"tokens\":200", "\"tokens\":2e2")), "not-canonical ");
  EXPECT_EQ(FirstReason(Replaced("\"tokens\":200", "\"tokens\":200.0")),
            "wrong-type /predicate/core/prompts/0/tokens");
  std::string bytes = Published();
  bytes.insert(bytes.size() - 1, " ");
  EXPECT_EQ(FirstReason(bytes), "not-canonical ");
  // Members in another order.
  EXPECT_EQ(FirstReason(
                Replaced("\"name\":\"built-in\",\"rule\":\"id", "\"rule\":\"id i\",\"name\":\"id")),
            "not-canonical ");
}

TEST(ReadReceipt, RefusesOtherVersionsByName) {
  EXPECT_EQ(FirstReason(Replaced("Statement/v1", "Statement/v2")), "unknown-statement-type /_type");
  EXPECT_EQ(FirstReason(Replaced("receipt/run/v1", "receipt/run/v2")),
            "unknown-predicate-type /predicateType");
  EXPECT_EQ(FirstReason("{}\n"), "unknown-statement-type /_type");
  EXPECT_EQ(FirstReason("[]\n"), "wrong-type ");
}

TEST(ReadReceipt, RefusesShapesThatTheSchemaDoesNotKnow) {
  const auto edited = [](const auto& edit) {
    EditedReceipt receipt(PublishedReceipts().front());
    edit(receipt);
    return FirstReason(receipt.Bytes());
  };
  EXPECT_EQ(edited([](EditedReceipt& r) { r.core()["host"] = "mine"; }),
            "unknown-member /predicate/core/host");
  EXPECT_EQ(edited([](EditedReceipt& r) { r.core().erase("rows"); }),
            "missing-member /predicate/core/rows");
  EXPECT_EQ(edited([](EditedReceipt& r) { r.core()["rows"] = Json::object(); }),
            "wrong-type /predicate/core/rows");
  EXPECT_EQ(edited([](EditedReceipt& r) { r.core()["rows"] = Json::array(); }),
            "wrong-size /predicate/core/rows");
  EXPECT_EQ(edited([](EditedReceipt& r) { r.rows()[0]["outcome"] = "fine"; }),
            "wrong-value /predicate/core/rows/0/outcome");
  EXPECT_EQ(edited([](EditedReceipt& r) { r.rows()[0]["counts"]["values"] = -1; }),
            "out-of-range /predicate/core/rows/0/counts/values");
  EXPECT_EQ(edited([](EditedReceipt& r) { r.core()["tolerances"] = std::string(64, 'A'); }),
            "wrong-form /predicate/core/tolerances");
  EXPECT_EQ(edited([](EditedReceipt& r) { r.core()["tolerances"] = std::string(64, 'a') + "\n"; }),
            "wrong-form /predicate/core/tolerances");
  EXPECT_EQ(edited([](EditedReceipt& r) { r.statement()["predicate"].erase("context_sha256"); }),
            "missing-member /predicate/context_sha256");
}

TEST(ReadReceipt, ALongHostileStringIsRefusedInTime) {
  EditedReceipt receipt(PublishedReceipts().front());
  receipt.rows()[0]["clause"] = std::string(8 << 20, 'a') + "-";
  EXPECT_EQ(FirstReason(receipt.Bytes()), "wrong-form /predicate/core/rows/0/clause");
}

}  // namespace
}  // namespace hallmark::verify
