// SPDX-License-Identifier: Apache-2.0
// ReadReceipt: the bytes of a receipt to its statement, strictly. One line is demanded byte for
// byte as an emitter writes it: members sorted, no space, shortest numbers, one final newline. So
// there are no two texts of one receipt, and a digest of the bytes names what was judged.
#ifndef HALLMARK_RECEIPTS_VERIFY_DOCUMENT_H_
#define HALLMARK_RECEIPTS_VERIFY_DOCUMENT_H_

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "receipts/verify/knowledge.h"
#include "receipts/verify/reason.h"

namespace hallmark::verify {

inline constexpr size_t kMaxReceiptBytes = size_t{16} << 20;
inline constexpr int kMaxReceiptDepth = 16;

// The statement, or nothing and at least one finding: too-large, empty, not-utf8, no-final-newline,
// trailing-bytes, too-deep, not-json, duplicate-key, not-canonical, unknown-statement-type,
// unknown-predicate-type, or a fault against the receipt's schema.
std::optional<Json> ReadReceipt(const Knowledge& knowledge, std::string_view bytes,
                                Findings& findings);

}  // namespace hallmark::verify

#endif  // HALLMARK_RECEIPTS_VERIFY_DOCUMENT_H_
