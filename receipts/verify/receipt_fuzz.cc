// SPDX-License-Identifier: Apache-2.0
// VerifyReceipt takes any bytes, as a receipt and as an envelope. Under a name that no core digest
// gives nothing passes, and what is denied has a reason; so does everything `hallmark diff`
// refuses.
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "receipts/verify/compare.h"
#include "receipts/verify/verify.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace hallmark::verify;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const Knowledge& knowledge = BuiltInKnowledge();
  for (const char* name : {"L2.cpu.nothex.intoto.jsonl", "L2.cpu.nothex.dsse.json"}) {
    const auto verdict = VerifyReceipt(knowledge, name, bytes, {});
    if (!verdict.has_value()) std::abort();
    if (verdict->outcome == Outcome::kPass || verdict->reasons.empty()) std::abort();
    const auto core = ReadCore(knowledge, name, bytes);
    if (core.has_value() && CompareReceipts(*core, *core).result != Comparison::Result::kEqual) {
      std::abort();
    }
  }
  return 0;
}
