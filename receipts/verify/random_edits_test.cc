// SPDX-License-Identifier: Apache-2.0
// Ten thousand random edits of published receipts, of bytes and of rows, with and without digests
// recomputed: every one is denied. There is no edit that leaves the meaning alone, since exactly
// one text of a receipt is accepted. Seeds are fixed, so a failure repeats.
#include <gtest/gtest.h>

#include <iterator>
#include <nlohmann/json.hpp>

#include "conformance/harness/sanitizer.h"
#include "engine/base/random.h"
#include "receipts/verify/edited_receipt.h"

namespace hallmark::verify {
namespace {

// A sanitizer takes ten times as long, and looks at memory rather than at verdicts.
constexpr int kEdits = kAddressSanitizer ? 250 : 2500;

class Random {
 public:
  explicit Random(uint64_t seed) : random_(seed) {}
  size_t Below(size_t bound) { return static_cast<size_t>(random_.Below(bound)); }
  template <typename Container>
  auto& Pick(Container& from) {
    return from[Below(std::size(from))];
  }

 private:
  SplitMix64 random_;
};

void EditBytes(Random& random, std::string& bytes) {
  const size_t at = random.Below(bytes.size());
  const char byte = static_cast<char>(random.Below(256));
  switch (random.Below(6)) {
    case 0:
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.Below(8)));
      return;
    case 1:
      bytes[at] = byte;
      return;
    case 2:
      bytes.insert(at, 1, random.Below(2) == 0 ? byte : ' ');
      return;
    case 3:
      bytes.erase(at, 1 + random.Below(8));
      return;
    case 4:
      bytes.insert(at, bytes.substr(at, 1 + random.Below(64)));
      return;
    default:
      // Digits and hex digits stay well-formed, so that more than the parser is asked.
      bytes[at] = "0123456789abcdef"[random.Below(16)];
  }
}

void ChangeDigest(Random& random, Json& digest) {
  auto text = digest.get<std::string>();
  if (text.empty()) text = std::string(64, '0');
  const size_t at = random.Below(text.size());
  text[at] = text[at] == '7' ? '8' : '7';
  digest = text;
}

void EditRows(Random& random, EditedReceipt& receipt) {
  Json& rows = receipt.rows();
  const size_t at = random.Below(rows.size());
  const size_t other = random.Below(rows.size());
  Json& row = rows[at];
  switch (random.Below(10)) {
    case 0:
      std::swap(rows[at], rows[other]);
      return;
    case 1:
      rows.erase(at);
      return;
    case 2:
      rows.insert(rows.begin() + static_cast<long>(other), Json(row));
      return;
    case 3: {
      auto count = row["counts"].begin();
      std::advance(count, random.Below(row["counts"].size()));
      const uint64_t value = count->get<uint64_t>();
      *count = random.Below(2) == 0 ? value - 1 : value + 1 + random.Below(1000);
      return;
    }
    case 4:
      ChangeDigest(random, row["expected"]);
      return;
    case 5:
      ChangeDigest(random, row["actual"]);
      return;
    case 6:
      ChangeDigest(random, row["expected"]);
      row["actual"] = row["expected"];
      return;
    case 7: {
      const char* outcomes[] = {"waived", "notSupported", "fail", "harnessError"};
      row["outcome"] = random.Pick(outcomes);
      if (random.Below(2) == 0) row["detail"] = "a sentence";
      return;
    }
    case 8:
      row["counts"] = rows[other]["counts"];
      return;
    default:
      row["case"] = rows[other]["case"];
  }
}

