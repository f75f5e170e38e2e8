// SPDX-License-Identifier: Apache-2.0
// VerifyReceipt: judges one receipt from its bytes alone, offline, against what the build embeds
// and a policy. Monotonic: what is missing denies, and nothing that is added can excuse. It opposes
// a forger who recomputes digests; what no document can show (that the run took place, and where)
// it does not show either. Same bytes, same options: same verdict.
#ifndef HALLMARK_RECEIPTS_VERIFY_VERIFY_H_
#define HALLMARK_RECEIPTS_VERIFY_VERIFY_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "receipts/verify/dsse.h"
#include "receipts/verify/knowledge.h"
#include "receipts/verify/verdict.h"
#include "receipts/verify/waivers.h"

namespace hallmark::verify {

struct VerifyOptions {
  const Policy* policy = nullptr;  // null: the built-in policy of the level the receipt claims
  std::vector<Waiver> waivers;
  std::optional<PublicKey> public_key;  // given: an envelope signed by this key is demanded
  std::string checkpoint_folder;        // given: its files must be those of the core
  std::string drafter_folder;
};

// `name` is the file's name, without folders: it holds level, backend and core digest, and one that
// ends in ".dsse.json" is an envelope. Errors are only of folders that could not be read.
Result<ReceiptVerdict> VerifyReceipt(const Knowledge& knowledge, std::string_view name,
                                     std::string_view bytes, const VerifyOptions& options);

}  // namespace hallmark::verify

#endif  // HALLMARK_RECEIPTS_VERIFY_VERIFY_H_
