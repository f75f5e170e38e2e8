// SPDX-License-Identifier: Apache-2.0
// The receipt as a document: core (what was shown, equal on every machine of one arithmetic id),
// context (where, when, how fast), and the in-toto Statement v1 around them. Pure functions of
// plain values; gathering them is issue.h's task, judging them the verifier's. Schema:
// receipts/schemas/receipt.v1.schema.json.
#ifndef HALLMARK_RECEIPTS_EMIT_STATEMENT_H_
#define HALLMARK_RECEIPTS_EMIT_STATEMENT_H_

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <utility>
#include <vector>

#include "conformance/cases/levels.h"
#include "conformance/harness/row.h"
#include "receipts/emit/contract.h"

namespace hallmark {

struct FileDigest {
  std::string name;  // never a path of the machine it lies on
  uint64_t bytes = 0;
  std::string sha256;
};

struct ReceiptPrompt {
  std::string name;
  std::string rule;
  std::string seed;  // hex: a JSON number holds no 64 bits everywhere
  uint64_t tokens = 0;
  std::string sha256;  // of the ids as little-endian int32
};

struct ReceiptCore {
  Level level = Level::kL0;
  std::vector<FileDigest> checkpoint;  // shards, configs, tokenizer
  ContractId contract;
  std::map<std::string, std::string> must_pass;  // level to digest, up to `level`
  std::string tolerances;                        // digest of the register
  std::vector<FileDigest> vectors;               // golden files that cases read
  std::vector<ReceiptPrompt> prompts;
  std::vector<FileDigest> drafter;  // the same of the drafter; empty without one
  std::string kv;                   // "bf16" or "fp8"
  // With a drafter: how its matrices were held, "stored" or "4bit", and what it could propose
  // (first and past-the-last ids; none: everything).
  std::string drafter_weights;
  std::vector<std::pair<int64_t, int64_t>> draft_vocabulary;
  std::vector<std::string> samplings;  // how ids were drawn, under the names that cases use
  std::string arithmetic;              // ArithmeticIdOf
  std::vector<Row> rows;
};

// Sorted by name; the rows stay in their order, which is by clause, then case.
nlohmann::json CoreJson(const ReceiptCore& core);

// SHA-256 of the canonical text of a core: the line two people compare.
std::string CoreDigest(const nlohmann::json& core);

// `subjects` are the shards and the engine's binary.
nlohmann::json StatementJson(const std::vector<FileDigest>& subjects, const nlohmann::json& core,
                             const nlohmann::json& context);

// "L2.cpu.0123456789ab", the name of a receipt without its suffix.
std::string ReceiptName(Level level, const std::string& arithmetic, const std::string& core_digest);

}  // namespace hallmark

#endif  // HALLMARK_RECEIPTS_EMIT_STATEMENT_H_
