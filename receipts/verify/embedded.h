// SPDX-License-Identifier: Apache-2.0
// The documents a verifier judges by, embedded byte for byte as they lie in the tree: contract,
// tolerances, must-pass lists, arithmetic, policies, digests of the golden files, rules of rows,
// pins and schemas. The emitter embeds its own copies; nothing of that is used here.
#ifndef HALLMARK_RECEIPTS_VERIFY_EMBEDDED_H_
#define HALLMARK_RECEIPTS_VERIFY_EMBEDDED_H_

#include <map>
#include <string>
#include <string_view>

namespace hallmark::verify {

// Path in the source tree to text.
using Documents = std::map<std::string, std::string_view>;

Documents EmbeddedDocuments();

}  // namespace hallmark::verify

#endif  // HALLMARK_RECEIPTS_VERIFY_EMBEDDED_H_
