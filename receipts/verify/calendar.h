// SPDX-License-Identifier: Apache-2.0
// Dates of receipts and waivers: "2026-11-29T15:00:00Z" and "2026-11-29", days that exist.
#ifndef HALLMARK_RECEIPTS_VERIFY_CALENDAR_H_
#define HALLMARK_RECEIPTS_VERIFY_CALENDAR_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace hallmark::verify {

// Seconds since 1970; nothing for a text of another form or a time that is not.
std::optional<int64_t> ParseUtc(std::string_view text);
// Days since 1970.
std::optional<int64_t> ParseDate(std::string_view text);
// Today in UTC, "2026-11-29".
std::string Today();

}  // namespace hallmark::verify

#endif  // HALLMARK_RECEIPTS_VERIFY_CALENDAR_H_