void EditCore(Random& random, EditedReceipt& receipt) {
  Json& core = receipt.core();
  switch (random.Below(8)) {
    case 0:
      ChangeDigest(random, core["contract"]["sha256"]);
      return;
    case 1:
      ChangeDigest(random, core["tolerances"]);
      return;
    case 2:
      ChangeDigest(random, core["must_pass"]["L" + std::to_string(random.Below(3))]);
      return;
    case 3:
      ChangeDigest(random, random.Pick(core["vectors"])["sha256"]);
      return;
    case 4:
      core["vectors"].erase(random.Below(core["vectors"].size()));
      return;
    case 5:
      ChangeDigest(random, core["prompts"][0]["sha256"]);
      return;
    case 6:
      core["settings"]["kv"] = core["settings"]["kv"] == "fp8" ? "bf16" : "fp8";
      return;
    default:
      // The shard and the config; the verifier cannot know whose tokenizer stands beside them.
      for (Json& file : core["checkpoint"]["files"]) {
        const bool config = random.Below(2) == 0;
        if (file["name"] == (config ? "config.json" : "model.safetensors")) {
          ChangeDigest(random, file["sha256"]);
          return;
        }
      }
      ChangeDigest(random, core["checkpoint"]["files"][0]["sha256"]);
  }
}

class RandomEdits : public testing::Test {
 protected:
  // Makes `edit` on published receipts in turn until kEdits of them changed something.
  template <typename Edit>
  void ExpectAllDenied(uint64_t seed, const Edit& edit) {
    const std::vector<PublishedReceipt> published = PublishedReceipts();
    Random random(seed);
    int edited = 0;
    for (int i = 0; edited < kEdits; ++i) {
      ASSERT_LT(i, 2 * kEdits) << "most edits change nothing";
      const PublishedReceipt& original = published[static_cast<size_t>(i) % published.size()];
      const PublishedReceipt changed = edit(random, original);
      if (changed.bytes == original.bytes) continue;
      ++edited;
      const ReceiptVerdict verdict = VerifyBytes(changed.name, changed.bytes);
      ASSERT_NE(verdict.outcome, Outcome::kPass) << "edit " << i << "\n" << changed.bytes;
      ASSERT_FALSE(verdict.reasons.empty()) << "edit " << i;
    }
  }
};

TEST_F(RandomEdits, OfBytesAreDenied) {
  ExpectAllDenied(1, [](Random& random, const PublishedReceipt& original) {
    PublishedReceipt changed = original;
    EditBytes(random, changed.bytes);
    return changed;
  });
}

TEST_F(RandomEdits, OfBytesWithTheCoreDigestRecomputedAreDenied) {
  ExpectAllDenied(2, [](Random& random, const PublishedReceipt& original) {
    PublishedReceipt changed = original;
    EditBytes(random, changed.bytes);
    const Json parsed = Json::parse(changed.bytes, nullptr, /*allow_exceptions=*/false);
    const bool whole = parsed.is_object() && parsed.contains("predicate") &&
                       parsed["predicate"].is_object() && parsed["predicate"].contains("core");
    if (!whole) return changed;
    const Json& core = parsed["predicate"]["core"];
    if (!core.is_object() || !core.contains("arithmetic") || !core["arithmetic"].is_string() ||
        !core.contains("level") || !core["level"].is_string()) {
      return changed;
    }
    EditedReceipt receipt(parsed);
    receipt.SealCore();
    return PublishedReceipt{receipt.Name(), receipt.Bytes()};
  });
}

TEST_F(RandomEdits, OfRowsAreDenied) {
  ExpectAllDenied(3, [](Random& random, const PublishedReceipt& original) {
    EditedReceipt receipt(original);
    EditRows(random, receipt);
    if (random.Below(2) == 0) receipt.SealCore();
    return PublishedReceipt{receipt.Name(), receipt.Bytes()};
  });
}

TEST_F(RandomEdits, WithEveryDigestRecomputedAreDenied) {
  ExpectAllDenied(4, [](Random& random, const PublishedReceipt& original) {
    EditedReceipt receipt(original);
    random.Below(4) == 0 ? EditCore(random, receipt) : EditRows(random, receipt);
    receipt.SealAll();
    return PublishedReceipt{receipt.Name(), receipt.Bytes()};
  });
}

}  // namespace
}  // namespace hallmark::verify
