// SPDX-License-Identifier: Apache-2.0
// EditedReceipt: a published receipt that a test changes and seals again, as a forger would who
// knows every digest's rule. For tests of the verifier.
#ifndef HALLMARK_RECEIPTS_VERIFY_EDITED_RECEIPT_H_
#define HALLMARK_RECEIPTS_VERIFY_EDITED_RECEIPT_H_

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "receipts/verify/verdict.h"
#include "receipts/verify/verify.h"

namespace hallmark::verify {

struct PublishedReceipt {
  std::string name;
  std::string bytes;
};

// Every published receipt of a folder of receipts/published, in the order of their names; never
// empty.
std::vector<PublishedReceipt> PublishedReceipts(const std::string& device = "cpu");
// The first of a golden model, cache type bf16, level L2.
PublishedReceipt PublishedReceiptOf(const std::string& model);

class EditedReceipt {
 public:
  explicit EditedReceipt(const PublishedReceipt& published);
  explicit EditedReceipt(const nlohmann::json& statement);

  nlohmann::json& statement() { return *statement_; }
  nlohmann::json& core();
  nlohmann::json& context();
  nlohmann::json& rows();
  // The row of a name; the test fails without one.
  nlohmann::json& row(const std::string& name);
  void EraseRow(const std::string& name);

  // Recomputes core_sha256 alone, or every digest the document has of itself.
  void SealCore();
  void SealAll();
  // As SealAll, and the verdict of its own that the rows give.
  void SealWithVerdict(const std::string& outcome, const std::vector<std::string>& missing);

  std::string Name() const;  // what the emitter would call it
  std::string Bytes() const;
  ReceiptVerdict Verify(const VerifyOptions& options = {}) const;

 private:
  std::shared_ptr<nlohmann::json> statement_;
};

// The reasons as "code pointer".
std::vector<std::string> ReasonsOf(const ReceiptVerdict& verdict);
// Verifies bytes under a name with the built-in knowledge.
ReceiptVerdict VerifyBytes(const std::string& name, const std::string& bytes,
                           const VerifyOptions& options = {});

}  // namespace hallmark::verify

#endif  // HALLMARK_RECEIPTS_VERIFY_EDITED_RECEIPT_H_
